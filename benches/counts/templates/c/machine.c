// An interpreter: a switch over bytes of a program, with registers in an array.
// role code u8 noise
// role memory u32,u64 zero
PHASE($roles, u64 steps, u64 *seed)
{
    u64 a = *seed, b = 1, at = pick(seed, code_n);
    for (u64 i = 0; i < steps; i++) {
        switch (code[at] & 15) {
        case 0: a += memory[b % memory_n]; break;
        case 1: memory[a % memory_n] = ($memory)b; break;
        case 2: b ^= a >> 3; break;
        case 3: memory[i % memory_n]++; break;
        case 4: a = a * 5 + 1; break;
        case 5: b += code[(at + 1) % code_n]; break;
        case 6: if (a & 1) memory[b % memory_n] ^= 3; break;
        case 7: a ^= b << 7; break;
        default: b += a; a = a >> 1 | a << 63; break;
        }
        at = at + 1 < code_n ? at + 1 : 0;
    }
    return a + b;
}
