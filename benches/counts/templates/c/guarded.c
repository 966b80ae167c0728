// A loop over a row only where a key says so: one outer round in several.
// role key u8,u32,u64 noise
// role in num noise
// role out =in zero as in
PHASE($roles, u64 steps, u64 *seed)
{
    const size_t row = in_n < 4096 ? in_n : 4096;
    u64 from = pick(seed, in_n - row + 1), taken = 0;
    for (u64 done = 0; done < steps; done++) {
        u64 k = key[(done * 7 + from) % key_n];
        if (k % $period == 3 && done % 64 == 0) {
            for (size_t i = 0; i < row; i++) out[from + i] = in[from + i] + ($in)k;
            taken++;
        }
    }
    return taken;
}
