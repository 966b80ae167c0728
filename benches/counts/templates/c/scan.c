// A scan of text up to the next comma, and a count by length.
// role text u8 text 9
// role table u32,u64 zero
PHASE($roles, u64 steps, u64 *seed)
{
    const u8 *p = text + pick(seed, text_n), *end = text + text_n;
    u64 fields = 0;
    for (u64 done = 0; done < steps;) {
        const u8 *from = p;
        while (*p != ',') p++;
        u64 length = (u64)(p - from);
        table[(length * 0x9E3779B97F4A7C15u >> 32) % table_n]++;
        fields++;
        done += length + 1;
        if (++p >= end) p = text;
    }
    return fields;
}
