// An arm that is seldom taken, in a loop that runs on.
// role a u32,u64 noise
// role table u32,u64 zero
$PHASE {
    let (mut sum, mut x, mut done) = (0u64, *seed | 1, 0);
    let n = table.len() as u64;
    while done < steps {
        for v in a.iter() {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            sum = sum.wrapping_add(*v as u64);
            if (x >> 40) % $rarity == 0 { table[(x >> 33) as usize % n as usize] += 1; }
        }
        done += a.len() as u64;
    }
    *seed = x | 1;
    sum
}
