/* Becomes, or starts, a program that runs with its owner's rights. Usage: set_user_id exec|fork|thread PROGRAM
 * The program is this one again: it tells whose rights it has. */
#include "case.h"
#include <pthread.h>
#include <sys/wait.h>

static char *program;

static void become(void) {
    execl(program, program, "tell", NULL);
    _exit(98);
}

static void *in_a_thread(void *nothing) {
    become();
    return nothing;
}

int main(int count, char **words) {
    if (is(count, words, "tell")) return printf("user %d, rights of %d\n", getuid(), geteuid()), 4;
    if (count < 3) return 97;
    program = words[2];
    allocate(MIB);
    compute(0.05);
    if (is(count, words, "exec")) become();
    pthread_t thread;
    if (is(count, words, "thread")) pthread_create(&thread, NULL, in_a_thread, NULL);
    for (; is(count, words, "thread");) compute(0.01);
    int status;
    if (!fork()) become();
    wait(&status);
    compute(0.05);
    printf("child %d\n", WEXITSTATUS(status));
    return 0;
}
