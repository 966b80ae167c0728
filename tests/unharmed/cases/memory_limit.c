/* Comes to the end of its address space by a limit of its own, and lives with it. */
#include "case.h"
#include <sys/resource.h>

int main(void) {
    static void *blocks[2000];
    struct rlimit limit = {300L * MIB, 300L * MIB};
    must(setrlimit(RLIMIT_AS, &limit), "setrlimit");
    int got = 0;
    while (got < 2000 && (blocks[got] = malloc(MIB))) got++;
    printf("some: %d, refused: %d\n", got > 50, errno == ENOMEM);
    while (got) free(blocks[--got]);
    allocate(MIB);
    compute(0.1);
    puts("went on");
    return 0;
}
