/* What every random program in C brings along: numbers, and ways to fill objects. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;
typedef f32 v4f __attribute__((vector_size(16)));
typedef u64 v4u __attribute__((vector_size(32)));

#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))

INLINE u64 next(u64 *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

/* A number below `bound`, which has at most 32 bits. */
INLINE u64 pick(u64 *seed, u64 bound) { return (next(seed) >> 32) * bound >> 32; }

#define FILL_zero(a, n, T, bound) ((void)0)
#define FILL_empty(a, n, T, bound) ((void)0)
#define FILL_noise(a, n, T, bound) do { for (size_t i = 0; i < (n); i++) (a)[i] = (T)(next(&seed) >> 57); } while (0)
#define FILL_below(a, n, T, bound) do { for (size_t i = 0; i < (n); i++) (a)[i] = (T)pick(&seed, bound); } while (0)
#define FILL_sorted(a, n, T, bound) do { for (size_t i = 0; i < (n); i++) (a)[i] = (T)(3 * i + 1); } while (0)
#define FILL_text(a, n, T, bound) \
    do { for (size_t i = 0; i < (n); i++) (a)[i] = pick(&seed, bound) ? 'a' + pick(&seed, 26) : ','; (a)[(n) - 1] = ','; } while (0)
/* Mostly short, some long: trips of loops. */
#define FILL_trips(a, n, T, bound) \
    do { for (size_t i = 0; i < (n); i++) { u64 r = next(&seed) >> 40; (a)[i] = (T)(r & 31 ? r % (bound) : (bound) + (r >> 5) % 40); } } while (0)
/* One cycle through all elements in random order (Sattolo). */
#define FILL_cycle(a, n, T, bound) \
    do { \
        for (size_t i = 0; i < (n); i++) (a)[i] = (T)i; \
        for (size_t i = (n) - 1; i > 0; i--) { size_t j = pick(&seed, i); T t = (a)[i]; (a)[i] = (a)[j]; (a)[j] = t; } \
    } while (0)
