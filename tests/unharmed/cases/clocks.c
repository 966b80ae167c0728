/* Clocks and timers of CPU time, and what the kernel says was used. Usage: clocks process|thread|used|callback */
#include "case.h"
#include <signal.h>
#include <sys/resource.h>

static volatile int ticks;
static void on_tick(int number) { (void)number, ticks++; }
static void on_expiry(union sigval value) { ticks += value.sival_int; }

static timer_t started(clockid_t clock, struct sigevent *event) {
    timer_t timer;
    struct itimerspec times = {{0, 10000000}, {0, 10000000}};
    must(timer_create(clock, event, &timer), "timer_create");
    must(timer_settime(timer, 0, &times, NULL), "timer_settime");
    return timer;
}

static int timer(clockid_t clock) {
    signal(SIGALRM, on_tick);
    timer_t timer = started(clock, &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM});
    compute(0.3);
    timer_delete(timer);
    int seen = ticks;
    compute(0.05);
    printf("about 30: %d, none after: %d\n", seen > 5 && seen < 45, ticks == seen);
    return 0;
}

static int callback(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_expiry};
    event.sigev_value.sival_int = 1;
    timer_t timer = started(CLOCK_MONOTONIC, &event);
    while (ticks < 10) compute(0.01), allocate(MIB);
    timer_delete(timer);
    puts("ten came");
    return 0;
}

/* The clocks of the process, of its only thread and of getrusage agree, and time goes by as it should. */
static int used(void) {
    struct rusage usage;
    compute(0.3);
    double thread = seconds_of(CLOCK_THREAD_CPUTIME_ID), process = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    getrusage(RUSAGE_SELF, &usage);
    double told = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                  (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    printf("agree %d %d, sane %d, children %d\n", process - thread < 0.05, told - process < 0.05 && process - told < 0.05,
           thread >= 0.3 && thread < 0.4, getrusage(RUSAGE_CHILDREN, &usage) || usage.ru_utime.tv_sec);
    return 0;
}

int main(int count, char **words) {
    allocate(MIB);
    if (is(count, words, "process")) return timer(CLOCK_PROCESS_CPUTIME_ID);
    if (is(count, words, "thread")) return timer(CLOCK_THREAD_CPUTIME_ID);
    return is(count, words, "callback") ? callback() : used();
}
