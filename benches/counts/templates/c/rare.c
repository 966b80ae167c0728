// An arm that is seldom taken, in a loop that runs on.
// role a u32,u64 noise
// role table u32,u64,u16 zero
// role log u64 zero
PHASE($roles, u64 steps, u64 *seed)
{
    u64 sum = 0, x = *seed | 1, logged = 0;
    for (u64 i = 0, at = 0; i < steps; i++, at = at + 1 < a_n ? at + 1 : 0) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        u64 r = x >> 40;
        sum += a[at];
        if (r % $rarity == 0) {
            log[logged % log_n] = i;
            logged += 1;
            table[r % table_n] += 1;
        } else if (r % 16 == 1) {
            table[sum % table_n] ^= 1;
        }
    }
    *seed = x | 1;
    return sum + logged;
}
