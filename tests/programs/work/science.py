# ruff: noqa: T201 (a script that prints)
import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import cg

n = 400
one = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
matrix = sparse.kronsum(one, one).tocsr()
right = np.ones(matrix.shape[0])
solution, info = cg(matrix, right, rtol=1e-5, maxiter=150)
print(info, f"{solution[::1000].sum():.6e}")
waves = np.fft.fftn(np.random.default_rng(1).standard_normal((128, 128, 128)))
print(f"{np.abs(waves).sum():.6e}")
