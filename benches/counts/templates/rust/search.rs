// Binary search of the standard library for random keys.
// role sorted u32,u64 sorted
// role hits u32,u64 zero
$PHASE {
    let mut sum = 0u64;
    for _ in 0..steps / 20 {
        let key = pick(seed, 3 * sorted.len()) as $sorted;
        let at = sorted.partition_point(|x| *x < key);
        let n = hits.len();
        hits[at % n] += 1;
        sum += at as u64;
    }
    sum
}
