/* Locks itself in and goes on. Usage: seccomp strict|strict-large|allowed|at-work|clockless
 * `strict`: read, write, _exit and sigreturn are left; `allowed`: a filter that kills at everything but a short list;
 * `at-work`: the same filter, by children that compute before and behind; `clockless`: the processor's clock may not be read, as in strict mode. */
#include "case.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void spin(void) {
    for (volatile long i = 0; i < 60000000; i++) {}
}

/* All memory is there before the door closes: no system call is needed for it later. */
static void strict(size_t bytes) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 64 * MIB);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    allocate(MIB);
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), "prctl");
    for (int i = 0; i < 300; i++) allocate(bytes + 16 * i);
    spin();
    must(write(1, "inside\n", 7), "write");
    syscall(SYS_exit, 7);
}

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void filtered(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read), ALLOW(write), ALLOW(exit), ALLOW(exit_group), ALLOW(brk), ALLOW(mmap), ALLOW(munmap),
        ALLOW(mremap), ALLOW(madvise), ALLOW(rt_sigreturn), ALLOW(fstat), ALLOW(newfstatat), ALLOW(futex),
        ALLOW(restart_syscall), ALLOW(clock_gettime),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new rights");
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "filter");
}

static void allowed(void) {
    filtered();
    for (int i = 0; i < 300; i++) allocate(MIB + PAGE * i);
    spin();
    puts("inside");
    exit(8);
}

/* Children that close the door at work: each is likely to be looked at just then. */
static void at_work(void) {
    int killed = 0;
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (!child) {
            compute(0.02);
            filtered();
            for (int j = 0; j < 200; j++) allocate(MIB + PAGE * j);
            spin();
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0), "waitpid");
        killed += status != 0;
    }
    printf("killed %d\n", killed);
    exit(10);
}

static void clockless(void) {
    must(prctl(PR_SET_TSC, PR_TSC_SIGSEGV), "clock");
    for (int i = 0; i < 300; i++) allocate(MIB + PAGE * i);
    spin();
    puts("inside");
    exit(9);
}

int main(int count, char **words) {
    puts("outside");
    fflush(stdout);
    if (is(count, words, "allowed")) allowed();
    if (is(count, words, "at-work")) at_work();
    if (is(count, words, "clockless")) clockless();
    strict(is(count, words, "strict-large") ? MIB : 100);
    return 1;
}
