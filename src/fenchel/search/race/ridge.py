"""Kernel ridge regression for many lam at once, and the lam with the smallest leave-one-out error."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.linalg import eigh

from fenchel._array import host
from fenchel._statistics import ranked
from fenchel.operators.eigenbasis import KroneckerBasis
from fenchel.problem import DualProblem

__all__ = ["FLAT", "GappedRidge", "Ridge", "best_lam", "compressed", "sums_of_squares"]

Rotated = tuple[np.ndarray, np.ndarray | None]  # targets in the eigenbasis, and what is outside of it
_LAMS = np.logspace(-9, 2, 12)  # relative to the mean diagonal
FLAT = 1e-3  # relative difference of errors that is ignored: a larger lam is solved faster and more accurately
_MOST_DECADES = 4  # by which the grid of lam is extended beyond an end
_MOST_PATTERNS = 16  # of gaps, each with an eigendecomposition of its own, by which kernels are compared
_VARIANCE = 1e-8  # share of the variance of the targets that may be dropped when kernels are compared
# of more coordinates the leading ones are kept, and the others added up with random signs in as many sums. With 200
# outputs, most of them noise, errors are within 3 % of those of all coordinates, and the error of the best kernel by
# them within .3 % of the smallest (60 kernels, eight samples of 250)
_LEADING = _SUMS = 16


@dataclass(frozen=True)
class Ridge:
    """Kernel ridge regression in the eigenbasis of one Gram matrix, for any targets and any relative lam."""

    values: np.ndarray
    vectors: np.ndarray  # (n, n), or (n, r) if the others belong to the value zero
    weights: np.ndarray
    scale: float  # mean diagonal
    groups: tuple[np.ndarray, ...] = ()  # indices of samples left out together; empty if each is left out alone

    @classmethod
    def of(cls, matrix: np.ndarray, weights: np.ndarray, groups: np.ndarray | None = None) -> "Ridge":
        """Return the ridge regressions of a Gram matrix; a group is left out as a whole."""
        scale, root = float(np.average(np.diag(matrix), weights=weights)), np.sqrt(weights)
        values, vectors = eigh(matrix * root[:, None] * root, overwrite_a=True, check_finite=False, driver="evd")
        labels = None if groups is None else np.unique(groups, return_inverse=True)[1]
        places = () if labels is None else tuple(np.flatnonzero(labels == one) for one in range(labels.max() + 1))
        return cls(np.maximum(values, 0.0) / scale, vectors, weights, scale, places)

    @classmethod
    def shared(cls, problem: DualProblem) -> "Ridge":
        """Return the ridge regressions in the eigenbasis of a problem, whose null space may be left out."""
        basis, n = cast(KroneckerBasis, problem.shared.factorize()), problem.targets.shape[0]
        weights = np.ones(n) if problem.root is None else host(problem.root)[:, 0] ** 2
        vectors = host(basis.left) if basis.left_squares is None else host(basis.left) / host(basis.left_squares) ** 0.5
        scale = float(np.sum(host(problem.gram.diag()))) / problem.total or 1.0
        return cls(host(basis.left_values) / scale, vectors, weights, scale)

    def best_lam(self, Y: np.ndarray, seen: np.ndarray | None = None) -> tuple[float, float]:
        """Return the relative lam with the smallest leave-one-out error, and that error; ``seen`` masks errors."""
        rotated = self._rotated(compressed(Y) if seen is None or seen.shape[1] == 1 else Y)
        return best_lam(lambda lams: self._errors(lams, rotated, seen))

    def left_out(self, lam: float, Y: np.ndarray) -> np.ndarray:
        """Return y_i minus its prediction by the model fitted to the other samples, or other groups, (n, p)."""
        return self._left_out(np.array([lam]), self._rotated(Y))[:, 0]

    def fitted_residuals(self, lam: float, Y: np.ndarray) -> np.ndarray:
        """Return the residuals of the model fitted to all samples, (n, p)."""
        mu = lam * float(np.sum(self.weights))
        rotated, rest = self._rotated(Y)
        duals: np.ndarray = self.vectors @ (rotated * (mu / (self.values + mu))[:, None])
        return (duals if rest is None else duals + rest) / np.sqrt(self.weights)[:, None]

    def coefficients(self, lam: float, Y: np.ndarray) -> np.ndarray:
        """Return the coefficients of the kernel in the model fitted to all samples, (n, p)."""
        shares = self.weights[:, None] / (lam * self.scale * float(np.sum(self.weights)))
        return self.fitted_residuals(lam, Y) * shares

    def predicted(self, values: np.ndarray) -> np.ndarray:
        """Return leave-one-out predictions of one complete target (n,) at its best lam."""
        center = np.average(values, weights=self.weights)
        target = (values - center)[:, None]
        lam, _ = self.best_lam(target)
        return np.asarray(center + (target - self.left_out(lam, target))[:, 0])

    def error_of(self, Y: np.ndarray, seen: np.ndarray | None = None) -> Callable[[np.ndarray], np.ndarray]:
        """Return the leave-one-out error as a function of several relative lam; ``seen`` masks errors."""
        rotated = self._rotated(Y)
        return lambda lams: self._errors(lams, rotated, seen)

    def _rotated(self, Y: np.ndarray) -> Rotated:
        rows = np.sqrt(self.weights)[:, None] * Y
        rotated: np.ndarray = self.vectors.T @ rows
        return rotated, None if self.vectors.shape[1] == len(rows) else rows - self.vectors @ rotated

    def _errors(self, lams: np.ndarray, rotated: Rotated, seen: np.ndarray | None) -> np.ndarray:
        squares = sums_of_squares(self._left_out(lams, rotated), None if seen is None else seen[:, None])
        found: np.ndarray = np.average(squares, axis=0, weights=self.weights)
        return found

    def _left_out(self, lams: np.ndarray, turned: Rotated) -> np.ndarray:
        """Return the residuals (n, lams, p); lam is scaled by the weight of the remaining samples."""
        (rotated, rest), n = turned, len(self.weights)
        n_parts = len(self.groups) or n
        total = float(np.sum(self.weights)) * (n_parts - 1) / n_parts if n_parts > 1 else 1.0
        inverse = 1 / (self.values[:, None] + lams * total)
        duals = self.vectors @ (inverse[:, :, None] * rotated[:, None, :]).reshape(len(rotated), -1)
        duals, root = duals.reshape(n, len(lams), -1), np.sqrt(self.weights)[:, None]
        if self.groups:
            return self._without_groups(inverse, duals) / root[:, :, None]
        diagonal = self.vectors**2 @ inverse
        if rest is not None:
            duals = duals + rest[:, None, :] / (lams * total)[:, None]
            diagonal = diagonal + (1 - np.sum(self.vectors**2, axis=1, keepdims=True)) / (lams * total)
        found: np.ndarray = duals / (root * diagonal)[:, :, None]
        return found

    def _without_groups(self, inverse: np.ndarray, duals: np.ndarray) -> np.ndarray:
        """Return the residuals of groups, each by its block of the inverse: (A^-1)_gg r_g = duals_g."""
        found = np.empty_like(duals)
        for group in self.groups:
            rows = self.vectors[group]
            blocks = (rows * inverse.T[:, None, :]) @ rows.T  # (lams, k, k)
            found[group] = np.linalg.solve(blocks, duals[group].transpose(1, 0, 2)).transpose(1, 0, 2)
        return found


class GappedRidge:
    """Kernel ridge regression of outputs with gaps, each on the samples that have it, with one kernel and one lam.

    Outputs with the same gaps share an eigendecomposition. The interface is that of ``Ridge``.
    """

    def __init__(self, matrix: np.ndarray, weights: np.ndarray, groups: np.ndarray | None, seen: np.ndarray) -> None:
        self.matrix = matrix
        self.weights = weights
        self.groups = groups
        self.scale = float(np.average(np.diag(matrix), weights=weights))
        patterns, which = np.unique(seen > 0, axis=1, return_inverse=True)
        places = [(np.flatnonzero(rows), np.flatnonzero(which.ravel() == k)) for k, rows in enumerate(patterns.T)]
        self.places = [pair for pair in places if len(pair[0])]
        self._known: dict[int, Ridge] = {}

    def best_lam(self, Y: np.ndarray, seen: np.ndarray | None = None) -> tuple[float, float]:
        """Return the relative lam with the smallest leave-one-out error, and that error; ``seen`` masks errors."""
        seen = np.ones_like(Y) if seen is None else seen
        used = range(0, len(self.places), -(-len(self.places) // _MOST_PATTERNS) or 1)
        parts = []
        for k in used:
            block, ridge = np.ix_(*self.places[k]), self._ridge(k)
            share = float(np.sum(ridge.weights) / np.sum(self.weights))
            parts.append((share, self._ratio(k), ridge.error_of(Y[block], seen[block])))
        return best_lam(lambda lams: sum((share * error(ratio * lams) for share, ratio, error in parts), 0 * lams))

    def left_out(self, lam: float, Y: np.ndarray) -> np.ndarray:
        """Return y_i minus its prediction by the model without sample i, or its group, (n, p); zero at gaps."""
        found = np.zeros_like(Y)
        for k, place in enumerate(self.places):
            found[np.ix_(*place)] = self._ridge(k).left_out(self._ratio(k) * lam, Y[np.ix_(*place)])
        return found

    def fitted_residuals(self, lam: float, Y: np.ndarray) -> np.ndarray:
        """Return the residuals of the model fitted to all samples, (n, p); zero at gaps."""
        found = np.zeros_like(Y)
        for k, place in enumerate(self.places):
            found[np.ix_(*place)] = self._ridge(k).fitted_residuals(self._ratio(k) * lam, Y[np.ix_(*place)])
        return found

    def predicted(self, values: np.ndarray) -> np.ndarray:
        """Return leave-one-out predictions of one complete target (n,) at its best lam."""
        return Ridge.of(self.matrix, self.weights, self.groups).predicted(values)

    def _ridge(self, k: int) -> Ridge:
        if k not in self._known:
            rows, _ = self.places[k]
            groups = None if self.groups is None else self.groups[rows]
            self._known[k] = Ridge.of(self.matrix[np.ix_(rows, rows)], self.weights[rows], groups)
        return self._known[k]

    def _ratio(self, k: int) -> float:
        """Return the relative lam of a part for lam = 1: the product of lam, mean diagonal and weight is the same."""
        ridge = self._ridge(k)
        return self.scale * float(np.sum(self.weights)) / (ridge.scale * float(np.sum(ridge.weights)))


def best_lam(errors: Callable[[np.ndarray], np.ndarray]) -> tuple[float, float]:
    """Return the largest lam whose error is nearly the smallest, and that error.

    Decades are searched first, extended beyond an end while the error decreases, then thirds of a decade.
    """
    lams = _LAMS
    found = _with_infinity(errors(lams))
    for end, factor in ((0, 0.1), (len(_LAMS) - 1, 10.0)):
        for _ in range(_MOST_DECADES):
            if found[end] > (1 - FLAT) * np.delete(found, end).min() or int(ranked(found)[0]) != end:
                break
            beyond = np.array([lams[end] * factor])
            lams, found, end = np.append(lams, beyond), np.append(found, _with_infinity(errors(beyond))), len(lams)
    fine = lams[int(ranked(found)[0])] * 10.0 ** np.array([-2 / 3, -1 / 3, 1 / 3, 2 / 3])
    lams, found = np.append(lams, fine), np.append(found, _with_infinity(errors(fine)))
    near = np.flatnonzero(found <= (1 + FLAT) * np.min(found))
    at = int(near[np.argmax(lams[near])])
    return float(lams[at]), float(found[at])


def _with_infinity(errors: np.ndarray) -> np.ndarray:
    """Return errors with NaN replaced by infinity."""
    return np.where(np.isnan(errors), np.inf, errors)


def sums_of_squares(residuals: np.ndarray, seen: np.ndarray | None) -> np.ndarray:
    """Return the sums of squares over the last axis, over the entries that count."""
    squares: np.ndarray = np.sum(residuals**2 if seen is None else seen * residuals**2, axis=-1)
    return squares


def compressed(Y: np.ndarray) -> np.ndarray:
    """Return the targets in few coordinates, in which sums of squares of linear functions of them are nearly the same.

    These are the orthonormal coordinates of most variance. If there are many, the sums of squares of the leading ones
    are exact, and those of the others are estimated without bias from sums with random signs.
    """
    if Y.shape[1] <= _LEADING + _SUMS:
        return Y
    left, values, _ = np.linalg.svd(Y, full_matrices=False)
    shares = np.cumsum(values[::-1] ** 2)[::-1]
    count = max(1, int(np.sum(shares > _VARIANCE * shares[0])))
    rows = left[:, :count] * values[:count]
    if count <= _LEADING + _SUMS:
        return rows
    rows = rows * np.sign(rows[np.argmax(np.abs(rows), axis=0), np.arange(count)])  # a coordinate has no sign
    random = np.random.default_rng(0).choice([-1.0, 1.0], (count - _LEADING, _SUMS)) / math.sqrt(_SUMS)
    return np.hstack([rows[:, :_LEADING], rows[:, _LEADING:] @ random])
