// A matrix of rows of different lengths, worked on row by row with a closure.
// role length u8 trips 30
// role a f32,f64 noise
$PHASE {
    let mut done = 0;
    let mut total = 0.0;
    while done < steps {
        let mut rest = &mut a[..];
        for l in length.iter() {
            let l = *l as usize;
            if rest.len() < l { break; }
            let (row, after) = rest.split_at_mut(l);
            let scale = |x: &mut $a| { *x = *x * 0.5 + 1.0; *x };
            total += row.iter_mut().map(scale).fold(0.0, |s, x| s + x) as f64;
            rest = after;
            done += l as u64 + 1;
        }
    }
    total as u64
}
