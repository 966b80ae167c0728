/* Every access of this program is known: 1000 stores, 500 loads, 300 locked additions, 7 masked moves of 32 bytes. */
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>

enum { N = 32768 };
static volatile uint64_t shared[N];

int main(void)
{
    volatile uint32_t *a = malloc(N * sizeof *a);
    float *masked = malloc(3 * N);
    uint32_t sum = 0;
    for (int i = 0; i < 1000; i++) a[i * 32] = i;
    for (int i = 0; i < 500; i++) sum += a[i];
    for (int i = 0; i < 300; i++) __asm__ volatile("lock addq $1, %0" : "+m"(shared[i]));
    __m256i lanes = _mm256_setr_epi32(-1, 0, -1, 0, 0, 0, 0, -1);
    for (int i = 0; i < 7; i++) {
        __m256 loaded = _mm256_maskload_ps(masked + 8 * i, lanes);
        __asm__ volatile("" : "+x"(loaded));
    }
    return (int)(sum & 1);
}
