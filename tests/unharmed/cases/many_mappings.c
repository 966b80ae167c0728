/* Almost as many mappings as the kernel allows, then allocations among them. */
#include "case.h"
#include <sys/mman.h>

enum { HOLES = 31000 };

int main(void) {
    char *all = mmap(NULL, 2L * HOLES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long made = 0;
    while (made < HOLES && !mprotect(all + 2 * made * PAGE, PAGE, PROT_READ)) made++;
    for (int i = 0; i < 50; i++) allocate(MIB);
    compute(0.2);
    printf("all made: %d\n", made == HOLES);
    return 0;
}
