// A sparse matrix times a vector: rows of different lengths, columns by an index.
// role length u8 trips 8
// role column u32 below(x)
// role value =x noise as column
// role x f32,f64 noise
// role y =x zero as length
PHASE($roles, u64 steps, u64 *seed)
{
    size_t at = 0;
    for (u64 done = *seed & 1; done < steps;)
        for (size_t row = 0; row < length_n && done < steps; row++) {
            size_t end = at + length[row];
            if (end > column_n) end = length[row], at = 0;
            $value sum = 0;
            done += end - at + 1;
            for (; at < end; at++) sum += value[at] * x[column[at]];
            y[row] = sum;
        }
    return (u64)y[0];
}
