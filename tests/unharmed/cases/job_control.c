/* Stops and goes on, as under a shell's job control. Usage: job_control self|child|threads|handler
 * `self`: the program stops itself, its child continues it; `child`: a child that computes is stopped ten times, its
 * parent is told of all of it; `threads`: the same with eight threads; `handler`: SIGTSTP and SIGCONT are handled. */
#include "case.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static volatile int told, handled;
static volatile long *rounds;

static void on_child(int number) { (void)number, told++; }
static void on_other(int number) { handled += number == SIGTSTP ? 1 : 100; }

static void *compute_on(void *nothing) {
    for (;;) compute(1e-5), __atomic_fetch_add(rounds, 1, __ATOMIC_RELAXED);
    return nothing;
}

static char state_of(pid_t pid) {
    char path[64], text[256] = "", *end;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return '?';
    end = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    fclose(file);
    return end ? end[2] : '?';
}

static int self(void) {
    pid_t me = getpid(), child = fork();
    if (!child) {
        while (state_of(me) != 'T') usleep(1000);
        usleep(20000);
        int stopped = state_of(me) == 'T';
        kill(me, SIGCONT);
        _exit(stopped);
    }
    raise(SIGSTOP);
    int status;
    waitpid(child, &status, 0);
    printf("stayed stopped %d\n", WEXITSTATUS(status));
    return 0;
}

/* Whether a child that was told to be stopped computes no more, and is shown as stopped: who looks at it just then may
 * keep the kernel from saying so for a moment. */
static int stays_stopped(pid_t child) {
    long before = *rounds;
    usleep(5000);
    for (int i = 0; i < 1000 && state_of(child) != 'T'; i++) usleep(1000);
    int status;
    return *rounds == before && state_of(child) == 'T' && waitpid(child, &status, WUNTRACED | WCONTINUED | WNOHANG) == 0;
}

/* Every stop and every return is told once by status; by signal, two at the same time are one. */
static int parent_of(int threads) {
    rounds = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rounds == MAP_FAILED) return 99;
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    pid_t child = fork();
    if (!child) {
        pthread_t thread;
        for (int i = 1; i < threads; i++) pthread_create(&thread, NULL, compute_on, NULL);
        compute_on(NULL);
    }
    int stops = 0, stays = 0, returns = 0, status;
    for (int i = 0; i < 10; i++) {
        usleep(5000);
        kill(child, SIGSTOP);
        waitpid(child, &status, WUNTRACED);
        stops += WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
        stays += stays_stopped(child);
        kill(child, SIGCONT);
        returns += waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status);
    }
    kill(child, SIGTERM);
    waitpid(child, &status, 0);
    printf("stops %d, stays %d, returns %d, end %d, told of all: %d\n", stops, stays, returns, WTERMSIG(status),
           told > 10 && told <= 21);
    return 0;
}

static int handler(void) {
    struct sigaction action = {.sa_handler = on_other, .sa_flags = SA_RESTART};
    sigaction(SIGTSTP, &action, NULL);
    sigaction(SIGCONT, &action, NULL);
    for (int i = 0; i < 10; i++) {
        raise(SIGTSTP);
        raise(SIGCONT);
        compute(0.02);
    }
    printf("handled %d\n", handled);
    return 0;
}

int main(int count, char **words) {
    allocate(MIB);
    if (is(count, words, "self")) return self();
    if (is(count, words, "handler")) return handler();
    return parent_of(is(count, words, "threads") ? 8 : 1);
}
