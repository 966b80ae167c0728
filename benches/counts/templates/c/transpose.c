// A transposition in blocks.
// role a u32,u64,f32,f64 noise
// role out =a zero as a
PHASE($roles, u64 steps, u64 *seed)
{
    size_t side = 32;
    while ((side + $block) * (side + $block) <= a_n && side < 2000) side += $block;
    side -= side % $block;
    for (u64 done = 0; done < steps; done += side * side)
        for (size_t bi = 0; bi < side; bi += $block)
            for (size_t bj = 0; bj < side; bj += $block)
                for (size_t i = bi; i < bi + $block; i++)
                    for (size_t j = bj; j < bj + $block; j++) out[j * side + i] = a[i * side + j];
    return (u64)out[pick(seed, side)];
}
