// Inner loops of one to five rounds, as many as a key says, with a helper in them.
// role key u8,u32 noise
// role table u16,u32,u64 noise
// role out u32,u64 zero as key
static $inlined u64 ${phase}_mix(u64 x) { return (x ^ x >> 15) * 0x2c1b3c6du; }
PHASE($roles, u64 steps, u64 *seed)
{
    u64 sum = *seed & 1;
    for (u64 done = 0; done < steps; done += 4 * key_n)
        for (size_t i = 0; i < key_n; i++) {
            u64 h = key[i] + i;
            for (u64 j = 0; j <= key[i] % 5; j++) {
                h = ${phase}_mix(h);
                sum += table[(h >> 3) % table_n];
            }
            out[i] = ($out)sum;
        }
    return sum;
}
