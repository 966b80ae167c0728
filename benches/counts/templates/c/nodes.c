// A list of nodes with a payload, walked by pointer and changed on the way; it ends where a pointer is null.
// role order u32 cycle
// role node u64 empty as4 order
PHASE($roles, u64 steps, u64 *seed)
{
    struct { u64 *next; u64 value, count, pad; } *nodes = (void *)node, *at;
    size_t n = node_n / 4 < order_n ? node_n / 4 : order_n;
    if (!nodes[0].count)
        for (size_t i = 0; i < n; i++) {
            nodes[i].next = i % 100 == 99 ? 0 : node + 4 * ((i + 1 + order[i] % 61) % n);
            nodes[i].count = 1;
        }
    u64 sum = 0;
    for (u64 done = 0; done < steps; done += 50) {
        size_t left = 100;
        for (at = (void *)(node + 4 * pick(seed, n - 100)); at && left; at = (void *)at->next, left--) {
            sum += at->value;
            if ((left & 7) == 3) at->count++;
        }
    }
    return sum;
}
