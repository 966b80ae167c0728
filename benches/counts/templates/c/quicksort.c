// Quicksort by recursion, of a copy of a random stretch.
// role a u32,u64,f64 below(a)
// role work =a zero
static void ${phase}_sort($a *x, size_t n)
{
    while (n > 1) {
        $a pivot = x[n / 2];
        size_t i = 0, j = n - 1;
        for (;; i++, j--) {
            while (x[i] < pivot) i++;
            while (pivot < x[j]) j--;
            if (i >= j) break;
            $a t = x[i];
            x[i] = x[j];
            x[j] = t;
        }
        ${phase}_sort(x, i);
        x += i;
        n -= i;
    }
}
PHASE($roles, u64 steps, u64 *seed)
{
    size_t n = work_n < a_n ? work_n : a_n;
    if (n > 20000) n = 20000;
    for (u64 done = 0; done < steps; done += 15 * n) {
        size_t from = pick(seed, a_n - n + 1);
        for (size_t i = 0; i < n; i++) work[i] = a[from + i];
        ${phase}_sort(work, n);
    }
    return (u64)work[n / 2];
}
