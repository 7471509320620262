"""Anderson acceleration of a fixed-point map, in many problems at once."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fenchel._array import Array, as_like, eps, is_numpy, namespace

__all__ = ["Memory"]


@dataclass(frozen=True)
class Memory:
    """The last moves and images of the fixed-point map, for type-II Anderson acceleration in each problem.

    ``products[i][j]`` is the product of moves i and j, shape (B,); ``valid[i]`` is 1 where move i still counts.
    """

    size: int
    moves: tuple[Array, ...] = ()
    images: tuple[Array, ...] = ()
    products: tuple[tuple[Array, ...], ...] = ()
    valid: tuple[Array, ...] = ()

    def adding(self, move: Array, image: Array) -> "Memory":
        """Return the memory with one more step; the oldest is dropped."""
        xp = namespace(move)
        row = [products_of(move, other) for other in (*self.moves, move)]
        products = (*((*old, new) for old, new in zip(self.products, row, strict=False)), tuple(row))
        memory = Memory(
            self.size, (*self.moves, move), (*self.images, image), products, (*self.valid, xp.ones_like(row[-1]))
        )
        return memory if len(memory.moves) <= self.size + 1 else memory._without_oldest()

    def forgetting(self, is_bad: Array) -> "Memory":
        """Return the memory in which nothing counts for some problems."""
        xp = namespace(is_bad)
        return replace(self, valid=tuple(xp.where(is_bad, xp.zeros_like(one), one) for one in self.valid))

    @property
    def last_norm(self) -> Array:
        """Return the norm of the last move in each problem, (B,)."""
        return namespace(self.products[-1][-1]).sqrt(self.products[-1][-1])

    def taken(self, index: Any) -> "Memory":
        """Return the memory of some problems."""

        def cut(array: Array) -> Array:
            return namespace(array).take(array, index, axis=1 if array.ndim == 3 else 0)

        moves, images, valid = (tuple(map(cut, group)) for group in (self.moves, self.images, self.valid))
        return Memory(self.size, moves, images, tuple(tuple(map(cut, row)) for row in self.products), valid)

    def combined(self) -> Array:
        """Return the combination of the images whose residual is least, slightly regularised."""
        if len(self.moves) == 1:
            return self.images[-1]
        xp = namespace(self.moves[-1])
        k = len(self.moves) - 1
        # products of the changes (last move - move i), zero where they do not count
        P = xp.stack([xp.stack(row) for row in self.products])  # (k + 1, k + 1, B)
        last = P[k, :k, :]
        counts = xp.stack(self.valid[:k])
        cross = P[k, k, :] - last[:, None, :] - last[None, :, :] + P[:k, :k, :]
        matrix = xp.permute_dims(counts[:, None, :] * counts[None, :, :] * cross, (2, 0, 1))  # (B, k, k)
        right = (counts * (P[k, k, :] - last)).T  # (B, k)
        trace = xp.sum(xp.linalg.diagonal(matrix), axis=-1)[:, None, None]
        tiny = 1e12 * float(xp.finfo(matrix.dtype).smallest_normal)
        shift = xp.where(trace > tiny, max(1e-8, 16 * eps(matrix)) / k * trace, xp.ones_like(trace))
        matrix = matrix + shift * as_like(np.eye(k), matrix)
        weights = xp.linalg.solve(matrix, right[:, :, None])[:, :, 0]  # (B, k)
        combined = (1 - xp.sum(weights, axis=1))[None, :, None] * self.images[-1]
        for i in range(k):
            combined += weights[None, :, i, None] * self.images[i]  # an array of our own
        return combined

    def _without_oldest(self) -> "Memory":
        return Memory(
            self.size, self.moves[1:], self.images[1:], tuple(row[1:] for row in self.products[1:]), self.valid[1:]
        )


def products_of(a: Array, b: Array) -> Array:
    """Return the product of two arrays (n, B, p) in each problem, (B,)."""
    if is_numpy(a) and a.shape[1] == 1:
        return np.asarray([np.vdot(a, b)])
    return namespace(a).sum(a * b, axis=(0, 2))
