/* Faults that it handles: each is told where it happened, and with which registers. */
#include "case.h"
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

enum { FAULTS = 400, STEPS = 300000 };

static sigjmp_buf back;
static volatile long wrong, handled;
static char *volatile expected;
static volatile unsigned sum;

extern char divides[], traps[], reads[];

static void handler(int number, siginfo_t *info, void *context) {
    char *at = (char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    char *told = info->si_addr;
    wrong += at != expected || (number == SIGSEGV ? told != (char *)16 : told != expected) || info->si_code <= 0;
    handled++;
    siglongjmp(back, 1);
}

static void fault(int kind) {
    for (int i = 0; i < STEPS; i++) sum += (unsigned)i * sum + 1;
    if (kind == 0) {
        expected = divides;
        __asm__ volatile("xor %%ecx, %%ecx\n mov $1, %%eax\n cltd\n .globl divides\n divides: idiv %%ecx" ::: "eax", "ecx", "edx");
    } else if (kind == 1) {
        expected = traps;
        __asm__ volatile(".globl traps\n traps: ud2");
    } else {
        expected = reads;
        __asm__ volatile("mov $16, %%eax\n .globl reads\n reads: mov (%%rax), %%eax" ::: "eax");
    }
}

int main(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGFPE, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    for (volatile int i = 0; i < FAULTS; i++)
        if (!sigsetjmp(back, 1)) fault(i % 3);
    printf("handled %ld, wrong %ld\n", handled, wrong);
    return 0;
}
