// Union and find with halving of paths.
// role parent u32 cycle
// role edge u32 below(parent)
PHASE($roles, u64 steps, u64 *seed)
{
    u64 joined = 0, at = pick(seed, edge_n - 1);
    for (size_t i = 0; i < parent_n; i += 1) parent[i] = ($parent)i;
    for (u64 done = parent_n; done < steps; done += 4) {
        u32 pair[2];
        for (int k = 0; k < 2; k++) {
            u32 x = edge[at + k];
            while (parent[x] != x) x = parent[x] = parent[parent[x]];
            pair[k] = x;
        }
        if (pair[0] != pair[1]) parent[pair[0]] = pair[1], joined++;
        at = at + 2 < edge_n - 1 ? at + 1 : 0;
    }
    return joined;
}
