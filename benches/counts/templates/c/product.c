// A product of matrices, in blocks or plainly, and a small fully unrolled one in between.
// role a f32,f64 noise
// role b =a noise as a
// role c =a zero as a
static NOINLINE void ${phase}_small($a *restrict c, const $a *restrict a, const $a *restrict b)
{
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) c[i * 5 + j] -= a[i * 5] * b[j] + a[i * 5 + 1] * b[5 + j] + a[i * 5 + 2] * b[10 + j];
}
PHASE($roles, u64 steps, u64 *seed)
{
    const size_t n = $block * 4, pieces = a_n / 25;
    for (u64 done = 0; done < steps; done += n * n * n) {
        size_t from = pick(seed, a_n - n * n + 1);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < n; k++)
                for (size_t j = 0; j < n; j++) c[from + i * n + j] += a[from + i * n + k] * b[k * n + j];
        for (size_t p = 0; p < n * n; p++) ${phase}_small(c + p % pieces * 25, a + p * 7 % pieces * 25, b);
    }
    return (u64)c[0];
}
