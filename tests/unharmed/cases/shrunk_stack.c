/* A coroutine with a large variable frame allocates near the bottom of its stack; the upper part is given back, and
 * a coroutine on what remains allocates from the same place in the code. Usage: shrunk_stack alloca|array */
#include "case.h"
#include <alloca.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { LARGE = MIB, SMALL = 64 * KIB };
static ucontext_t home, routine;
static volatile size_t scratch;

static void with_alloca(void) {
    volatile char *space = alloca(scratch);
    space[0] = 1;
    allocate(MIB);
}

static void with_array(void) {
    volatile char space[scratch];
    space[0] = 1;
    allocate(MIB + space[0]);
}

static void enter(void (*task)(void), char *stack, size_t bytes, size_t space) {
    scratch = space;
    getcontext(&routine);
    routine.uc_stack.ss_sp = stack;
    routine.uc_stack.ss_size = bytes;
    routine.uc_link = &home;
    makecontext(&routine, task, 0);
    swapcontext(&home, &routine);
    printf("%zu bytes of %zu\n", space, bytes);
}

int main(int count, char **words) {
    void (*task)(void) = is(count, words, "array") ? with_array : with_alloca;
    for (int round = 0; round < 20; round++) {
        char *stack = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        enter(task, stack, LARGE, LARGE - SMALL + PAGE);
        munmap(stack + SMALL, LARGE - SMALL);
        enter(task, stack, SMALL, PAGE);
        munmap(stack, SMALL);
    }
    puts("went on");
    return 0;
}
