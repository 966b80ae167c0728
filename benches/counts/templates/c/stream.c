// A loop over whole arrays that a compiler can make vector code of.
// role a num noise
// role b =a noise as a
// role out =a zero as a
PHASE($roles, u64 steps, u64 *seed)
{
    u64 sum = *seed & 3;
    for (u64 done = 0; done < steps; done += a_n) {
        $a k = ($a)(sum & 7);
        for (size_t i = 0; i < a_n; i++) out[i] = a[i] * k + b[i];
        sum += (u64)out[sum % a_n];
    }
    return sum;
}
