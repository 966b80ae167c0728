/* System calls that wait are interrupted by handled signals: with SA_RESTART they go on, without it they say EINTR;
 * each signal is handled once. */
#include "case.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static volatile int *handled; /* the sender sees it too */
static void on_signal(int number) { (void)number, ++*handled; }

static void handle(int flags) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
}

/* Until the first thread of `process` sleeps in a system call: /proc says S behind the name's parenthesis. */
static void wait_for_sleep(pid_t process) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, process);
    for (;;) {
        FILE *file = fopen(path, "r");
        char *end = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
        if (file) fclose(file);
        if (end && end[2] == 'S') return;
        usleep(1000);
    }
}

/* A child that sends five signals, each to a parent that sleeps and has handled the one before, then `last`. */
static pid_t sender(void (*last)(int), int argument) {
    pid_t parent = getpid();
    int before = *handled;
    pid_t child = fork();
    if (child) return child;
    for (int i = 1; i <= 5; i++) {
        usleep(10000);
        wait_for_sleep(parent);
        kill(parent, SIGUSR1);
        while (*handled < before + i) usleep(1000);
    }
    wait_for_sleep(parent);
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
    handled = mmap(NULL, sizeof *handled, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(pipe(ends), "pipe");
    pthread_create(&thread, NULL, compute_on, NULL);
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        handle(flags);
        *handled = 0;
        pid_t child = sender(write_one, ends[1]);
        int reads = read_again(ends);
        wait_again(child);
        int waits = wait_again(sender(nothing, 0));
        printf("%s: reads interrupted %d, waits interrupted %d, handled %d\n", flags ? "restarts" : "does not", reads,
               waits, *handled);
    }
    return 0;
}
