/* A filter of system calls, from some moment on, that kills whoever asks for memory, names it or changes it.
 * Usage: late_filters process|thread: for all threads, or for one beside the main thread. */
#include "case.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static volatile unsigned sum;

static void work(int rounds) {
    for (int i = 0; i < rounds; i++) sum += (unsigned)i;
}

static void forbid(unsigned flags) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter), "seccomp");
}

static void *alone(void *nothing) {
    forbid(0);
    work(500000000);
    syscall(SYS_exit, 0);
    return nothing;
}

int main(int count, char **words) {
    if (is(count, words, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, alone, NULL);
        pthread_join(thread, NULL);
    } else {
        /* Other code that is mapped makes copies of old no good. */
        work(100000000);
        forbid(0);
        work(500000000);
    }
    printf("sum %d\n", sum != 0);
    return 0;
}
