/* A daemon's habits: closes every file, changes its root and user, and allocates afterwards. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    for (int file = 3; file < 1024; file++) close(file);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    clearenv();
    if (chdir("/") || (geteuid() == 0 && (chroot("/proc") || setgid(65534) || setuid(65534)))) return 1;
    prctl(PR_SET_DUMPABLE, 0);
    pid_t daemon = fork();
    int sum = 0;
    for (int i = 0; i < 1000; i++) {
        char *block = malloc(40000 + i);
        memset(block, 1, 40000);
        sum += block[39999];
        free(block);
    }
    if (daemon == 0) _exit(sum == 1000 ? 2 : 3);
    int status;
    waitpid(daemon, &status, 0);
    printf("%d %d\n", sum, WEXITSTATUS(status));
    return 0;
}
