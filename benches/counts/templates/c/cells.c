// Calls through a table of functions, chosen by data.
// role op u8 noise
// role a u32,u64 noise
// role out =a zero as a
static NOINLINE u64 ${phase}_add($a *a, $a *out, size_t i) { return out[i] += a[i]; }
static NOINLINE u64 ${phase}_mix($a *a, $a *out, size_t i) { out[i] = a[i] ^ (out[i] >> 1); return 1; }
static NOINLINE u64 ${phase}_read($a *a, $a *out, size_t i) { (void)out; return a[i]; }
static NOINLINE u64 ${phase}_both($a *a, $a *out, size_t i) { return ${phase}_read(a, out, i) + ${phase}_add(a, out, i / 2); }
static u64 (*volatile ${phase}_table[4])($a *, $a *, size_t) = {${phase}_add, ${phase}_mix, ${phase}_read, ${phase}_both};
PHASE($roles, u64 steps, u64 *seed)
{
    u64 sum = 0, at = pick(seed, a_n);
    for (u64 i = 0; i < steps; i++) {
        sum += ${phase}_table[op[i % op_n] & 3](a, out, at);
        at = at + 5 < a_n ? at + 5 : 0;
    }
    return sum;
}
