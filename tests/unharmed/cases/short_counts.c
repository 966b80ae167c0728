/* Calls that a halt could cut short while the thread runs in the kernel: each moves all of its bytes, and none fails with
 * EINTR. Usage: short_counts write|writev|send|zero|random|waitall|epoll|sigtimedwait|semtimedop|receive */
#include "case.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

static const double SECONDS = 0.7;
static const struct timespec MOMENT = {0, 100000};
static char block[4 * MIB];
static int ends[2];

/* A child reads whatever comes, or writes for ever, until the other end is closed. */
static pid_t peer(int writes) {
    pid_t child = (pid_t)must(fork(), "fork");
    if (child == 0) {
        signal(SIGPIPE, SIG_IGN);
        close(ends[writes ? 0 : 1]);
        while ((writes ? write(ends[1], block, 64 * KIB) : read(ends[0], block, 64 * KIB)) > 0) {}
        _exit(0);
    }
    close(ends[writes ? 1 : 0]);
    return child;
}

static int zeroes, epoll, semaphores;

/* One call; whether it was cut short. Those that wait are entered right after some computing. */
static int is_cut(const char *way) {
    if (!strcmp(way, "write")) return write(ends[1], block, MIB) != MIB;
    if (!strcmp(way, "send")) return send(ends[1], block, MIB, 0) != MIB;
    if (!strcmp(way, "writev")) {
        struct iovec pieces[3] = {{block, 1000}, {block + 1000, 300000}, {block, 700001}};
        return writev(ends[1], pieces, 3) != 1001001;
    }
    if (!strcmp(way, "zero")) return read(zeroes, block, sizeof block) != sizeof block;
    if (!strcmp(way, "random")) return getrandom(block, MIB, 0) != MIB;
    if (!strcmp(way, "waitall")) return recv(ends[0], block, MIB, MSG_WAITALL) != MIB;
    for (volatile int i = 0; i < 20000; i++) {}
    if (!strcmp(way, "epoll")) {
        struct epoll_event event;
        return epoll_wait(epoll, &event, 1, 1) != 0;
    }
    if (!strcmp(way, "sigtimedwait")) {
        sigset_t user;
        sigemptyset(&user);
        sigaddset(&user, SIGUSR1);
        return sigtimedwait(&user, NULL, &MOMENT) != -1 || errno != EAGAIN;
    }
    if (!strcmp(way, "semtimedop")) {
        struct sembuf take = {0, -1, 0};
        return semtimedop(semaphores, &take, 1, &MOMENT) != -1 || errno != EAGAIN;
    }
    return recv(ends[0], block, 1, 0) != -1 || errno != EAGAIN; /* it has a timeout */
}

static int any_of(const char *way, const char *ways) { return strstr(ways, way) != NULL; }

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "write";
    int pipes = any_of(way, "write writev"), has_reader = any_of(way, "write writev send");
    sigset_t user;
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    sigprocmask(SIG_BLOCK, &user, NULL);
    must(pipes ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "ends");
    if (any_of(way, "receive")) {
        struct timeval moment = {0, 100};
        must(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment), "timeout");
    }
    pid_t child = has_reader || any_of(way, "waitall") ? peer(!has_reader) : 0;
    zeroes = (int)must(open("/dev/zero", O_RDONLY), "zero");
    epoll = (int)must(epoll_create1(0), "epoll");
    semaphores = (int)must(semget(IPC_PRIVATE, 1, 0600), "semget");
    long cut = 0;
    double end = seconds_of(CLOCK_MONOTONIC) + SECONDS;
    while (seconds_of(CLOCK_MONOTONIC) < end) cut += is_cut(way);
    semctl(semaphores, 0, IPC_RMID);
    close(ends[0]);
    close(ends[1]);
    if (child) waitpid(child, NULL, 0);
    printf("%s: %ld cut\n", way, cut);
    return cut != 0;
}
