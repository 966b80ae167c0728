/* Runs with its owner's rights: the loader takes no library from whoever starts it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    char *block = malloc(100000);
    memset(block, 1, 100000);
    printf("%s\n", getuid() == geteuid() ? "own rights" : "owner's rights");
    return block[99999] + 3;
}
