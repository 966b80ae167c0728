/* What a parent is told of its children: wait4 and waitid with every flag, SIGCHLD counted, resources added up. */
#include "case.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static volatile int told, codes[8];

static void on_child(int number, siginfo_t *from, void *context) {
    (void)number, (void)context;
    told++;
    if (from->si_code > 0 && from->si_code < 8) codes[from->si_code]++;
}

static pid_t child_that(int code, double seconds) {
    pid_t child = fork();
    if (child) return child;
    compute(seconds);
    allocate(MIB);
    if (code < 0) kill(getpid(), -code);
    _exit(code);
}

static void kept_until_asked(void) {
    pid_t child = child_that(5, 0.02);
    siginfo_t seen = {0};
    int early = waitpid(child, NULL, WNOHANG);
    must(waitid(P_PID, child, &seen, WEXITED | WNOWAIT), "waitid");
    printf("early %d, kept: %d %d, ", early, seen.si_code, seen.si_status);
    struct rusage used;
    int status;
    pid_t got = wait4(child, &status, 0, &used);
    printf("taken: %d %d, used some: %d, again: %d\n", got == child, WEXITSTATUS(status), used.ru_utime.tv_usec + used.ru_stime.tv_usec > 5000,
           waitpid(child, NULL, 0) == -1 && errno == ECHILD);
}

static void killed(void) {
    int status;
    pid_t child = child_that(-SIGKILL, 0.01);
    waitpid(child, &status, 0);
    printf("killed by %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
}

static void many(void) {
    int sum = 0;
    for (int i = 0; i < 20; i++) child_that(i, 0.001);
    siginfo_t seen;
    while (!waitid(P_ALL, 0, &seen, WEXITED)) sum += seen.si_status;
    printf("sum %d\n", sum);
}

static void ignored(void) {
    signal(SIGCHLD, SIG_IGN);
    child_that(3, 0.01);
    printf("ignored: %d\n", wait(NULL) == -1 && errno == ECHILD);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    kept_until_asked();
    killed();
    printf("told %d: exited %d, killed %d, stopped %d\n", told, codes[CLD_EXITED], codes[CLD_KILLED], codes[CLD_STOPPED]);
    many();
    ignored();
    return 0;
}
