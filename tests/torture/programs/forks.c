/* Forks in every way while threads allocate; every child allocates and answers by its exit code. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;

static void *churn(void *unused) {
    (void)unused;
    while (!stop) {
        char *small = malloc(100), *large = malloc(100000);
        small[0] = large[99999] = 1;
        free(large), free(small);
    }
    return NULL;
}

/* A child of a process with threads may allocate: glibc's fork sees to its allocator. */
static int child(int number) {
    int sum = 0;
    for (int i = 0; i < 50; i++) {
        char *block = malloc(40000 + number * 1000);
        memset(block, number, 40000);
        sum += block[39999] == number;
        free(block);
    }
    return sum == 50 ? number % 100 : 200;
}

static int code_of(pid_t process) {
    int status = 0;
    if (waitpid(process, &status, 0) != process || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, churn, NULL);
    int right = 0;
    for (int number = 1; number <= 40; number++) {
        pid_t process = fork();
        if (process == 0) _exit(child(number));
        right += code_of(process) == number;
    }
    stop = 1;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("%d of 40 children of fork\n", right);
    fflush(stdout);

    /* Without glibc's knowledge: no handler of pthread_atfork runs. One thread now, so it may allocate. */
    right = 0;
    for (int number = 1; number <= 10; number++) {
        pid_t process = syscall(SYS_fork);
        if (process == 0) _exit(child(number));
        right += code_of(process) == number;
    }
    printf("%d of 10 children of the bare system call\n", right);
    fflush(stdout);

    pid_t process = fork();
    if (process == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) exit(child(11));
        exit(code_of(grandchild) == 11 ? 12 : 13);
    }
    printf("grandchild: %d\n", code_of(process));
    return 0;
}
