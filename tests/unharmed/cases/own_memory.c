/* Memory that it has, by the kernel's count, must not grow with what it does again and again.
 * Usage: own_memory libraries|forks|shared
 * `libraries`: code is mapped and taken away between computing; `forks`: each child computes and forks the next one;
 * `shared`: processes that share its memory, one after the other. */
#include "case.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { LIBRARIES = 80, FORKS = 30, MOST_MIB = 64, WARM = 10 };

static volatile unsigned sum;

static void work(void) {
    for (int i = 0; i < 30000000; i++) sum += (unsigned)i;
}

static long mib_mapped(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%ld", &pages) != 1) return -1;
    fclose(file);
    return pages * PAGE / MIB;
}

static void libraries(void) {
    int file = (int)must(open("/proc/self/exe", O_RDONLY), "open");
    for (int i = 0; i < LIBRARIES; i++) {
        void *code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
        work();
        munmap(code, PAGE);
    }
}

static int fork_on(int left, long before) {
    work();
    if (left == 0) return mib_mapped() - before > MOST_MIB;
    pid_t child = fork();
    if (child == 0) _exit(fork_on(left - 1, before));
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static int alone(void *nothing) {
    (void)nothing;
    work();
    return 0;
}

static void shared(void) {
    static char stack[64 * KIB];
    for (int i = 0; i < FORKS; i++) {
        pid_t child = clone(alone, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
        work();
        waitpid(child, NULL, 0);
    }
}

int main(int count, char **words) {
    /* What is mapped once, at the first look at it, is there by now, also on a busy machine. */
    for (int i = 0; i < WARM; i++) work();
    long before = mib_mapped();
    int grown = 0;
    if (is(count, words, "libraries")) libraries();
    else if (is(count, words, "shared")) shared();
    else grown = fork_on(FORKS, before);
    printf("grew too much: %d\n", grown || mib_mapped() - before > MOST_MIB);
    return 0;
}
