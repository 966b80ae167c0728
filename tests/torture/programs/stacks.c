/* Allocates where its stack cannot be followed to its beginning. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PAGE = 4096, SMALL = 16 * PAGE, LARGE = 64 * SMALL };

static void allocate(void) {
    char *block = malloc(200000);
    memset(block, 1, 200000);
    free(block);
}

/* Overflowed: the handler's caller is a frame whose return address lies where nothing can be read. */
static sigjmp_buf back;

static void on_segv(int number) {
    (void)number;
    allocate();
    siglongjmp(back, 1);
}

static __attribute__((noinline)) long deeper(volatile char *above) {
    volatile char frame[100];
    frame[0] = above[0];
    return deeper(frame) + frame[0];
}

static void *overflow(void *unused) {
    static char other[64 << 10];
    stack_t alternative = {.ss_sp = other, .ss_size = sizeof other};
    sigaltstack(&alternative, NULL);
    struct sigaction action = {.sa_handler = on_segv, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    for (volatile int round = 0; round < 3; round++)
        if (sigsetjmp(back, 1) == 0) deeper("a");
    return unused;
}

/* Variable: the same call at the same place of the stack, and its caller's frame much smaller than before; where
 * that one ended before nothing is any more. */
static ucontext_t home, routine;
static volatile size_t wanted;

static void scratch(void) {
    volatile char *block = alloca(wanted);
    block[0] = 1;
    allocate();
}

static void run_on(char *stack, size_t bytes, size_t scratch_bytes) {
    wanted = scratch_bytes;
    getcontext(&routine);
    routine.uc_stack.ss_sp = stack;
    routine.uc_stack.ss_size = bytes;
    routine.uc_link = &home;
    makecontext(&routine, scratch, 0);
    swapcontext(&home, &routine);
}

static char *stack_of(size_t bytes) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void variable(void) {
    char *stack = stack_of(LARGE);
    run_on(stack, LARGE, LARGE - SMALL + PAGE);
    munmap(stack + SMALL, LARGE - SMALL);
    run_on(stack, SMALL, PAGE);
}

/* Endless: entered by a jump, so that the outermost frame has no return address, and none above it. */
static void *left;

__attribute__((used)) static void outermost(void) { allocate(); }

static __attribute__((noinline)) void enter(void *top) {
    __asm__ volatile(
        "push %%rbp; push %%rbx; mov %%rsp, %0\n"
        "mov %1, %%rsp; call outermost\n"
        "mov %0, %%rsp; pop %%rbx; pop %%rbp"
        : "+m"(left)
        : "r"(top)
        : "memory", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15");
}

static void endless(void) {
    char *stack = stack_of(SMALL + PAGE);
    mprotect(stack + SMALL, PAGE, PROT_NONE);
    enter(stack + SMALL);
}

int main(int count, char **arguments) {
    const char *which = count > 1 ? arguments[1] : "";
    pthread_t thread;
    if (!strcmp(which, "overflowed")) overflow(NULL);
    if (!strcmp(which, "overflowed-in-a-thread")) {
        pthread_create(&thread, NULL, overflow, NULL);
        pthread_join(thread, NULL);
    }
    if (!strcmp(which, "variable")) variable();
    if (!strcmp(which, "endless")) endless();
    puts("all allocated");
    return 0;
}
