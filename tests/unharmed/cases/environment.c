/* What a program finds at its start. Usage: environment state|variables|cleared
 * `state`: files, signals, limits, its name; `variables`: all that it inherits; `cleared`: a child without any. */
#include "case.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

static void print_lines_of(const char *path, const char *keys[]) {
    char line[512];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        for (const char **key = keys; *key; key++)
            if (!strncmp(line, *key, strlen(*key))) fputs(line, stdout);
    if (file) fclose(file);
}

static void state(char *name) {
    print_lines_of("/proc/self/status", (const char *[]){"SigQ:\t0", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt",
                                                         "NoNewPrivs", "Seccomp:", "Threads", "CapEff", NULL});
    for (int file = 0; file < 1000; file++)
        if (fcntl(file, F_GETFD) >= 0) printf("file %d, flags %x\n", file, fcntl(file, F_GETFD));
    for (int resource = 0; resource < 16; resource++) {
        struct rlimit limit;
        getrlimit(resource, &limit);
        printf("limit %d: %lx %lx\n", resource, limit.rlim_cur, limit.rlim_max);
    }
    printf("%s, umask %o, leads its group %d, priority %d, dumpable %d, pdeathsig %d, nice %d\n",
           strrchr(name, '/') + 1, umask(0), getpgrp() == getpid(), getpriority(PRIO_PROCESS, 0),
           prctl(PR_GET_DUMPABLE), prctl(PR_GET_PDEATHSIG, &(int){0}), nice(0));
}

int main(int count, char **words) {
    if (is(count, words, "state")) return state(words[0]), 0;
    if (is(count, words, "variables")) {
        for (char **variable = environ; *variable; variable++) puts(*variable);
        return 0;
    }
    clearenv();
    allocate(MIB);
    if (!fork()) execl("/bin/sh", "sh", "-c", "env | grep -v -e ^PWD= -e ^SHLVL= -e ^_=", NULL);
    int status;
    wait(&status);
    printf("variables: %d\n", status == 0);
    return 0;
}
