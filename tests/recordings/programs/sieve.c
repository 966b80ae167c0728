// Sieve of Eratosthenes: the stride of the inner loop grows, so most of its time is in few of its runs.
#include "counted.h"

ALLOCATED(composite)
ALLOCATED(primes)

enum { LIMIT = 32000000, ROOM = 2100000 };

KERNEL void clear(COUNT(uint8_t) *composite) {
    for (size_t i = 0; i < LIMIT; ++i)
        composite[i] = 0;
}

KERNEL void strike(COUNT(uint8_t) *composite) {
    for (size_t i = 2; i * i < LIMIT; ++i)
        if (!composite[i])
            for (size_t j = i * i; j < LIMIT; j += i)
                composite[j] = 1;
}

KERNEL size_t gather(const COUNT(uint8_t) *RESTRICT composite, COUNT(uint32_t) *RESTRICT primes) {
    size_t found = 0;
    for (size_t i = 2; i < LIMIT; ++i)
        if (!composite[i])
            primes[found++] = (uint32_t)i;
    return found;
}

int main(int argc, char **argv) {
    COUNT(uint8_t) *composite = HEAP(composite, uint8_t, LIMIT);
    COUNT(uint32_t) *primes = HEAP(primes, uint32_t, ROOM);
    size_t found = 0;
    for (long round = rounds(argc, argv, 10); round > 0; --round) {
        clear(composite);
        strike(composite);
        found = gather(composite, primes);
    }
    return finish("sieve", (double)found);
}
