/* Handles every real-time signal, sends each to itself ten times with a value, and counts: all of them and no other. */
#include "case.h"
#include <signal.h>

static volatile int came[65], wrong;

static void on_signal(int number, siginfo_t *from, void *context) {
    (void)context;
    came[number]++;
    wrong += from->si_code != SI_QUEUE || from->si_pid != getpid() || from->si_value.sival_int != number * 7;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) must(sigaction(number, &action, NULL), "sigaction");
    for (int round = 0; round < 10; round++) {
        for (int number = SIGRTMIN; number <= SIGRTMAX; number++) sigqueue(getpid(), number, (union sigval){number * 7});
        allocate(MIB);
        compute(0.03);
    }
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) wrong += came[number] != 10;
    printf("%d to %d, wrong %d\n", SIGRTMIN, SIGRTMAX, wrong);
    return 0;
}
