"""Matrices of operators: from their products alone, from their blocks, and compared."""

import numpy as np
from numpy.testing import assert_allclose

ROUNDING = 256 * np.finfo(np.float64).eps  # relative to the largest entry


def full_matrix(operator, p):
    """Return the (n p) × (m p) matrix of an operator, one unit array after the other."""
    m = operator.shape[1]
    columns = []
    for unit in np.eye(m * p):
        columns.append(np.ravel(operator.matmul(unit.reshape(m, p))))
    return np.stack(columns, axis=1)


def close(found, wanted, factor=1.0):
    size = max(float(np.max(np.abs(wanted), initial=0.0)), 1e-300)
    assert_allclose(found, wanted, rtol=0, atol=factor * ROUNDING * size)


def psd(rng, size, rank=None):
    root = rng.standard_normal((size, rank or size))
    return root @ root.T


def flatten(blocks):
    """The (n p) × (m p) matrix of blocks[i][j], entry by entry."""
    n, m, p, _ = np.shape(blocks)
    full = np.empty((n * p, m * p))
    for i in range(n):
        for j in range(m):
            for a in range(p):
                for b in range(p):
                    full[i * p + a, j * p + b] = blocks[i][j][a][b]
    return full


def apply(full, A):
    return (full @ np.ravel(A)).reshape(-1, A.shape[1])
