/* Signals come in the midst of everything; their handlers allocate where that is allowed.
 * mmap and munmap are system calls, so a handler may call them at any time; malloc only from a
 * signal that is raised where no allocation is under way. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks, wrong;
static sigjmp_buf back;

static void on_tick(int number) {
    (void)number;
    char *map = mmap(NULL, 70000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || map[69999]) wrong = 1;
    munmap(map, 70000);
    ticks++;
}

static void on_raise(int number) {
    (void)number;
    char *block = malloc(90000);
    memset(block, 3, 90000);
    block = realloc(block, 200000);
    if (block[89999] != 3) wrong = 1;
    free(block);
}

static void on_jump(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static void *churn(void *unused) {
    (void)unused;
    for (int i = 0; i < 100000; i++) {
        char *block = malloc(33000 + i % 5000);
        block[32999] = 1;
        free(block);
    }
    return NULL;
}

int main(void) {
    signal(SIGALRM, on_tick);
    signal(SIGUSR1, on_raise);
    signal(SIGUSR2, on_jump);
    struct itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t other;
    pthread_create(&other, NULL, churn, NULL);
    churn(NULL);
    while (ticks < 20) churn(NULL);
    pthread_join(other, NULL);
    for (int i = 0; i < 1000; i++) raise(SIGUSR1);
    memset(&often, 0, sizeof often);
    setitimer(ITIMER_REAL, &often, NULL);
    int jumps = 0;
    while (jumps < 100) {
        if (sigsetjmp(back, 1) == 0) raise(SIGUSR2);
        else jumps++, on_raise(0);
    }
    printf("%d jumps, %s\n", jumps, wrong ? "wrong" : "right");
    return wrong;
}
