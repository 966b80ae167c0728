/* Comes to the end of its memory by a limit of its own, and lives with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int main(void) {
    struct rlimit most = {1L << 29, 1L << 29};
    setrlimit(RLIMIT_AS, &most);
    static char *blocks[20000];
    int got = 0;
    while (got < 20000 && (blocks[got] = malloc(100000))) blocks[got++][0] = 1;
    for (int i = 0; i < got; i++) free(blocks[i]);
    char *again = calloc(1, 1 << 20);
    printf("%s, then %s\n", got < 20000 ? "refused" : "never refused", again ? "given" : "refused");
    return 0;
}
