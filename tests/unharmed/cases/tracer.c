/* Traces, or asks whether it is traced. Usage: tracer child|stepped|asks|offers
 * `child`: counts what its child does; `stepped`: steps through it; `asks`: looks for a tracer of its own, as copy
 * protection does; `offers`: asks to be traced by its parent, which works once. */
#include "case.h"
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static pid_t traced_child(void) {
    pid_t child = fork();
    if (child) return child;
    must(ptrace(PTRACE_TRACEME, 0, NULL, NULL), "traceme");
    raise(SIGSTOP);
    for (volatile int i = 0; i < 1000; i++) {}
    for (int i = 0; i < 5; i++) must(write(2, "child\n", 6), "write");
    allocate(MIB);
    _exit(11);
}

static int child(int step) {
    pid_t pid = traced_child();
    int status, stops = 0, calls = 0;
    waitpid(pid, &status, 0);
    must(ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)), "options");
    for (int limit = 20000; limit && WIFSTOPPED(status); limit--) {
        stops++;
        calls += WSTOPSIG(status) == (SIGTRAP | 0x80);
        must(ptrace(step && stops < 3000 ? PTRACE_SINGLESTEP : PTRACE_SYSCALL, pid, NULL, NULL), "continue");
        must(waitpid(pid, &status, 0), "wait");
    }
    printf("calls %d, many steps %d, end %d\n", calls > 10, stops > 2000, WEXITSTATUS(status));
    return 0;
}

static int tracer_of_mine(void) {
    char line[256];
    int tracer = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file)) sscanf(line, "TracerPid: %d", &tracer);
    fclose(file);
    return tracer;
}

static int asks(void) {
    int seen = 0;
    for (int i = 0; i < 20; i++) {
        seen += tracer_of_mine() != 0;
        compute(0.01);
    }
    printf("seen %d times\n", seen);
    return 0;
}

static int offers(void) {
    long first = ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    int why = errno;
    printf("first %ld %s\n", first, first ? strerror(why) : "");
    return 0;
}

int main(int count, char **words) {
    allocate(MIB);
    compute(0.05);
    if (is(count, words, "asks")) return asks();
    if (is(count, words, "offers")) return offers();
    return child(is(count, words, "stepped"));
}
