"""Inputs of a kernel search: Gram matrices of all candidates from shared distances, and the kernels themselves."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist, squareform

from fenchel.data.quadrature import trapezoid_weights
from fenchel.kernels import FunctionalLinear, IntegralLaplacian, Linear, Projected, ScalarKernel, Scaled, Standardized
from fenchel.kernels.standardized import moments
from fenchel.search.race.candidates import FAMILIES, Candidate

__all__ = ["Inputs"]


@dataclass(frozen=True)
class Inputs:
    """Standardised inputs in random order, and the distances shared by all kernels."""

    mean: np.ndarray
    scale: np.ndarray
    grid: ArrayLike | None
    is_curves: bool
    products: np.ndarray  # linear kernel, with mean diagonal 1
    size: float  # the mean diagonal before normalisation
    distances: dict[str, np.ndarray]
    medians: dict[str, float]
    curves: np.ndarray | None  # the inputs themselves
    metric: np.ndarray | None = None  # metric of the distances
    means: dict[tuple[str, float, int], np.ndarray] = field(default_factory=dict)  # cached kernels averaged over points

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        counts: np.ndarray,
        order: np.ndarray,
        is_curves: bool,
        grid: ArrayLike | None,
        metric: np.ndarray | None = None,
    ) -> "Inputs":
        """Return the inputs of all samples, standardised, in the given order."""
        mean, scale = moments(X, counts, is_curves)
        rows = ((X[order] - mean) / scale).astype(np.float64)
        curves = rows if is_curves else None
        if is_curves:
            m = X.shape[1]
            roots = np.sqrt(np.full(m, 1 / m) if grid is None else trapezoid_weights(grid))
            rows = rows * roots.reshape(-1, *([1] * (X.ndim - 2)))
        rows = rows.reshape(len(rows), -1)
        products = rows @ rows.T
        size = float(np.average(np.diag(products), weights=counts[order])) or 1.0
        if metric is not None:
            rows = rows * metric if metric.ndim == 1 else rows @ metric
        pairs = {name: pdist(rows, name) for name in ("euclidean", *([] if is_curves else ["cityblock"]))}
        medians = {name: float(np.median(one[one > 0])) if np.any(one > 0) else 1.0 for name, one in pairs.items()}
        distances = {name: squareform(one) for name, one in pairs.items()}
        if curves is not None:
            medians["pointwise"] = 1 / IntegralLaplacian("median", grid).resolve(curves).gamma
        return cls(mean, scale, grid, is_curves, products / size, size, distances, medians, curves, metric)

    def matrix(self, candidate: Candidate, n: int) -> np.ndarray:
        """Return the Gram matrix of the first n samples, with mean diagonal about 1."""
        family, weight = FAMILIES[candidate.family], candidate.linear
        width = candidate.width * self.medians[family.metric]
        if family.profile is None:
            values = self._mean_over_points(candidate, width, n)
        else:
            values = family.profile(self.distances[family.metric][:n, :n] / width)
        return (values + weight * self.products[:n, :n]) / (1 + weight) if weight else values

    def _mean_over_points(self, candidate: Candidate, width: float, n: int) -> np.ndarray:
        """Return the Gram matrix of a kernel averaged over points, computed once for all linear parts."""
        key, of_curves = (candidate.family, width, n), FAMILIES[candidate.family].of_curves
        if key not in self.means:
            assert self.curves is not None and of_curves is not None  # the dictionary for points has no such family
            self.means[key] = of_curves(width, self.grid)(self.curves[:n])
        return self.means[key]

    def kernel(self, candidate: Candidate) -> ScalarKernel:
        """Return the kernel as a component, with all data-dependent parameters resolved."""
        family, weight = FAMILIES[candidate.family], candidate.linear
        width = candidate.width * self.medians[family.metric]
        if self.is_curves:
            assert family.of_curves is not None  # all families in the dictionary for curves have it
            inner = family.of_curves(width, self.grid)
        else:
            assert family.of_points is not None
            inner = family.of_points(width)
            inner = inner if self.metric is None else Projected(inner, self.metric)
        if weight:
            linear: ScalarKernel = FunctionalLinear(self.grid) if self.is_curves else Linear()
            inner = Scaled(inner, 1 / (1 + weight)) + Scaled(linear, weight / (1 + weight) / self.size)
        return Standardized(inner, self.mean, self.scale, "channel" if self.is_curves else "column")
