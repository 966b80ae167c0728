// Counters that are changed by locked instructions.
// role key u16,u32 noise
// role counter u32,u64 zero
$PHASE {
    let n = counter.len();
    let shared: &[$atomic] = unsafe { std::slice::from_raw_parts(counter.as_ptr().cast(), n) };
    let mut sum = 0u64;
    for i in 0..steps as usize {
        let k = (key[i % key.len()] as usize + i * 2654435761) % n;
        sum = sum.wrapping_add(shared[k].fetch_add(1, Ordering::Relaxed) as u64);
        if k & 7 == 2 { let _ = shared[i % n].compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed); }
    }
    sum
}
