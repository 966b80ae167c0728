/* Arithmetic and nothing else: what sampling costs a program that never waits.  Usage: spin [rounds] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    uint64_t rounds = count > 1 ? strtoull(arguments[1], NULL, 10) : 500000000, state = 1;
    while (rounds--) state = state * 6364136223846793005u + 1442695040888963407u;
    printf("%llu\n", (unsigned long long)state);
    return 0;
}
