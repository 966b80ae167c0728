/* Writes down where one byte in 17 is set, again and again: a counter that most rounds of its loop go past. */
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1 << 22, ROUNDS = 300 };

int main(void) {
    unsigned char *marks = malloc(BYTES);
    int *found = malloc(BYTES * sizeof *found);
    int count = 0;
    for (int i = 0; i < BYTES; i++) marks[i] = i * 2654435761u % 17 == 0;
    for (int round = 0; round < ROUNDS; round++) {
        count = 0;
        for (int i = 0; i < BYTES; i++)
            if (marks[i]) found[count++] = i;
    }
    printf("%d\n", found[count / 2]);
    return 0;
}
