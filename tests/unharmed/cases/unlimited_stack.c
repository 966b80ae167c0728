/* A stack without a limit: the kernel lays the address space out the other way round. */
#include "case.h"
#include <pthread.h>
#include <sys/resource.h>

static void *work(void *word) {
    allocate(MIB);
    return word;
}

int main(void) {
    if (!getenv("UNLIMITED")) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
        must(setrlimit(RLIMIT_STACK, &limit), "setrlimit");
        setenv("UNLIMITED", "1", 1);
        execl("/proc/self/exe", "unlimited_stack", NULL);
    }
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, work, NULL);
    if (!failed) pthread_join(thread, NULL);
    work(NULL);
    compute(0.2);
    printf("failed %d\n", failed);
    return 0;
}
