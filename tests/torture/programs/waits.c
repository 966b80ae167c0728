/* Allocates until a debugger has looked, which it is told by a changed variable; at most a minute. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

volatile int looked;

int main(int count, char **words) {
    if (count > 1) {
        FILE *file = fopen(words[1], "w");
        fprintf(file, "%d\n", getpid());
        fclose(file);
    }
    time_t end = time(NULL) + 60;
    while (!looked && time(NULL) < end) {
        char *block = malloc(50000);
        memset(block, 1, 50000);
        free(block);
    }
    printf("looked: %d\n", looked);
    return looked ? 8 : 1;
}
