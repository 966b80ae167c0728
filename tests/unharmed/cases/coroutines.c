/* Coroutines by makecontext that allocate, switch in the midst of it, and free elsewhere.
 * Usage: coroutines KIBIBYTES: the size of their stacks, with a guard below. */
#include "case.h"
#include <sys/mman.h>
#include <ucontext.h>

enum { ROUTINES = 16, ROUNDS = 50 };
static ucontext_t home, routines[ROUTINES];
static int current, freed;

static void body(void) {
    for (int i = 0; i < ROUNDS; i++) {
        char *block = malloc(MIB);
        block[0] = (char)i;
        swapcontext(&routines[current], &home);
        freed += block[0] == (char)i;
        free(block);
    }
}

int main(int count, char **words) {
    size_t stack = (count > 1 ? (size_t)atoi(words[1]) : 64) * KIB;
    for (int i = 0; i < ROUTINES; i++) {
        getcontext(&routines[i]);
        char *space = mmap(NULL, PAGE + stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(mprotect(space, PAGE, PROT_NONE), "mprotect");
        routines[i].uc_stack.ss_sp = space + PAGE;
        routines[i].uc_stack.ss_size = stack;
        routines[i].uc_link = &home;
        makecontext(&routines[i], body, 0);
    }
    for (int round = 0; round <= ROUNDS; round++)
        for (current = 0; current < ROUTINES; current++) swapcontext(&home, &routines[current]);
    printf("freed %d\n", freed);
    return 0;
}
