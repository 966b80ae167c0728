"""Work for NumPy: element by element, sums along both axes, sorting, and random access."""

import numpy as np

dice = np.random.default_rng(5)
a = dice.random((1500, 1500))
b = np.empty_like(a)
index = dice.integers(0, a.size, 1_000_000)
total = 0.0
for turn in range(12):
    np.multiply(a, 1.5, out=b)
    b += a.T
    total += float(b.sum(axis=0)[turn] + b.sum(axis=1)[turn])
    total += float(np.take(b.ravel(), index).mean())
    a[turn] = np.sort(b[turn])
    total += float(np.sort(b.ravel()[: 1 << 19])[7])
print(round(total, 3))
