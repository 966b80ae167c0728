/* Blocks every signal and computes: nothing is pending, nothing comes by signalfd or sigtimedwait, a sleep is whole.
 * Then its own signals come, each once, with their senders. */
#include "case.h"
#include <signal.h>
#include <sys/signalfd.h>

static int pending(void) {
    sigset_t set;
    int found = 0;
    sigpending(&set);
    for (int number = 1; number <= SIGRTMAX; number++) found += sigismember(&set, number) == 1;
    return found;
}

int main(void) {
    sigset_t all;
    struct signalfd_siginfo came;
    struct timespec sleep = {0, 100000000}, rest = {0, 0}, now = {0, 0};
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    int file = signalfd(-1, &all, SFD_NONBLOCK);
    allocate(MIB);
    compute(0.3);
    printf("pending %d, read %d, waited %d, ", pending(), (int)read(file, &came, sizeof came), sigtimedwait(&all, NULL, &now));
    printf("slept %d %ld\n", nanosleep(&sleep, &rest), rest.tv_nsec);
    for (int number = SIGRTMIN; number < SIGRTMIN + 5; number++) raise(number);
    int right = 0;
    while (read(file, &came, sizeof came) == sizeof came) right += came.ssi_pid == (unsigned)getpid();
    printf("own %d, then pending %d\n", right, pending());
    return 0;
}
