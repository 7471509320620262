"""Inputs in parts in a kernel search: Gram matrices of weighted parts from the distances of each, and the kernels."""

from dataclasses import dataclass, field
from functools import reduce
from operator import add

import numpy as np
from scipy.spatial.distance import pdist, squareform

from fenchel.kernels import Linear, Part, ScalarKernel, Scaled, Standardized
from fenchel.model.parts import Blocks
from fenchel.search.race.candidates import FAMILIES, Candidate

__all__ = ["PartInputs"]


@dataclass(frozen=True)
class PartInputs:
    """Inputs whose parts have a mean square of 1 each, in random order, and the distances in each part."""

    blocks: Blocks
    mean: np.ndarray
    scale: np.ndarray
    products: list[np.ndarray]  # linear kernel of each part
    sizes: np.ndarray  # their mean diagonals
    squares: list[np.ndarray]  # squared distances in each part
    medians: dict[tuple[float, ...], float] = field(default_factory=dict)  # of distances, by the weights of the parts

    @classmethod
    def of(cls, X: np.ndarray, counts: np.ndarray, order: np.ndarray, blocks: Blocks) -> "PartInputs":
        """Return the inputs of all samples, standardised, in the given order."""
        mean, scale = blocks.moments(X, counts)
        rows = (X[order].astype(np.float64) - mean) / scale
        parts = [rows[:, blocks.part == k] for k in range(len(blocks.names))]
        products = [part @ part.T for part in parts]
        sizes = np.array([np.average(np.diag(one), weights=counts[order]) for one in products])
        squares = [squareform(pdist(part, "sqeuclidean")) for part in parts]
        return cls(blocks, mean, scale, products, np.where(sizes > 0, sizes, 1.0), squares)

    @property
    def is_curves(self) -> bool:
        """Whether some of the inputs are curves."""
        return bool(self.blocks.is_curve.any())

    def matrix(self, candidate: Candidate, n: int) -> np.ndarray:
        """Return the Gram matrix of the first n samples, with mean diagonal about 1."""
        weights, linear, profile = self._weights(candidate), candidate.linear, FAMILIES[candidate.family].profile
        assert profile is not None  # of all families of parts
        if candidate.is_sum:
            grams = [profile(np.sqrt(one[:n, :n]) / self._width(candidate, k)) for k, one in enumerate(self.squares)]
            values = _sum(weights**2, grams) / np.sum(weights**2)
        else:
            values = profile(np.sqrt(self._square(weights, n)) / self._width(candidate))
        if not linear:
            return values
        return (values + linear * _sum(self._linear(weights), [one[:n, :n] for one in self.products])) / (1 + linear)

    def kernel(self, candidate: Candidate) -> ScalarKernel:
        """Return the kernel as a component, with all data-dependent parameters resolved."""
        weights, of_points = self._weights(candidate), FAMILIES[candidate.family].of_points
        assert of_points is not None  # of all families of parts
        if not candidate.is_sum:
            with np.errstate(divide="ignore"):
                scale = self.scale / weights[self.blocks.part]
            size = float(np.sum(weights**2 * self.sizes))
            inner = _with_linear(of_points(self._width(candidate)), Linear(), candidate.linear, size)
            return Standardized(inner, self.mean, scale, "column")
        shares = weights**2 / np.sum(weights**2)
        parts = [
            Scaled(Part(self._of_part(candidate, k), self._columns(k)), float(shares[k]))
            for k in range(len(shares))
            if shares[k]
        ]
        return Standardized(reduce(add, parts), self.mean, self.scale, "column")

    def _of_part(self, candidate: Candidate, k: int) -> ScalarKernel:
        """Return the kernel of one part in a sum."""
        of_points = FAMILIES[candidate.family].of_points
        assert of_points is not None  # of all families of parts
        weights = self._weights(candidate)
        share = float(np.sum(weights**2 * self.sizes) / np.sum(weights**2))
        return _with_linear(of_points(self._width(candidate, k)), Linear(), candidate.linear, share)

    def _columns(self, k: int) -> list[int]:
        columns: list[int] = np.flatnonzero(self.blocks.part == k).tolist()
        return columns

    def _weights(self, candidate: Candidate) -> np.ndarray:
        return np.array(candidate.weights or (1.0,) * len(self.squares))

    def _linear(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights of the linear kernels of the parts, whose sum has mean diagonal 1."""
        shares: np.ndarray = weights**2 / np.sum(weights**2 * self.sizes)
        return shares

    def _square(self, weights: np.ndarray, n: int) -> np.ndarray:
        return _sum(weights**2, [one[:n, :n] for one in self.squares])

    def _width(self, candidate: Candidate, part: int | None = None) -> float:
        """Return the width of a candidate in units of all parts together, or of one part."""
        weights = self._weights(candidate) if part is None else np.eye(len(self.squares))[part]
        key = tuple(weights.tolist())
        if key not in self.medians:
            found = self._square(weights, len(self.squares[0]))[np.triu_indices(len(self.squares[0]), 1)]
            self.medians[key] = float(np.sqrt(np.median(found[found > 0]))) if np.any(found > 0) else 1.0
        return candidate.width * self.medians[key]


def _sum(weights: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
    """Return the weighted sum of matrices."""
    return sum((weight * one for weight, one in zip(weights, matrices, strict=True) if weight), 0.0 * matrices[0])


def _with_linear(kernel: ScalarKernel, linear: ScalarKernel, weight: float, size: float) -> ScalarKernel:
    """Return a kernel and a linear one with mean diagonal ``size`` with a relative weight; the sum has that of one."""
    if not weight:
        return kernel
    return Scaled(kernel, 1 / (1 + weight)) + Scaled(linear, weight / (1 + weight) / size)
