/* Everything about allocation that a preload library can get wrong. Prints what it saw, without
 * addresses, so that two runs can be compared; exits with 0 if the standard's promises held. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

static void check(int held, const char *promise) {
    if (!held) {
        failures++;
        printf("BROKEN: %s\n", promise);
    }
}

static void sizes(void) {
    void *a = malloc(0), *b = malloc(0);
    check(a && b && a != b, "malloc(0) returns unique pointers");
    free(a);
    free(b);
    free(NULL);
    check(calloc(SIZE_MAX / 2, 3) == NULL && errno == ENOMEM, "calloc refuses an overflow");
    char *zeroed = calloc(1000, 100);
    int sum = 0;
    for (int i = 0; i < 100000; i++) sum |= zeroed[i];
    check(sum == 0, "calloc zeroes");
    check(reallocarray(zeroed, SIZE_MAX / 2, 3) == NULL, "reallocarray refuses an overflow");
    memset(zeroed, 7, 100000);
    char *grown = realloc(zeroed, 50 << 20);
    check(grown && grown[0] == 7 && grown[99999] == 7, "realloc keeps the content when it grows");
    grown = realloc(grown, 40000);
    check(grown && grown[39999] == 7, "realloc keeps the content when it shrinks");
    check(realloc(grown, SIZE_MAX / 2) == NULL && grown[5] == 7, "a failed realloc leaves the block alone");
    free(grown);
}

static void alignments(void) {
    for (size_t alignment = 16; alignment <= 1 << 16; alignment *= 4) {
        void *block = NULL;
        check(posix_memalign(&block, alignment, 100000) == 0 && (uintptr_t)block % alignment == 0, "posix_memalign aligns");
        free(block);
        block = aligned_alloc(alignment, 1 << 17);
        check(block && (uintptr_t)block % alignment == 0, "aligned_alloc aligns");
        free(block);
        block = memalign(alignment, 70000);
        check(block && (uintptr_t)block % alignment == 0, "memalign aligns");
        check(malloc_usable_size(block) >= 70000, "malloc_usable_size knows the block");
        free(block);
    }
    void *block = valloc(5000), *other = pvalloc(33000);
    check((uintptr_t)block % 4096 == 0 && (uintptr_t)other % 4096 == 0, "valloc and pvalloc give pages");
    free(block);
    free(other);
    errno = 0;
    check(posix_memalign(&block, 3, 100) == EINVAL && errno == 0, "posix_memalign returns its error");
}

static void errors(void) {
    errno = 4711;
    void *block = malloc(1 << 20);
    check(errno == 4711, "malloc leaves errno alone");
    free(block);
    check(errno == 4711, "free leaves errno alone");
    char *bytes = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(bytes != MAP_FAILED && errno == 4711, "mmap leaves errno alone");
    bytes[5] = 9;
    bytes = mremap(bytes, 1 << 20, 8 << 20, MREMAP_MAYMOVE);
    check(bytes != MAP_FAILED && bytes[5] == 9, "mremap moves the content");
    check(munmap(bytes, 8 << 20) == 0, "munmap works");
    check(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL, "mmap reports its error");
    check(malloc(SIZE_MAX / 2) == NULL && errno == ENOMEM, "malloc reports that it has no memory");
}

static void *churn(void *seed) {
    uintptr_t state = (uintptr_t)seed;
    char *live[64] = {0};
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t slot = state >> 58, bytes = (state >> 33) % 90000;
        free(live[slot]);
        live[slot] = malloc(bytes + 1);
        live[slot][0] = live[slot][bytes] = (char)slot;
    }
    for (int slot = 0; slot < 64; slot++) {
        check(!live[slot] || live[slot][0] == slot, "blocks belong to one owner");
        free(live[slot]);
    }
    return seed;
}

static void *leave(void *unused) {
    free(malloc(100000));
    pthread_exit(unused);
}

static void threads(void) {
    pthread_t others[4];
    for (uintptr_t i = 0; i < 4; i++) check(pthread_create(&others[i], NULL, churn, (void *)(i + 1)) == 0, "a thread starts");
    for (uintptr_t i = 0; i < 4; i++) {
        void *result;
        pthread_join(others[i], &result);
        check(result == (void *)(i + 1), "a thread's argument and result arrive");
    }
    pthread_t other;
    void *result;
    pthread_create(&other, NULL, leave, &failures);
    pthread_join(other, &result);
    check(result == &failures, "pthread_exit works");
}

static void children(void) {
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            churn((void *)9);
            free(malloc(1 << 20));
            _exit(failures ? 99 : 40 + i);
        }
        int status;
        waitpid(child, &status, 0);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 40 + i, "a forked child allocates and exits");
    }
}

static volatile sig_atomic_t signals;

static void on_signal(int signal) {
    (void)signal;
    void *bytes = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes != MAP_FAILED && munmap(bytes, 1 << 16) == 0) signals++;
}

static void handlers(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(40000);
        raise(SIGUSR1);
        free(block);
    }
    check(signals == 1000, "a signal handler maps memory");
}

static void libraries(void) {
    void *library = dlopen("libm.so.6", RTLD_NOW);
    double (*cosine)(double) = library ? (double (*)(double))dlsym(library, "cos") : NULL;
    check(cosine && cosine(0.0) == 1.0, "dlopen and dlsym work");
    if (library) dlclose(library);
}

static void at_end(void) { printf("end\n"); }

int main(void) {
    atexit(at_end);
    sizes();
    alignments();
    errors();
    threads();
    fflush(stdout);
    children();
    handlers();
    libraries();
    for (int i = 0; i < 1000000; i++) free(malloc(i % 33000));
    printf("%d failures", failures); /* no newline, no flush: exit has to do it */
    return failures ? 1 : 0;
}
