// Nested loops: the data say how often the inner one goes round; with bounds checks.
// role length u8,u16 trips 12
// role a num noise
// role out u64,f64 zero as length
$PHASE {
    let (mut at, mut done) = (0, 0);
    while done < steps {
        for i in 0..length.len() {
            let trips = length[i] as usize;
            if at + trips > a.len() { at = 0; }
            for j in 0..trips { out[i] += a[at + j] as $out; }
            at += trips;
            done += trips as u64 + 1;
        }
    }
    at as u64
}
