/* System calls that wait are interrupted by handled signals: with SA_RESTART they go on, without it they say EINTR;
 * each signal is handled once. */
#include "case.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static volatile int handled;
static void on_signal(int number) { (void)number, handled++; }

static void handle(int flags) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
}

/* A child that sends five signals, then `last`. */
static pid_t sender(void (*last)(int), int argument) {
    pid_t parent = getpid(), child = fork();
    if (child) return child;
    for (int i = 0; i < 5; i++) {
        usleep(10000);
        kill(parent, SIGUSR1);
    }
    usleep(10000);
    last(argument);
    _exit(6);
}

static void write_one(int file) { must(write(file, "x", 1), "write"); }
static void nothing(int file) { (void)file; }

static int read_again(int ends[2]) {
    char byte;
    int interrupted = 0;
    while (read(ends[0], &byte, 1) == -1) interrupted += errno == EINTR;
    return interrupted;
}

static int wait_again(pid_t child) {
    int status, interrupted = 0;
    while (waitpid(child, &status, 0) == -1 && errno == EINTR) interrupted++;
    return interrupted;
}

static void *compute_on(void *nothing_at_all) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (;;) compute(0.01);
    return nothing_at_all;
}

int main(void) {
    int ends[2];
    pthread_t thread;
    must(pipe(ends), "pipe");
    pthread_create(&thread, NULL, compute_on, NULL);
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        handle(flags);
        handled = 0;
        pid_t child = sender(write_one, ends[1]);
        int reads = read_again(ends);
        wait_again(child);
        int waits = wait_again(sender(nothing, 0));
        printf("%s: reads interrupted %d, waits interrupted %d, handled %d\n", flags ? "restarts" : "does not", reads,
               waits, handled);
    }
    return 0;
}
