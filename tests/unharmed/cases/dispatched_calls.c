/* Takes all system calls that are made outside of one place for itself, as emulators do (prctl(2),
 * PR_SET_SYSCALL_USER_DISPATCH): there must be none that it did not make. */
#include "case.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static volatile char taken;
static volatile long calls;
static volatile unsigned sum;

static void handler(int number) {
    (void)number;
    calls++;
    taken = SYSCALL_DISPATCH_FILTER_ALLOW;
}

int main(void) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGSYS, &action, NULL);
    taken = SYSCALL_DISPATCH_FILTER_ALLOW;
    must(prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &taken), "prctl");
    taken = SYSCALL_DISPATCH_FILTER_BLOCK;
    for (int i = 0; i < 600000000; i++) sum += (unsigned)i;
    taken = SYSCALL_DISPATCH_FILTER_ALLOW;
    printf("calls %ld\n", calls);
    return 0;
}
