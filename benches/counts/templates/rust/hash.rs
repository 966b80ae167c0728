// An open hash table: probing until the key or a hole is found.
// role slot u64 empty
// role value u32,u64 zero as slot
$PHASE {
    let (n, mut found) = (slot.len(), 0);
    for i in 0..steps / 3 {
        let key = pick(seed, n * 2 / 3) as u64 + 1;
        let mut at = ((key.wrapping_mul(0x9E3779B97F4A7C15) >> 32) * n as u64 >> 32) as usize;
        while slot[at] != 0 && slot[at] != key { at = if at + 1 < n { at + 1 } else { 0 }; }
        if slot[at] == key { found += 1 } else { slot[at] = key }
        value[at] = value[at].wrapping_add((i & 15) as $value);
    }
    found
}
