// Counters that are changed by locked instructions.
// role key u16,u32 noise
// role counter u32,u64 zero
// role flag u8,u32 zero
PHASE($roles, u64 steps, u64 *seed)
{
    u64 sum = 0, at = pick(seed, key_n);
    for (u64 i = 0; i < steps; i++) {
        u64 k = (key[at] + i * 2654435761u) % counter_n;
        sum += __atomic_fetch_add(&counter[k], 1, __ATOMIC_RELAXED);
        if ((k & 7) == 2) {
            $flag old = flag[k % flag_n];
            __atomic_compare_exchange_n(&flag[k % flag_n], &old, old + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
        }
        if ((k & 31) == 9) sum += __atomic_exchange_n(&flag[i % flag_n], 1, __ATOMIC_SEQ_CST);
        at = at + 1 < key_n ? at + 1 : 0;
    }
    return sum;
}
