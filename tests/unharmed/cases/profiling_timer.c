/* Is its own profiler: handler, timer, count of SIGPROF. Usage: profiling_timer handler|ignored|blocked|none
 * `none` has a handler and no timer (an execution limit that is not in force): nothing may come. */
#include "case.h"
#include <signal.h>
#include <sys/time.h>

static volatile int ticks;
static void on_tick(int number) { (void)number, ticks++; }

static void start_timer(long interval_us) {
    struct itimerval timer = {{0, interval_us}, {0, interval_us}};
    must(setitimer(ITIMER_PROF, &timer, NULL), "setitimer");
}

static int handled(void) {
    start_timer(10000);
    compute(0.6);
    return ticks > 10 && ticks < 90;
}

static int pending(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    sigprocmask(SIG_BLOCK, &set, NULL);
    compute(0.2);
    sigpending(&set);
    return sigismember(&set, SIGPROF);
}

int main(int count, char **words) {
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    if (is(count, words, "handler")) printf("about 60 ticks: %d\n", handled());
    else if (is(count, words, "blocked")) printf("pending without a timer: %d\n", pending());
    else {
        if (is(count, words, "ignored")) signal(SIGPROF, SIG_IGN);
        compute(0.2);
        printf("ticks without a timer: %d\n", ticks);
    }
    return 0;
}
