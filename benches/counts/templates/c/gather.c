// Random gather and scatter through an index.
// role index u32 below(target)
// role in num noise
// role target =in zero
PHASE($roles, u64 steps, u64 *seed)
{
    u64 at = pick(seed, index_n), from = 0;
    for (u64 i = 0; i < steps; i++) {
        target[index[at]] += in[from];
        at = at + 1 < index_n ? at + 1 : 0;
        from = from + 1 < in_n ? from + 1 : 0;
    }
    return (u64)target[at % target_n];
}
