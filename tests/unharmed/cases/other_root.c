/* Changes its root and its user, and goes on; root only. */
#include "case.h"
#include <sys/wait.h>

int main(void) {
    allocate(MIB);
    if (chroot("/var")) return perror("chroot"), 2;
    if (chdir("/")) return 1;
    allocate(MIB);
    if (setgid(65534) || setuid(65534)) return perror("setuid"), 3;
    allocate(MIB);
    pid_t child = fork();
    if (!child) {
        allocate(MIB);
        _exit(5);
    }
    int status;
    waitpid(child, &status, 0);
    compute(0.2);
    printf("user %d, child %d, back to root: %d\n", geteuid(), WEXITSTATUS(status), setuid(0));
    return 0;
}
