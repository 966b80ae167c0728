/* Threads that compute between calls of the kernel's which return by themselves: they wake each other, read a file, ask
 * for memory, give the processor away; now and then a timer's handler comes between. What they compute must not change. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { ROUNDS = 6000, VALUES = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;
static unsigned sums[2];
static volatile sig_atomic_t alarms;

static void on_alarm(int signal) { alarms += signal == SIGALRM; }

static unsigned mixed(unsigned sum, const unsigned char *bytes, int count) {
    for (int i = 0; i < count; i++) sum = sum * 31 + bytes[i] + (sum >> 7);
    return sum;
}

static void *work(void *given) {
    int own = (int)(long)given, file = open("/proc/self/exe", O_RDONLY);
    unsigned char bytes[VALUES];
    unsigned sum = own;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&mutex);
        while (turn % 2 != own) pthread_cond_wait(&turned, &mutex);
        turn++;
        pthread_cond_broadcast(&turned);
        pthread_mutex_unlock(&mutex);
        ssize_t read = pread(file, bytes, sizeof bytes, round % 8 * 512);
        if (read <= 0) abort();
        if (syscall(SYS_gettid) <= 0 || sched_yield() != 0 || lseek(file, round, SEEK_SET) != round) abort();
        if (round % 64 == 0) {
            unsigned char *fresh = mmap(NULL, VALUES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (fresh == MAP_FAILED || fresh[VALUES - 1] != 0) abort();
            munmap(fresh, VALUES);
        }
        for (int again = 0; again < 8; again++) sum = mixed(sum, bytes, (int)read);
    }
    close(file);
    sums[own] = sum;
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 3000}, {0, 3000}};
    setitimer(ITIMER_REAL, &every, NULL);
    pthread_t other;
    pthread_create(&other, NULL, work, (void *)1);
    work((void *)0);
    pthread_join(other, NULL);
    printf("sums %u %u, turns %d, alarms %s\n", sums[0], sums[1], turn, alarms > 10 ? "many" : "few");
    return 23;
}
