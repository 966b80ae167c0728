// Nested loops: the data say how often the inner one goes round.
// role length u8,u16 trips 12
// role a num noise
// role out u32,u64,f64 zero as length
PHASE($roles, u64 steps, u64 *seed)
{
    size_t at = 0;
    u64 done = 0;
    while (done < steps)
        for (size_t i = 0; i < length_n && done < steps; i++) {
            $a sum = 0;
            size_t trips = length[i];
            if (at + trips > a_n) at = 0;
            for (size_t j = 0; j < trips; j++) sum += a[at + j];
            out[i] += ($out)sum;
            at += trips;
            done += trips + 1;
        }
    return at + *seed % 2;
}
