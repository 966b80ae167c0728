// The standard library sorts copies of random stretches.
// role a u32,u64 below(a)
// role work =a zero
$PHASE {
    let n = work.len().min(a.len()).min(20000);
    let mut done = 0;
    while done < steps {
        let from = pick(seed, a.len() - n + 1);
        work[..n].copy_from_slice(&a[from..from + n]);
        if from % 2 == 0 { work[..n].sort_unstable() } else { work[..n].sort() }
        done += 15 * n as u64;
    }
    work[n / 2] as u64
}
