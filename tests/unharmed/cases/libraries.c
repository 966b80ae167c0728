/* Opens and closes libraries all the time, while another thread allocates. */
#include "case.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int stop;

static void *allocate_all_the_time(void *nothing) {
    while (!stop) allocate(100000);
    return nothing;
}

static int open_and_close(const char *name) {
    void *library = dlopen(name, RTLD_NOW);
    return library && !dlclose(library);
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, allocate_all_the_time, NULL);
    int cheap = 0, whole = 0;
    for (int i = 0; i < 2000; i++) cheap += open_and_close("libm.so.6");
    for (int i = 0; i < 200; i++) whole += open_and_close("libBrokenLocale.so.1");
    stop = 1;
    pthread_join(thread, NULL);
    printf("opened %d and %d, missing: %d\n", cheap, whole, dlopen("libnothing.so", RTLD_NOW) == NULL);
    return 0;
}
