/* Every way to end. Usage: endings return|exit|_exit|quick_exit|abort|segv|kill|term|trap|thread|crowd|stopped
 * `thread`: the first thread ends, another ends the process; `crowd`: while 16 others compute. */
#include "case.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static void at_exit(void) { puts("at exit"); }

static void *compute_on(void *nothing) {
    for (;;) compute(0.01);
    return nothing;
}

static void *end_later(void *nothing) {
    compute(0.02);
    exit(12);
    return nothing;
}

static void start(void *(*body)(void *), int threads) {
    pthread_t thread;
    for (int i = 0; i < threads; i++) pthread_create(&thread, NULL, body, NULL);
}

/* A stopped process of several threads is killed: what its parent is told. */
static int stopped(void) {
    pid_t child = fork();
    int status = 0, first;
    if (!child) start(compute_on, 4), compute_on(NULL);
    usleep(30000);
    kill(child, SIGSTOP);
    waitpid(child, &first, WUNTRACED);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    printf("stopped %d, killed by %d\n", WIFSTOPPED(first), WTERMSIG(status));
    return 13;
}

int main(int count, char **words) {
    atexit(at_exit);
    at_quick_exit(at_exit);
    allocate(MIB);
    compute(0.02);
    puts("buffered");
    if (is(count, words, "exit")) exit(7);
    if (is(count, words, "_exit")) _exit(5);
    if (is(count, words, "quick_exit")) quick_exit(9);
    if (is(count, words, "abort")) abort();
    if (is(count, words, "segv")) *(volatile char *)16 = 1;
    if (is(count, words, "kill")) kill(getpid(), SIGKILL);
    if (is(count, words, "term")) raise(SIGTERM);
    if (is(count, words, "trap")) __builtin_trap();
    if (is(count, words, "stopped")) return stopped();
    if (is(count, words, "thread")) start(end_later, 1), pthread_exit(NULL);
    if (is(count, words, "crowd")) start(compute_on, 16), start(end_later, 1), compute_on(NULL);
    return 3;
}
