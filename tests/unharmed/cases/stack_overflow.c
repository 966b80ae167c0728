/* Overflows its stack. The handler, on a stack of its own, writes its report into a large block; then it jumps back
 * and the program goes on, or it ends the program. Usage: stack_overflow main|thread|exit|die */
#include "case.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#ifndef OTHER
#define OTHER (128 * KIB)
#endif
#ifndef FRAME
#define FRAME 64
#endif

static sigjmp_buf back;
static const char *way;
static char other_stack[OTHER];

static void on_fault(int number) {
    char *report = malloc(MIB);
    kept = report;
    strcpy(report, "the stack is full");
    puts(report);
    fflush(stdout);
    free(report);
    if (!strcmp(way, "exit")) _exit(3);
    if (strcmp(way, "die")) siglongjmp(back, 1);
    signal(number, SIG_DFL); /* the fault comes again, and ends it */
}

static int deeper(int depth) {
    volatile char frame[FRAME];
    frame[depth % FRAME] = (char)depth;
    return depth < 0 ? 0 : deeper(depth + 1) + frame[depth % FRAME];
}

static void *overflow(void *nothing) {
    stack_t other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    must(sigaltstack(&other, NULL), "sigaltstack");
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    must(sigaction(SIGSEGV, &action, NULL), "sigaction");
    for (volatile int round = 0; round < 20; round++) {
        if (!sigsetjmp(back, 1)) printf("%d\n", deeper(0));
        allocate(MIB + round * PAGE);
    }
    return nothing;
}

int main(int count, char **words) {
    way = count > 1 ? words[1] : "main";
    pthread_t thread;
    if (strcmp(way, "thread")) overflow(NULL);
    else if (!pthread_create(&thread, NULL, overflow, NULL)) pthread_join(thread, NULL);
    puts("went on");
    return 0;
}
