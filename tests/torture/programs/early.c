/* Allocates before any constructor has run, the preload library's included: from .preinit_array. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *zeroed[4], *grown, *large;

static void before_everything(int count, char **words, char **variables) {
    (void)count, (void)words, (void)variables;
    for (int i = 0; i < 4; i++) zeroed[i] = calloc(50, 40);
    grown = malloc(10);
    memset(grown, 'g', 10);
    grown = realloc(grown, 100000);
    large = calloc(1, 1 << 20);
    free(zeroed[3]);
}

__attribute__((section(".preinit_array"), used)) static void (*first)(int, char **, char **) = before_everything;

int main(void) {
    int wrong = 0;
    for (int i = 0; i < 3; i++) {
        for (int byte = 0; byte < 2000; byte++) wrong += zeroed[i][byte] != 0;
        memset(zeroed[i], 'a' + i, 2000);
    }
    for (int i = 0; i < 3; i++) wrong += zeroed[i][0] != 'a' + i || zeroed[i][1999] != 'a' + i;
    wrong += memcmp(grown, "gggggggggg", 10) != 0;
    for (int byte = 0; byte < 1 << 20; byte++) wrong += large[byte] != 0;
    for (int i = 0; i < 3; i++) zeroed[i] = realloc(zeroed[i], 60000), wrong += zeroed[i][1999] != 'a' + i;
    for (int i = 0; i < 3; i++) free(zeroed[i]);
    free(grown), free(large);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
