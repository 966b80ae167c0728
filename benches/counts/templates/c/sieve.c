// A sieve: strides that grow.
// role composite u8,u32 zero
PHASE($roles, u64 steps, u64 *seed)
{
    u64 primes = *seed & 1;
    size_t n = composite_n < 400000 ? composite_n : 400000;
    for (u64 done = 0; done < steps; done += 3 * n) {
        for (size_t i = 0; i < n; i++) composite[i] = 0;
        for (size_t i = 2; i < n; i++) {
            if (composite[i]) continue;
            primes++;
            for (size_t j = i * 2; j < n; j += i) composite[j] = 1;
        }
    }
    return primes;
}
