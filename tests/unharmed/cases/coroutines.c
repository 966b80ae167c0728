/* Coroutines by makecontext that allocate, switch in the midst of it, and free elsewhere. */
#include "case.h"
#include <ucontext.h>

enum { ROUTINES = 16, ROUNDS = 50, STACK = 64 * KIB };
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

int main(void) {
    for (int i = 0; i < ROUTINES; i++) {
        getcontext(&routines[i]);
        routines[i].uc_stack.ss_sp = malloc(STACK);
        routines[i].uc_stack.ss_size = STACK;
        routines[i].uc_link = &home;
        makecontext(&routines[i], body, 0);
    }
    for (int round = 0; round <= ROUNDS; round++)
        for (current = 0; current < ROUTINES; current++) swapcontext(&home, &routines[current]);
    printf("freed %d\n", freed);
    return 0;
}
