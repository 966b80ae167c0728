/* Functions in assembly whose unwind information says nothing, or something wrong, about their frame; below them the
 * program allocates. Usage: odd_frames silent|wrong|register|undefined */
#include "case.h"

__attribute__((used)) static void body(void) {
    allocate(MIB);
    allocate(100000);
}

void silent(void), wrong(void), elsewhere(void), undefined(void);

/* The frame is put on the stack alike; what is said about it is not. */
#define FUNCTION(name, said)                                                                                    \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" said                              \
            "push %rbx\n push %rbp\n lea 64(%rsp), %rbx\n mov $16, %ebp\n sub $8, %rsp\n call body\n add $8, %rsp\n"    \
            "pop %rbp\n pop %rbx\n ret\n .cfi_endproc\n")

FUNCTION(silent, ".cfi_startproc simple\n");
FUNCTION(wrong, ".cfi_startproc\n .cfi_def_cfa rsp, 4096\n .cfi_offset rip, -8\n");
FUNCTION(elsewhere, ".cfi_startproc\n .cfi_def_cfa rbp, 0\n .cfi_offset rip, -8\n");
FUNCTION(undefined, ".cfi_startproc\n .cfi_undefined rip\n");

int main(int count, char **words) {
    for (int i = 0; i < 20; i++) {
        if (is(count, words, "silent")) silent();
        if (is(count, words, "wrong")) wrong();
        if (is(count, words, "register")) elsewhere();
        if (is(count, words, "undefined")) undefined();
    }
    puts("went on");
    return 0;
}
