/* A thread closes a library and opens another one in its place while the main thread computes, which calls what is
 * there; each waits for the other without a call of the kernel's. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 300, CALLS = 300000 };

typedef int Answer(int);

static atomic_int turn;
static Answer *volatile code;
static int moved;

static void *swap(void *nothing) {
    const char *names[] = {"libanswer_1.so", "libanswer_2.so"};
    for (int round = 0; round < ROUNDS; round++) {
        void *library = dlopen(names[round & 1], RTLD_NOW | RTLD_LOCAL);
        Answer *there = (Answer *)dlsym(library, "answer");
        moved += round > 0 && there != code;
        code = there;
        turn++;
        while (turn != 2 * round + 2) __builtin_ia32_pause();
        dlclose(library);
    }
    return nothing;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, swap, NULL);
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        while (turn != 2 * round + 1) __builtin_ia32_pause();
        for (int i = 0; i < CALLS; i++) wrong += code(i) != i + 1 + (round & 1);
        turn++;
    }
    pthread_join(thread, NULL);
    printf("wrong %ld, at another place %d\n", wrong, moved);
    return 0;
}
