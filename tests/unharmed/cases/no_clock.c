/* Reading the processor's time-stamp counter is forbidden to it, by itself, from some moment on. */
#include "case.h"
#include <sys/prctl.h>

static volatile unsigned sum;

static void work(void) {
    for (int i = 0; i < 300000000; i++) sum += (unsigned)i;
}

int main(void) {
    work();
    must(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0), "prctl");
    work();
    work();
    printf("sum %u\n", sum);
    return 0;
}
