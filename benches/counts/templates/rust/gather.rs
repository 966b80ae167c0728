// Random gather and scatter through an index.
// role index u32 below(target)
// role in_ num noise
// role target =in_ zero
$PHASE {
    let mut done = 0;
    while done < steps {
        for (i, x) in index.iter().zip(in_.iter().cycle()) {
            let at = *i as usize;
            target[at] = ((target[at] as u64).wrapping_add(*x as u64) & 127) as $in_;
        }
        done += index.len() as u64;
    }
    target[0] as u64
}
