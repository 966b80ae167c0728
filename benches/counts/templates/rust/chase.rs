// A linked list in random order: each address comes from the data before it.
// role follow u32 cycle
// role data u64,u32,f64 noise as follow
$PHASE {
    let (mut at, mut sum) = (pick(seed, follow.len()), 0u64);
    for i in 0..steps {
        if $often { sum = sum.wrapping_add(data[at] as u64); }
        at = follow[at] as usize;
    }
    sum + at as u64
}
