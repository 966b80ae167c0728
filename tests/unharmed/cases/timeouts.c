/* Waits with timeouts, in every way, while another thread computes; nothing interrupts them before their time.
 * Usage: timeouts [quiet]: without the other thread. */
#include "case.h"
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { WAIT_MS = 10, ROUNDS = 8 };
static const struct timespec WAIT = {0, WAIT_MS * 1000000};
static atomic_int stop;
static int ends[2], events, semaphores;
static struct epoll_event event;

static int by_epoll(void) { return epoll_wait(events, &event, 1, WAIT_MS); }
static int by_poll(void) { return poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, WAIT_MS); }
static int by_select(void) { return select(0, NULL, NULL, NULL, &(struct timeval){0, WAIT_MS * 1000}); }
static int by_nanosleep(void) { return nanosleep(&WAIT, NULL); }
static int by_clock(void) { return (errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &WAIT, NULL)); }
static int by_receiving(void) { return recv(ends[0], &event, 1, 0) == -1 && errno == EAGAIN ? 0 : -1; }

static int by_sigtimedwait(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return sigtimedwait(&set, NULL, &WAIT) == -1 && errno == EAGAIN ? 0 : -1;
}

static int by_futex(void) {
    static int word;
    long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &WAIT, NULL, 0);
    return result == -1 && errno == ETIMEDOUT ? 0 : -1;
}

static int by_semaphore(void) {
    struct sembuf take = {0, -1, 0};
    return semtimedop(semaphores, &take, 1, &WAIT) == -1 && errno == EAGAIN ? 0 : -1;
}

static struct {
    const char *name;
    int (*wait)(void);
} ways[] = {{"epoll_wait", by_epoll},        {"poll", by_poll},   {"select", by_select},
            {"nanosleep", by_nanosleep},     {"clock", by_clock}, {"recv", by_receiving},
            {"sigtimedwait", by_sigtimedwait}, {"futex", by_futex}, {"semtimedop", by_semaphore}};

static void *compute_on(void *nothing) {
    while (!stop) compute(0.01), allocate(MIB);
    return nothing;
}

static void prepare(void) {
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    must(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, WAIT_MS * 1000}, sizeof(struct timeval)),
         "timeout");
    must(events = epoll_create1(0), "epoll");
    must(semaphores = semget(IPC_PRIVATE, 1, 0600), "semget");
}

int main(int count, char **words) {
    pthread_t thread;
    prepare();
    if (!is(count, words, "quiet")) pthread_create(&thread, NULL, compute_on, NULL);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int early = 0, wrong = 0;
        for (int round = 0; round < ROUNDS; round++) {
            double begin = seconds_of(CLOCK_MONOTONIC);
            compute(0.002); /* it has just been seen running when it begins to wait */
            wrong += ways[i].wait() != 0;
            early += seconds_of(CLOCK_MONOTONIC) - begin < WAIT_MS * 1e-3;
        }
        printf("%s: wrong %d, early %d\n", ways[i].name, wrong, early);
    }
    semctl(semaphores, 0, IPC_RMID);
    stop = 1;
    if (!is(count, words, "quiet")) pthread_join(thread, NULL);
    return 0;
}
