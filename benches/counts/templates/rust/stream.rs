// Iterators over whole arrays, zipped.
// role a num noise
// role b =a noise as a
// role out =a zero as a
$PHASE {
    let mut done = 0;
    while done < steps {
        let k = (done & 7) as $a;
        for ((x, y), z) in out.iter_mut().zip(a.iter()).zip(b.iter()) { *x = *y * k + *z; }
        done += a.len() as u64;
    }
    out[done as usize % out.len()] as u64
}
