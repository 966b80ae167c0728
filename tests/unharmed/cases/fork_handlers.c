/* Handlers of fork that allocate, and children made without telling libc. */
#include "case.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void handler(void) { allocate(MIB); }

static int answer_of(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void) {
    pthread_atfork(handler, handler, handler);
    int sum = 0;
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (!child) allocate(MIB), exit(i);
        sum += answer_of(child);
    }
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (!child) allocate(MIB), _exit(4);
    printf("sum %d, other %d\n", sum, answer_of(child));
    return 0;
}
