/* Changes its own code while it runs, and runs it each time. Usage: patched_code text|shared|private
 * `text`: a function of the program itself, as tracers and hot patches do; `shared`, `private`: code in a file that is
 * mapped twice, to be written and to be run, as some translators do. */
#include "case.h"
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

enum { ROUNDS = 300, CALLS = 400000 };

typedef int Answer(int);

/* `lea eax, [rdi + NUMBER]`: the number is the four bytes at the third. */
__attribute__((aligned(4096), naked)) static int answer(int by) {
    (void)by;
    __asm__("lea 0x11111111(%rdi), %eax\n ret\n .balign 4096");
}

static char *writable(int count, char **words, Answer **code) {
    *code = answer;
    if (is(count, words, "text")) {
        must(mprotect((void *)answer, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), "mprotect");
        must(mprotect((void *)answer, PAGE, PROT_READ | PROT_EXEC), "mprotect");
        return (char *)answer;
    }
    int file = (int)must(open("code", O_RDWR | O_CREAT | O_TRUNC, 0600), "open");
    must(write(file, (void *)answer, PAGE), "write");
    int kind = is(count, words, "shared") ? MAP_SHARED : MAP_PRIVATE;
    *code = (Answer *)mmap(NULL, PAGE, PROT_READ | PROT_EXEC, kind, file, 0);
    return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

int main(int count, char **words) {
    Answer *code;
    char *bytes = writable(count, words, &code);
    int is_text = bytes == (char *)code;
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (is_text) must(mprotect(bytes, PAGE, PROT_READ | PROT_WRITE), "mprotect");
        memcpy(bytes + 2, &round, sizeof round);
        if (is_text) must(mprotect(bytes, PAGE, PROT_READ | PROT_EXEC), "mprotect");
        __builtin___clear_cache(bytes, bytes + 8);
        for (int i = 0; i < CALLS; i++) wrong += code(i) != i + round;
    }
    printf("wrong %ld\n", wrong);
    return 0;
}
