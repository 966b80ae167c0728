/* A timer jumps out of whatever is under way, system calls about memory included. */
#include "case.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

static sigjmp_buf back;
static volatile int jumps;

static void on_timer(int number) {
    (void)number;
    jumps++;
    siglongjmp(back, 1);
}

static void timer(long interval_us) {
    struct itimerval value = {{0, interval_us}, {0, interval_us}};
    must(setitimer(ITIMER_VIRTUAL, &value, NULL), "setitimer");
}

int main(void) {
    struct sigaction action = {.sa_handler = on_timer};
    sigaction(SIGVTALRM, &action, NULL);
    timer(4000);
    sigsetjmp(back, 1);
    while (jumps < 30) {
        void *mapping = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (volatile int i = 0; i < 10000; i++) {}
        munmap(mapping, MIB);
    }
    timer(0);
    allocate(MIB);
    printf("jumps %d\n", jumps);
    return 0;
}
