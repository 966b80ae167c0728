/* Puts every signal back to its default, as daemons, supervisors and shells do at their start, and computes. */
#include "case.h"
#include <signal.h>

int main(void) {
    for (int number = 1; number <= SIGRTMAX; number++) signal(number, SIG_DFL);
    allocate(MIB);
    compute(0.3);
    puts("went on");
    return 0;
}
