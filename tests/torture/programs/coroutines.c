/* Works on stacks of its own making, packed without gaps, that end right at unmapped memory. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { ROUTINES = 64, STACK = 32 << 10, PAGE = 4096 };
static ucontext_t home, routines[ROUTINES];
static int done;

static void work(int me) {
    for (int round = 0; round < 20; round++) {
        char *block = malloc(33000 + me);
        memset(block, me, 33000);
        swapcontext(&routines[me], &home);
        if (block[32999] != (char)me) abort();
        free(block);
    }
    done++;
}

int main(void) {
    for (int i = 0; i < ROUTINES; i++) {
        char *stack = mmap(NULL, STACK + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(stack + PAGE, STACK, PROT_READ | PROT_WRITE);
        getcontext(&routines[i]);
        routines[i].uc_stack.ss_sp = stack + PAGE;
        routines[i].uc_stack.ss_size = STACK;
        routines[i].uc_link = &home;
        makecontext(&routines[i], (void (*)(void))work, 1, i);
    }
    for (int round = 0; round <= 20; round++)
        for (int i = 0; i < ROUTINES; i++) swapcontext(&home, &routines[i]);
    printf("%d of %d\n", done, ROUTINES);
    return done != ROUTINES;
}
