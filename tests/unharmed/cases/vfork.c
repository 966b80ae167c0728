/* Children that share their parent's memory until they are another program. Usage: vfork exec|spawn|allocate|clone */
#include "case.h"
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

extern char **environ;
static char *const TRUE[] = {"true", NULL};

static pid_t by_exec(void) {
    pid_t child = vfork();
    if (child) return child;
    execv("/bin/true", TRUE);
    _exit(9);
}

static pid_t by_spawn(void) {
    pid_t child = -1;
    return posix_spawn(&child, "/bin/true", NULL, NULL, TRUE, environ) ? -1 : child;
}

static void map(void) {
    char *mapping = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapping[0] = 1;
    munmap(mapping, MIB);
}

static pid_t by_allocating(void) {
    pid_t child = vfork();
    if (child) return child;
    allocate(MIB);
    map();
    _exit(0);
}

static int in_clone(void *nothing) {
    (void)nothing;
    map();
    return 0;
}

static pid_t by_clone(void) {
    static char stack[64 * KIB] __attribute__((aligned(16)));
    return clone(in_clone, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
}

int main(int count, char **words) {
    pid_t (*way)(void) = is(count, words, "spawn")      ? by_spawn
                         : is(count, words, "allocate") ? by_allocating
                         : is(count, words, "clone")    ? by_clone
                                                        : by_exec;
    int wrong = 0;
    for (int i = 0; i < 150; i++) {
        int status = -1;
        pid_t child = way();
        wrong += waitpid(child, &status, 0) != child || status;
        allocate(MIB);
    }
    printf("wrong %d\n", wrong);
    return wrong;
}
