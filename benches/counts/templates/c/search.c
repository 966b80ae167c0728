// Binary search for random keys; what is found is counted.
// role sorted u32,u64,f64 sorted
// role hits u32,u64 zero
PHASE($roles, u64 steps, u64 *seed)
{
    u64 sum = 0;
    for (u64 i = 0; i < steps; i += 20) {
        $sorted key = ($sorted)pick(seed, 3 * sorted_n);
        size_t low = 0, high = sorted_n;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (sorted[middle] < key) low = middle + 1;
            else high = middle;
        }
        hits[low % hits_n]++;
        sum += low;
    }
    return sum;
}
