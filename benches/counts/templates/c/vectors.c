// Vectors of the language, of 16 and 32 bytes.
// role a v4f zero
// role b v4u zero
// role out v4f zero as a
PHASE($roles, u64 steps, u64 *seed)
{
    v4f scale = {1, 2, 3, (f32)(*seed & 7)};
    v4u all = {0, 0, 0, 0};
    for (u64 done = 0; done < steps; done += a_n + b_n) {
        for (size_t i = 0; i < a_n; i++) out[i] = a[i] * scale + out[i];
        for (size_t i = 0; i < b_n; i++) all ^= b[i];
        b[done % b_n] = all + done;
    }
    return all[0] + (u64)out[0][1];
}
