/* Every way to end, with text still buffered and handlers registered. Usage: exits WAY */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *block;

static void at_exit(void) {
    printf("atexit sees %c\n", block[70000]);
    free(block);
}

__attribute__((destructor)) static void at_end(void) {
    char *late = malloc(100000);
    late[99999] = 'd';
    printf("destructor sees %c\n", late[99999]);
    free(late);
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "return";
    block = malloc(80000);
    memset(block, 'x', 80000);
    atexit(at_exit);
    printf("buffered: no newline at the end when stdout is a pipe");
    if (!strcmp(way, "exit")) exit(7);
    if (!strcmp(way, "_exit")) _exit(5);
    if (!strcmp(way, "quick_exit")) quick_exit(9);
    if (!strcmp(way, "abort")) abort();
    if (!strcmp(way, "segv")) raise(SIGSEGV);
    if (!strcmp(way, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(way, "term")) kill(getpid(), SIGTERM);
    return 3;
}
