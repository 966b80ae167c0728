/* Signals to threads that compute, thousands of them, as runtimes send them to take the processor away: each handler
 * finds the thread in the program's code, walks its stack to its beginning, and now and then jumps out.
 * Usage: seen_from_handlers stack|alternate */
#include "case.h"
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { SIGNALS = 1000, DEPTH = 12, OUTER = 4 };

static struct { unsigned long start, end; } code[64];
static int codes;
static atomic_int done, tid;
static atomic_long handled, outside, shallow;
static __thread sigjmp_buf back;

/* All code that is there before it begins. */
static void look(void) {
    char line[512], access[8];
    FILE *file = fopen("/proc/self/maps", "r");
    while (codes < 64 && fgets(line, sizeof line, file))
        if (sscanf(line, "%lx-%lx %7s", &code[codes].start, &code[codes].end, access) == 3 && access[2] == 'x') codes++;
    fclose(file);
}

static int is_code(unsigned long at) {
    for (int i = 0; i < codes; i++)
        if (code[i].start <= at && at < code[i].end) return 1;
    return 0;
}

static void handler(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    void *frames[64];
    outside += !is_code((unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
    /* This one, what called it, the thread's own and what began it. */
    shallow += backtrace(frames, 64) <= OUTER;
    if (++handled % 8 == 0) siglongjmp(back, 1);
}

__attribute__((noipa)) static unsigned descend(unsigned depth, unsigned value) {
    if (depth == 0) {
        for (int i = 0; i < 200; i++) value = value * 1664525u + 1013904223u;
        return value;
    }
    return descend(depth - 1, value) + 1;
}

/* Nothing but the program's own code: no library is called here. */
static void *work(void *stack) {
    stack_t alternate = {.ss_sp = stack, .ss_size = MIB};
    if (stack) must(sigaltstack(&alternate, NULL), "sigaltstack");
    volatile unsigned value = 0;
    sigsetjmp(back, 1);
    tid = (int)syscall(SYS_gettid);
    while (!done) value = descend(DEPTH, value);
    return NULL;
}

int main(int count, char **words) {
    void *frames[4];
    backtrace(frames, 4); /* loads what it needs */
    look();
    int other = is(count, words, "alternate");
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | (other ? SA_ONSTACK : 0)};
    sigaction(SIGURG, &action, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, work, other ? malloc(MIB) : NULL);
    while (!tid) usleep(100);
    for (int i = 0; i < SIGNALS; i++) {
        must(syscall(SYS_tgkill, getpid(), tid, SIGURG), "tgkill");
        usleep(1000 + i % 7 * 300);
        while (handled <= i) usleep(20);
    }
    done = 1;
    pthread_join(thread, NULL);
    printf("handled %ld, in other code %ld, short stacks %ld\n", handled, outside, shallow);
    return 0;
}
