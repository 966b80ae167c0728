// A sum that is unrolled by hand, with a rest.
// role a num noise
PHASE($roles, u64 steps, u64 *seed)
{
    $a s0 = 0, s1 = 0, s2 = 0, s3 = ($a)(*seed & 1);
    for (u64 done = 0; done < steps; done += a_n) {
        size_t i = 0;
        for (; i + 4 <= a_n; i += 4) {
            s0 += a[i];
            s1 += a[i + 1];
            s2 += a[i + 2];
            s3 += a[i + 3];
        }
        for (; i < a_n; i++) s0 += a[i];
    }
    return (u64)(s0 + s1 + s2 + s3);
}
