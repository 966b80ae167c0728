/* What a process says about itself by prctl. Usage: process_rights undumpable|tracer|parent|name|subreaper */
#include "case.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int undumpable(void) {
    must(prctl(PR_SET_DUMPABLE, 0), "dumpable");
    allocate(MIB);
    compute(0.2);
    printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
    return 0;
}

/* Kernels without Yama refuse this with EINVAL, and have to go on doing so. */
static int tracer(void) {
    int result = prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    compute(0.1);
    printf("any tracer: %d %d\n", result, result ? errno : 0);
    return 0;
}

/* A child is told when its parent ends, and not before. */
static int parent(void) {
    int ends[2];
    must(pipe(ends), "pipe");
    pid_t middle = fork();
    if (!middle) {
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            must(write(ends[1], "a", 1), "write");
            for (;;) compute(0.01);
        }
        char byte;
        must(read(ends[0], &byte, 1), "read");
        compute(0.1);
        _exit(3);
    }
    char byte;
    int status;
    waitpid(middle, &status, 0);
    close(ends[1]);
    printf("middle %d, child gone: %d\n", WEXITSTATUS(status), read(ends[0], &byte, 1) == 0);
    return 0;
}

static int name(void) {
    char seen[16] = "";
    prctl(PR_SET_NAME, "another");
    compute(0.05);
    prctl(PR_GET_NAME, seen);
    puts(seen);
    return 0;
}

static int subreaper(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!fork()) {
        if (!fork()) compute(0.1), _exit(getppid() == 1 ? 1 : 8);
        _exit(7);
    }
    int one, other;
    wait(&one), wait(&other);
    printf("answers %d, then none: %d\n", WEXITSTATUS(one) + WEXITSTATUS(other), wait(NULL) == -1);
    return 0;
}

int main(int count, char **words) {
    allocate(MIB);
    if (is(count, words, "undumpable")) return undumpable();
    if (is(count, words, "tracer")) return tracer();
    if (is(count, words, "parent")) return parent();
    return is(count, words, "name") ? name() : subreaper();
}
