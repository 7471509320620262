"""Largest eigenvalue of an operator by the Lanczos method."""

import math
from collections.abc import Callable

import numpy as np

from fenchel._array import Array, as_like, eps, namespace

__all__ = ["largest_eigenvalue"]


def largest_eigenvalue(matmul: Callable[[Array], Array], shape: tuple[int, ...], like: Array) -> float:
    """Return the largest eigenvalue of a PSD operator by Lanczos, rounded up by its error bound and 0.01 %.

    The start is a fixed pseudo-random vector, so results are reproducible bit for bit.
    """
    xp = namespace(like)
    size = math.prod(shape)
    start = as_like(np.random.default_rng(0).standard_normal(size), like)
    basis = [start / xp.linalg.vector_norm(start)]
    alphas: list[float] = []
    betas: list[float] = []
    top = error = 0.0
    for k in range(min(size, 80)):
        image = xp.reshape(matmul(xp.reshape(basis[-1], shape)), (size,))
        alphas.append(float(xp.sum(image * basis[-1])))
        rows = xp.stack(basis)
        for _ in range(2):  # orthogonalising twice is enough
            image = image - rows.T @ (rows @ image)
        beta = float(xp.linalg.vector_norm(image))
        if not (math.isfinite(alphas[-1]) and math.isfinite(beta)):
            return math.inf  # the norm overflows the dtype
        is_last = k + 1 == min(size, 80) or beta <= max(1e-12, 64 * eps(like)) * max(alphas)
        if is_last or (k >= 11 and k % 4 == 3):
            values, vectors = np.linalg.eigh(np.diag(alphas) + np.diag(betas, 1) + np.diag(betas, -1))
            top, error = float(values[-1]), beta * abs(float(vectors[-1, -1]))
            if is_last or error <= 1e-4 * top:
                break
        betas.append(beta)
        basis.append(image / beta)
    return max(top + error, 0.0) * (1 + 1e-4)
