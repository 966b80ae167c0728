// A product of matrices in blocks.
// role a f32,f64 noise
// role b =a noise as a
// role c =a zero as a
$PHASE {
    let n = $block * 4;
    let mut done = 0;
    while done < steps {
        let from = pick(seed, a.len() - n * n + 1);
        for i in 0..n {
            for k in 0..n {
                let x = a[from + i * n + k];
                let (row, to) = (&b[k * n..(k + 1) * n], &mut c[from + i * n..from + (i + 1) * n]);
                for j in 0..n { to[j] += x * row[j]; }
            }
        }
        done += (n * n * n) as u64;
    }
    c[0] as u64
}
