// Short inner loops, of one to five rounds, around each point.
// role in f32,f64,u32 noise
// role weight =in noise
// role out =in zero as in
PHASE($roles, u64 steps, u64 *seed)
{
    for (u64 done = *seed & 1; done < steps; done += in_n * $short)
        for (size_t i = 0; i + $short < in_n; i++) {
            $in sum = 0;
            for (size_t j = 0; j < $short; j++) sum += in[i + j] * weight[(i & 7) + j];
            out[i] = sum;
        }
    return (u64)out[1];
}
