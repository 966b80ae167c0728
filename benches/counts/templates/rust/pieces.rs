// Sums of pieces of an array, by chunks_exact and by windows of three.
// role a f32,f64,u64 noise
// role out =a zero as a
$PHASE {
    let mut done = 0;
    while done < steps {
        for (piece, to) in a.chunks_exact(8).zip(out.iter_mut()) { *to = piece.iter().copied().sum(); }
        for (three, to) in a.windows(3).zip(out.iter_mut().skip(1)) { *to += three[0] * three[2]; }
        done += 2 * a.len() as u64;
    }
    out[1] as u64
}
