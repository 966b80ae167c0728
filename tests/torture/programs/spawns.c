/* Starts programs by vfork, posix_spawn, system and popen, and becomes others by exec.
 * Usage: spawns [chain N] */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int code_of(pid_t process) {
    int status = 0;
    waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Each link of the chain allocates, writes what it has not flushed, and becomes the next. */
static int chain(char *self, int links) {
    char *block = malloc(300000);
    memset(block, links, 300000);
    if (links == 0) return block[299999] + 17;
    printf("link %d\n", links);
    fflush(stdout);
    char number[16];
    snprintf(number, sizeof number, "%d", links - 1);
    char *words[] = {self, "chain", number, NULL};
    if (links % 2) execv("/proc/self/exe", words);
    else execvp(self, words);
    return 99;
}

int main(int count, char **words) {
    if (count > 2) return chain(words[0], atoi(words[2]));
    char *mine = malloc(100000);
    memset(mine, 1, 100000);
    printf("shell: %d\n", WEXITSTATUS(system("exit 4")));
    fflush(stdout);
    pid_t process = vfork();
    if (process == 0) {
        execlp("sh", "sh", "-c", "echo from vfork; exit 6", NULL);
        _exit(127);
    }
    printf("vfork: %d\n", code_of(process));
    fflush(stdout);
    char *next[] = {words[0], "chain", "3", NULL};
    posix_spawn(&process, words[0], NULL, NULL, next, environ);
    printf("posix_spawn: %d\n", code_of(process));
    char line[100] = "";
    FILE *pipe = popen("echo $((6 * 7))", "r");
    if (!fgets(line, sizeof line, pipe)) return 1;
    printf("popen: %s", line);
    printf("pclose: %d\n", pclose(pipe));
    process = vfork();
    if (process == 0) {
        execlp("/no/such/program", "none", NULL);
        _exit(126);
    }
    printf("failed exec: %d\n", code_of(process));
    fflush(stdout);
    execlp("env", "env", "-i", "/bin/sh", "-c", "echo bare environment $#; exit 21", NULL);
    return 1;
}
