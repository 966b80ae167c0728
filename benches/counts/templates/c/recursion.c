// A search in a tree that lies in an array, by recursion; data say where a branch ends.
// role tree u32,u64 noise
// role visited u8,u32 zero as tree
static NOINLINE u64 ${phase}_visit($tree *tree, $visited *visited, size_t i, size_t n, u64 depth)
{
    if (i >= n) return 0;
    visited[i]++;
    u64 value = tree[i];
    if (depth == 0 || value % 8 == 5) return value;
    u64 left = ${phase}_visit(tree, visited, 2 * i + 1, n, depth - 1);
    return value & 1 ? left + ${phase}_visit(tree, visited, 2 * i + 2, n, depth - 1) : left + 1;
}
PHASE($roles, u64 steps, u64 *seed)
{
    u64 sum = 0;
    for (u64 i = 0; i < steps; i += 40) sum += ${phase}_visit(tree, visited, pick(seed, tree_n / 256 + 1), tree_n, 12);
    return sum;
}
