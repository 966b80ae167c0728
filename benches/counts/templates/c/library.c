// The C library works on rows: memchr, memcpy, memcmp and memset.
// role text u8 text 60
// role rows u8,u64 zero
PHASE($roles, u64 steps, u64 *seed)
{
    u64 sum = 0;
    const size_t bytes = rows_n * sizeof *rows;
    for (u64 done = 0; done < steps; done += 120) {
        size_t from = pick(seed, text_n - 600), to = pick(seed, bytes - 600);
        const u8 *found = memchr(text + from, ',', 500);
        size_t length = found ? (size_t)(found - text - from) : 500;
        if (length % 4 == 1) memset((u8 *)rows + to, (int)length, length + 64);
        else memcpy((u8 *)rows + to, text + from, length + 1);
        sum += length + (memcmp((u8 *)rows + to, text + from, length) != 0);
    }
    return sum;
}
