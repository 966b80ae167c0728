/* Children in a namespace of their own, where they have other process ids; root only. */
#include "case.h"
#include <sched.h>
#include <sys/wait.h>

static int answer_of(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void) {
    must(unshare(CLONE_NEWPID | CLONE_NEWNS), "unshare");
    pid_t child = fork();
    if (!child) {
        allocate(MIB);
        compute(0.2);
        pid_t other = fork();
        if (!other) allocate(MIB), _exit(getpid());
        _exit(answer_of(other) + 10 * getpid());
    }
    printf("answer %d\n", answer_of(child));
    return 0;
}
