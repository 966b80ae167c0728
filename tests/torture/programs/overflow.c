/* Overflows its stack in a recursion that allocates, is told on another stack, jumps back, goes on. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile long depth;

static void on_segv(int number) {
    (void)number;
    siglongjmp(back, 1);
}

/* Makes sure that the next call of malloc has this much stack: it must not be left half-way. */
static __attribute__((noinline)) void room(void) {
    volatile char frame[8 << 10];
    frame[0] = 1;
}

static __attribute__((noinline)) int deeper(volatile char *above) {
    volatile char frame[200];
    frame[0] = above ? above[0] : 0;
    room();
    char *block = malloc(40000);
    room();
    free(block);
    depth++;
    return deeper(frame) + frame[0];
}

static int overflow_once(void) {
    if (sigsetjmp(back, 1) == 0) return deeper(NULL);
    char *after = calloc(1, 100000);
    int right = after[99999] == 0;
    free(after);
    return right;
}

static void *in_thread(void *unused) {
    static char other[64 << 10];
    stack_t alternative = {.ss_sp = other, .ss_size = sizeof other};
    sigaltstack(&alternative, NULL);
    return (void *)(long)overflow_once() + (long)unused * 0;
}

int main(void) {
    static char other[64 << 10];
    stack_t alternative = {.ss_sp = other, .ss_size = sizeof other};
    sigaltstack(&alternative, NULL);
    struct sigaction action = {.sa_handler = on_segv, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, 256 << 10);
    int right = 0;
    for (int round = 0; round < 20; round++) {
        pthread_t thread;
        void *answer = NULL;
        pthread_create(&thread, &how, in_thread, NULL);
        pthread_join(thread, &answer);
        right += answer != NULL;
    }
    printf("%d overflows survived, %s\n", right, depth > 1000 ? "deep" : "shallow");
    signal(SIGSEGV, SIG_DFL);
    return right == 20 ? 0 : 1;
}
