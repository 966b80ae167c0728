/* Becomes another program. Usage: exec chain|shell|thread|crowd [DEPTH]
 * `chain`: itself, 60 times; `thread`: from a thread; `crowd`: from a thread while 16 others compute. */
#include "case.h"
#include <pthread.h>

static void *become_a_shell(void *code) {
    char line[64];
    snprintf(line, sizeof line, "echo from the shell; exit %s", (char *)code);
    allocate(MIB);
    usleep(20000);
    execl("/bin/sh", "sh", "-c", line, NULL);
    return NULL;
}

static void *work(void *nothing) {
    for (;;) {
        allocate(100000);
        compute(0.001);
    }
    return nothing;
}

static int chain(int depth) {
    char next[16];
    allocate(MIB);
    printf("%d ", depth);
    fflush(stdout);
    if (depth == 60) return puts("end"), 16;
    snprintf(next, sizeof next, "%d", depth + 1);
    execl("/proc/self/exe", "exec", "chain", next, NULL);
    return 99;
}

int main(int count, char **words) {
    if (is(count, words, "chain")) return chain(count > 2 ? atoi(words[2]) : 0);
    pthread_t thread;
    if (is(count, words, "shell")) become_a_shell("17");
    for (int i = 0; is(count, words, "crowd") && i < 16; i++) pthread_create(&thread, NULL, work, NULL);
    pthread_create(&thread, NULL, become_a_shell, is(count, words, "crowd") ? "19" : "18");
    for (;;) pause();
}
