/* Cancels threads: those that compute and may be cancelled anywhere, those that allocate and ask, those that wait. */
#include "case.h"
#include <pthread.h>

static int cleaned;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void clean(void *nothing) {
    (void)nothing;
    pthread_mutex_lock(&lock);
    cleaned++;
    pthread_mutex_unlock(&lock);
}

static void *anywhere(void *nothing) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (volatile long i = 0;; i++) {}
    return nothing;
}

static void *asking(void *nothing) {
    pthread_cleanup_push(clean, NULL);
    for (;;) {
        allocate(200000);
        pthread_testcancel();
    }
    pthread_cleanup_pop(0);
    return nothing;
}

static void *waiting(void *nothing) {
    pthread_cleanup_push(clean, NULL);
    for (;;) pause();
    pthread_cleanup_pop(0);
    return nothing;
}

int main(void) {
    void *(*kinds[])(void *) = {anywhere, asking, waiting};
    int cancelled = 0;
    for (int round = 0; round < 100; round++) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, kinds[i], NULL);
        usleep(3000);
        for (int i = 0; i < 3; i++) pthread_cancel(threads[i]);
        for (int i = 0; i < 3; i++) {
            void *result;
            pthread_join(threads[i], &result);
            cancelled += result == PTHREAD_CANCELED;
        }
    }
    printf("cancelled %d, cleaned at least once: %d\n", cancelled, cleaned > 0);
    return 0;
}
