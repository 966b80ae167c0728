/* Counts on each processor by restartable sequences: the kernel starts a sequence anew when it takes the processor away
 * in its middle, so no count is lost without a lock or an atomic instruction. Usage: critical_sections fs|pointer
 * `fs`: the thread's word is written by an address in `fs`, as librseq does; `pointer`: by a pointer, as older ones. */
#include "case.h"
#include <pthread.h>
#include <sys/rseq.h>

enum { THREADS = 6, ROUNDS = 20000, CPUS = 1024 };

static struct { long value, padding[7]; } counts[CPUS];
static int by_pointer;

static struct rseq *own_area(void) {
    return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* Adds one to the count of this processor; 0 where that was cut short. What lies between loading and storing takes a
 * microsecond or two. */
#define ADD(STORE_DESCRIPTOR)                                                                                          \
    asm goto(".pushsection __rseq_cs, \"aw\"\n .balign 32\n 3: .long 0, 0\n .quad 1f, (2f - 1f), 4f\n .popsection\n"   \
             "lea 3b(%%rip), %%rax\n" STORE_DESCRIPTOR "\n1:\n"                                                         \
             "mov 4(%[area]), %%eax\n cmp %%eax, %[cpu]\n jne %l[aborted]\n mov (%[count]), %%rdx\n"                    \
             "mov $2000, %%ecx\n 6: dec %%ecx\n jnz 6b\n inc %%rdx\n mov %%rdx, (%[count])\n2:\n"                       \
             ".pushsection __rseq_failure, \"ax\"\n .byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n 4: jmp %l[aborted]\n"  \
             ".popsection"                                                                                              \
             :                                                                                                          \
             : [area] "r"(area), [offset] "r"(__rseq_offset), [cpu] "r"(cpu), [count] "r"(&counts[cpu].value)           \
             : "rax", "rcx", "rdx", "memory", "cc"                                                                      \
             : aborted)

static int add(struct rseq *area) {
    int cpu = (int)((volatile struct rseq *)area)->cpu_id;
    if (by_pointer)
        ADD("mov %%rax, 8(%[area])");
    else
        ADD("mov %%rax, %%fs:8(%[offset])");
    return 1;
aborted:
    return 0;
}

static void *count(void *nothing) {
    struct rseq *area = own_area();
    for (int i = 0; i < ROUNDS; i++)
        while (!add(area)) {}
    return nothing;
}

int main(int words_count, char **words) {
    by_pointer = is(words_count, words, "pointer");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    long sum = 0;
    for (int i = 0; i < CPUS; i++) sum += counts[i].value;
    printf("lost %ld\n", (long)THREADS * ROUNDS - sum);
    return 0;
}
