/* A coroutine as hand-written switchers enter it: a jump with the stack pointer at the very top, no return address
 * and no mark of the end above it, only a guard page. */
#include "case.h"
#include <sys/mman.h>

enum { STACK = 128 * KIB };
__attribute__((used)) static void *home;

__attribute__((used)) static void body(void) {
    allocate(MIB);
    allocate(64 * KIB);
}

__attribute__((naked)) static void entry(void) {
    __asm__ volatile("call body\n\t"
                     "mov home(%rip), %rsp\n\t"
                     "pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\t"
                     "ret");
}

__attribute__((naked)) static void enter(__attribute__((unused)) char *top,
                                         __attribute__((unused)) void (*start)(void)) {
    __asm__ volatile("push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
                     "mov %rsp, home(%rip)\n\t"
                     "mov %rdi, %rsp\n\t"
                     "jmp *%rsi");
}

int main(void) {
    char *stack = mmap(NULL, STACK + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(mprotect(stack + STACK, PAGE, PROT_NONE), "mprotect");
    for (int round = 0; round < 20; round++) enter(stack + STACK, entry);
    puts("went on");
    return 0;
}
