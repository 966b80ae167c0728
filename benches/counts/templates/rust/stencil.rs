// Short inner loops, of one to five rounds, around each point.
// role in_ f32,f64,u32 noise
// role out =in_ zero as in_
$PHASE {
    let mut done = 0;
    while done < steps {
        for i in 0..in_.len() - 8 {
            let mut sum = 0 as $in_;
            for j in 0..$short { sum += in_[i + j] * (j + 1) as $in_; }
            out[i] = sum;
        }
        done += in_.len() as u64 * $short;
    }
    out[1] as u64
}
