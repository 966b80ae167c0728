// An open hash table: probing until the key or a hole is found.
// role slot u64 empty
// role value u32,u64 zero as slot
PHASE($roles, u64 steps, u64 *seed)
{
    u64 found = 0, keys = slot_n * 2 / 3;
    for (u64 i = 0; i < steps; i += 3) {
        u64 key = pick(seed, keys) + 1, at = (key * 0x9E3779B97F4A7C15u >> 32) * slot_n >> 32;
        while (slot[at] && slot[at] != key) at = at + 1 < slot_n ? at + 1 : 0;
        if (slot[at]) found++;
        else slot[at] = key;
        value[at] += i & 15;
    }
    return found;
}
