// A search in a tree that lies in an array, by recursion; data say where a branch ends.
// role tree u32,u64 noise
// role visited u8,u32 zero as tree
fn ${phase}_visit(tree: &[$tree], visited: &mut [$visited], i: usize, depth: u32) -> u64 {
    let Some(value) = tree.get(i).copied() else { return 0 };
    visited[i] = visited[i].wrapping_add(1);
    if depth == 0 || value % 8 == 5 { return value as u64; }
    let left = ${phase}_visit(tree, visited, 2 * i + 1, depth - 1);
    if value & 1 == 1 { left + ${phase}_visit(tree, visited, 2 * i + 2, depth - 1) } else { left + 1 }
}
$PHASE {
    let mut sum = 0u64;
    for _ in 0..steps / 40 {
        let root = pick(seed, tree.len() / 256 + 1);
        sum = sum.wrapping_add(${phase}_visit(tree, visited, root, 12));
    }
    sum
}
