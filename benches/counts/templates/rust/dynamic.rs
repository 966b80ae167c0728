// Calls of a trait's method, by what the data say.
// role op u8 noise
// role a u32,u64 noise
// role out =a zero as a
trait ${phase}Act { fn act(&self, a: &[$a], out: &mut [$a], i: usize) -> u64; }
struct ${phase}Add(u64);
struct ${phase}Mix;
struct ${phase}Read(usize);
impl ${phase}Act for ${phase}Add {
    fn act(&self, a: &[$a], out: &mut [$a], i: usize) -> u64 { out[i] = out[i].wrapping_add(a[i]); self.0 }
}
impl ${phase}Act for ${phase}Mix {
    fn act(&self, a: &[$a], out: &mut [$a], i: usize) -> u64 { out[i] ^= a[i] >> 1; 1 }
}
impl ${phase}Act for ${phase}Read {
    fn act(&self, a: &[$a], _: &mut [$a], i: usize) -> u64 { a[i / self.0] as u64 }
}
$PHASE {
    let acts: Vec<Box<dyn ${phase}Act>> = vec![Box::new(${phase}Add(3)), Box::new(${phase}Mix), Box::new(${phase}Read(2))];
    let (mut sum, mut at) = (0u64, pick(seed, a.len()));
    for i in 0..steps as usize {
        sum = sum.wrapping_add(acts[op[i % op.len()] as usize % 3].act(a, out, at));
        at = if at + 5 < a.len() { at + 5 } else { 0 };
    }
    sum
}
