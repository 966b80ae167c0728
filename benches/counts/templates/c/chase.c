// A linked list in random order: each address comes from the data before it.
// role follow u32 cycle
// role data u64,u32,f64 noise as follow
PHASE($roles, u64 steps, u64 *seed)
{
    u64 at = pick(seed, follow_n), sum = 0;
    for (u64 i = 0; i < steps; i++) {
        if ($often) sum += (u64)data[at];
        at = follow[at];
    }
    return sum + at;
}
