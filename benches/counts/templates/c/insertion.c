// Insertion sort of short pieces, then a merge of neighbours.
// role a u32,u64,f32,f64 noise
// role merged =a zero as a
PHASE($roles, u64 steps, u64 *seed)
{
    const size_t piece = 16;
    u64 at = pick(seed, a_n / 64) * 32;
    for (u64 done = 0; done < steps; done += 32 * 8) {
        $a *x = a + at, *y = x + piece, *to = merged + at;
        for (size_t i = 0; i < 2 * piece; i++) x[i] = ($a)pick(seed, 1000);
        for (int half = 0; half < 2; half++) {
            $a *p = half ? y : x;
            for (size_t i = 1; i < piece; i++) {
                $a v = p[i];
                size_t j = i;
                for (; j > 0 && p[j - 1] > v; j--) p[j] = p[j - 1];
                p[j] = v;
            }
        }
        size_t i = 0, j = 0;
        while (i < piece && j < piece) *to++ = x[i] <= y[j] ? x[i++] : y[j++];
        while (i < piece) *to++ = x[i++];
        while (j < piece) *to++ = y[j++];
        at = at + 96 < a_n ? at + 64 : 0;
    }
    return (u64)merged[at];
}
