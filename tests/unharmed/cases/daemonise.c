/* Becomes a daemon: closes all files, forks twice, has a session of its own, computes on after its parent's end. */
#include "case.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void close_from(int first) {
    for (int file = first; file < 1024; file++) close(file);
}

static void daemon_body(void) {
    close_from(0);
    open("/dev/null", O_RDWR);
    dup(0), dup(0);
    umask(022);
    allocate(MIB);
    compute(0.2);
    int file = open("daemon.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dprintf(file, "file %d, session of its parent: %d\n", file, getsid(0) != getpid());
    _exit(5);
}

int main(void) {
    close_from(3);
    int first = open("/dev/null", O_RDWR);
    allocate(MIB);
    must(write(first, "x", 1), "write");
    pid_t child = fork();
    if (!child) {
        setsid();
        if (!fork()) daemon_body();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("first file %d, parent of the daemon %d\n", first, status);
    return 0;
}
