"""Anderson acceleration of a fixed-point map, for many problems at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fenchel._array import Array, as_like, eps, is_numpy, namespace

__all__ = ["Memory", "mixing_weights"]

_CACHED = 2**18  # bytes of an array block that fits in the processor's cache


@dataclass(frozen=True)
class Memory:
    """The last moves and images of the fixed-point map, for type-II Anderson acceleration of each problem.

    ``products[i, j]`` is the inner product of moves i and j, shape (B,); ``valid[i]`` is 1 where move i still counts.
    """

    size: int
    moves: tuple[Array, ...] = ()
    images: tuple[Array, ...] = ()
    products: Array = None  # (k, k, B) for k moves
    valid: Array = None  # (k, B)

    def adding(self, move: Array, image: Array) -> "Memory":
        """Return the memory with one more step, dropping the oldest."""
        first = 0 if len(self.moves) <= self.size else 1
        moves, images = (*self.moves[first:], move), (*self.images[first:], image)
        row = namespace(move).stack([products_of(move, other) for other in moves])
        xp = namespace(row)
        ones = xp.ones_like(row[:1, :])
        if len(moves) == 1:
            return Memory(self.size, moves, images, row[None, :, :], ones)
        above = xp.concat([self.products[first:, first:, :], row[:-1, None, :]], axis=1)
        products = xp.concat([above, row[None, :, :]], axis=0)
        valid = xp.concat([self.valid[first:, :], ones], axis=0)
        return Memory(self.size, moves, images, products, valid)

    def forgetting(self, is_bad: Array) -> "Memory":
        """Return the memory with all moves of the flagged problems discarded."""
        xp = namespace(is_bad)
        return self if not self.moves else replace(self, valid=xp.where(is_bad, 0 * self.valid, self.valid))

    @property
    def last_norm(self) -> Array:
        """Return the norm of the last move in each problem, (B,)."""
        return namespace(self.products).sqrt(self.products[-1, -1, :])

    def taken(self, index: Array) -> "Memory":
        """Return the memory of the selected problems."""
        if not self.moves:
            return self
        xp = namespace(self.products)
        moves, images = (tuple(xp.take(one, index, axis=1) for one in group) for group in (self.moves, self.images))
        products, valid = xp.take(self.products, index, axis=2), xp.take(self.valid, index, axis=1)
        return Memory(self.size, moves, images, products, valid)

    def combined(self) -> Array:
        """Return the combination of the images with the smallest residual, slightly regularised."""
        if len(self.moves) == 1:
            return self.images[-1]
        weights = mixing_weights(self.products, self.valid)
        xp, images = namespace(weights), (self.images[-1], *self.images[:-1])
        weights = xp.concat([1 - xp.sum(weights, axis=1, keepdims=True), weights], axis=1)
        if not is_numpy(images[0]):
            return _sum_of(weights, images)
        combined = np.empty_like(images[0])
        step = max(1, _CACHED // (8 * combined[0].size))
        for start in range(0, combined.shape[0], step):
            rows = slice(start, start + step)
            combined[rows] = _sum_of(weights, [image[rows] for image in images])
        return combined


def _sum_of(weights: Array, images: Sequence[Array]) -> Array:
    """Return the sum of images (n, B, p) with the weights (B, k)."""
    total = weights[None, :, 0, None] * images[0]
    for i in range(1, len(images)):
        total += weights[None, :, i, None] * images[i]  # total was allocated here, so it may be overwritten
    return total


def mixing_weights(products: Array, valid: Array) -> Array:
    """Return the weights (B, k) of all images but the last in each problem, from the inner products of k + 1 moves."""
    xp, P = namespace(products), products
    k = products.shape[0] - 1
    # inner products of the changes (last move - move i), zero for moves that do not count
    last, counts = P[k, :k, :], valid[:k, :]
    cross = P[k, k, :] - last[:, None, :] - last[None, :, :] + P[:k, :k, :]
    matrix = xp.permute_dims(counts[:, None, :] * counts[None, :, :] * cross, (2, 0, 1))  # (B, k, k)
    right = (counts * (P[k, k, :] - last)).T  # (B, k)
    trace = xp.linalg.trace(matrix)[:, None, None]
    tiny = 1e12 * float(xp.finfo(matrix.dtype).smallest_normal)
    shift = max(1e-8, 16 * eps(matrix)) / k * trace + xp.astype(trace <= tiny, matrix.dtype)
    matrix = matrix + shift * as_like(np.eye(k), matrix)
    return xp.linalg.solve(matrix, right[:, :, None])[:, :, 0]


def products_of(a: Array, b: Array) -> Array:
    """Return the inner product of two arrays (n, B, p) in each problem, (B,)."""
    if is_numpy(a) and a.shape[1] == 1:
        return np.asarray([np.vdot(a, b)])
    return namespace(a).sum(a * b, axis=(0, 2))
