/* Faults that a program makes on purpose. Usage: own_faults trap|barrier|null
 * `trap`: breakpoints of its own; `barrier`: pages that are unprotected when they are written to, as garbage
 * collectors have them; `null`: a null pointer that becomes an exception, with allocations in the handler. */
#include "case.h"
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

enum { PAGES = 64, ROUNDS = 20 };
static volatile int came;
static char *guarded;
static sigjmp_buf back;

static void on_trap(int number) { (void)number, came++; }

static void on_write(int number, siginfo_t *fault, void *context) {
    (void)number, (void)context;
    char *at = fault->si_addr;
    if (at < guarded || at >= guarded + PAGES * PAGE || fault->si_code != SEGV_ACCERR) _exit(98);
    came++;
    mprotect((char *)((uintptr_t)at & ~(PAGE - 1UL)), PAGE, PROT_READ | PROT_WRITE);
}

static void on_null(int number, siginfo_t *fault, void *context) {
    (void)number, (void)context;
    came += fault->si_addr == (void *)16;
    allocate(MIB);
    siglongjmp(back, 1);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(number, &action, NULL);
}

static void traps(void) {
    signal(SIGTRAP, on_trap);
    for (int i = 0; i < 100; i++) {
        raise(SIGTRAP);
        __asm__ volatile("int3");
        allocate(MIB);
    }
    compute(0.1);
}

static void barrier(void) {
    handle(SIGSEGV, on_write);
    guarded = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PAGES; i++) guarded[i * PAGE] = (char)round;
        mprotect(guarded, PAGES * PAGE, PROT_READ);
        allocate(MIB);
        compute(0.005);
    }
}

static void null(void) {
    handle(SIGSEGV, on_null);
    for (volatile int i = 0; i < 1000; i++)
        if (!sigsetjmp(back, 1)) *(volatile char *)(uintptr_t)16 = 1;
}

int main(int count, char **words) {
    if (is(count, words, "trap")) traps();
    if (is(count, words, "barrier")) barrier();
    if (is(count, words, "null")) null();
    printf("faults %d\n", came);
    return 0;
}
