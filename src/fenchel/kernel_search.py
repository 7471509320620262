"""Search over kernels and lam by closed-form leave-one-out errors, with one eigendecomposition per kernel."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.spatial.distance import pdist, squareform

from fenchel._array import Array, host
from fenchel._statistics import weighted_quantile
from fenchel.kernels import (
    FunctionalGaussian,
    FunctionalLaplacian,
    FunctionalLinear,
    Gaussian,
    IntegralLaplacian,
    Laplacian,
    Linear,
    Matern,
    Projected,
    ScalarKernel,
    Scaled,
    Standardized,
)
from fenchel.kernels.standardized import moments
from fenchel.quadrature import trapezoid_weights

__all__ = ["Candidate", "KernelSearch", "Trial", "dictionary", "search_kernel"]

WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
LINEAR = (0.0, 0.1, 1.0, 10.0)
_LAMS = np.logspace(-9, 2, 12)  # relative to the mean diagonal
FLAT = 1e-3  # relative difference of errors that is ignored: a larger lam is solved faster and more accurately
_MOST_DECADES = 4  # by which the grid of lam is extended beyond an end
_FEWEST = 100  # samples in the first rung
_KEPT = {8: 24, 4: 8, 2: 3}  # candidates kept after a part of the sample, by the inverse of its share
_VARIANCE = 1e-8  # share of the variance of the targets that may be dropped when kernels are compared
_CLIP = 2.0  # a robust search shortens residuals beyond this many robust scales before it compares kernels
_REJECT = 4.0  # and sets those beyond this many to zero after the first round
_ROUNDS = 3  # rounds of shortening
_LEVEL, _NORMAL = 0.8, 1.2815515655446004  # quantile level of residual norms, and that quantile of |N(0, 1)|


@dataclass(frozen=True)
class Family:
    """A function of a distance, and the corresponding kernels on points and on curves.

    A family with metric ``"pointwise"`` averages a function of the pointwise distance over the points of a curve.
    """

    metric: str
    profile: Callable[[np.ndarray], np.ndarray] | None = None  # of distances divided by the width
    of_points: Callable[[float], ScalarKernel] | None = None  # from the width
    of_curves: Callable[[float, ArrayLike | None], ScalarKernel] | None = None  # from the width and the grid


FAMILIES: dict[str, Family] = {
    "gaussian": Family(
        "euclidean",
        lambda t: np.exp(-(t**2) / 2),
        lambda width: Gaussian(1 / (2 * width**2)),
        lambda width, grid: FunctionalGaussian(1 / (2 * width**2), grid),
    ),
    "exponential": Family(
        "euclidean",
        lambda t: np.exp(-t),
        lambda width: Matern(width, 0.5),
        lambda width, grid: FunctionalLaplacian(1 / width, grid),
    ),
    "laplacian": Family("cityblock", lambda t: np.exp(-t), lambda width: Laplacian(1 / width)),
    "integral": Family("pointwise", of_curves=lambda width, grid: IntegralLaplacian(1 / width, grid)),
}


@dataclass(frozen=True)
class Candidate:
    """A candidate kernel: a family, its width in median distances, and the relative weight of a linear part."""

    family: str
    width: float
    linear: float


_PILOT = Candidate("exponential", 1.0, 1.0)  # approximates linear and any other continuous functions


@dataclass(frozen=True)
class Trial:
    """Result for one candidate on a part of the sample: the best lam and its leave-one-out error."""

    candidate: Candidate
    n_samples: int
    lam: float
    error: float
    seconds: float


@dataclass(frozen=True)
class KernelSearch:
    """The kernel and lam with the smallest leave-one-out error, with all data-dependent parameters resolved.

    ``error`` is the mean squared leave-one-out error, of the shortened targets in a robust search. ``left_out`` (n, p)
    are the leave-one-out residuals of the samples listed in ``index``, which are all samples unless there are more than
    ``max_samples``, and ``residuals`` (n, p) those of the fitted model, with which the threshold of a loss is compared;
    ``cleaned`` (n, p) are the targets that the square loss has seen; ``trials`` lists what was tried, in order.
    """

    kernel: ScalarKernel
    lam: float
    error: float
    candidate: Candidate
    left_out: np.ndarray
    residuals: np.ndarray
    index: np.ndarray
    cleaned: np.ndarray
    trials: tuple[Trial, ...]


def dictionary(families: Sequence[str] = tuple(FAMILIES), curves: bool = False) -> list[Candidate]:
    """Return the candidates: families, widths and linear parts."""
    known = [
        name for name in families if (FAMILIES[name].of_curves if curves else FAMILIES[name].of_points) is not None
    ]
    return [Candidate(name, width, linear) for name in known for width in WIDTHS for linear in LINEAR]


def search_kernel(
    X: Array,
    targets: Array,
    weights: Array | None = None,
    candidates: Sequence[Candidate] | None = None,
    robust: bool = False,
    curves: bool = False,
    grid: ArrayLike | None = None,
    max_samples: int = 2000,
    observed: Array | None = None,
    metric: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> KernelSearch:
    """Return the kernel and the lam of the square loss with the smallest leave-one-out error.

    Columns of ``X`` (channels, for curves) are divided by their standard deviations, so that their units do not matter.
    Candidates are compared on an eighth of the sample, the better ones on a quarter, on half and on all of it; the
    width of the winner is then refined.

    Parameters
    ----------
    X : array of shape (n, d), (n, m) or (n, m, c)
        Inputs; three dimensions mean curves.
    targets : array of shape (n, p)
        Centred outputs in orthonormal coordinates.
    weights : array of shape (n,) or None, default=None
        Sample weights.
    candidates : sequence of Candidate or None, default=None
        The kernels to choose from; ``None`` means ``dictionary()``.
    robust : bool, default=False
        Whether targets may contain gross errors. Targets far from their leave-one-out predictions are first moved
        towards them, to twice a robust scale of the residuals, by a pilot kernel and again by the winner.
    curves : bool, default=False
        Whether the rows of a matrix ``X`` are curves, with one scale for all of their points.
    grid : array of shape (m,) or None, default=None
        Points of the curves.
    max_samples : int, default=2000
        Maximum number of samples on which kernels are compared, drawn at random from a larger sample.
    observed : array of shape (n, p) or None, default=None
        1 for known targets and 0 for others, whose errors do not count. ``targets`` holds estimates of these, from the
        known targets of the same sample. (Predictions in their place would leak the output of a sample into its own
        leave-one-out prediction; zeros, the centre, would pull all predictions towards the centre.)
    metric : array of shape (d,) or (d, k) or None, default=None
        Weights of the standardised columns, or linear combinations of them, that define the distances; the linear part
        uses the columns themselves. Not for curves.
    groups : array of shape (n,) or None, default=None
        Groups of samples that are left out together, such as replicates.

    Returns
    -------
    search : KernelSearch
        The kernel, resolved on the whole sample, and lam for ``OperatorKernelRegressor``.
    """
    X, Y = host(X), host(targets).astype(np.float64)
    counts = np.ones(len(X)) if weights is None else host(weights).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(X))[:max_samples]
    if metric is not None:
        metric = _checked_metric(metric, X, curves or X.ndim == 3)
    inputs = _Inputs.of(X, counts, order, curves or X.ndim == 3, grid, metric)
    Y, counts = Y[order], counts[order]
    seen = None if observed is None else host(observed).astype(np.float64)[order]
    groups = None if groups is None else np.asarray(groups)[order]
    cleaned, counted = Y, seen
    if robust:
        pilot = Ridge.of(inputs.matrix(_PILOT, len(Y)), counts, groups)
        cleaned, counted = cleaned_targets(pilot, Y, seen)
    board = _Board(inputs, cleaned, counts, counted, groups)
    best = board.refined(board.race(dictionary(curves=inputs.is_curves) if candidates is None else list(candidates)))
    ridge, lam = board.ridge(best), best.lam
    if robust:
        cleaned, counted = cleaned_targets(ridge, Y, seen)
        lam, _ = ridge.best_lam(cleaned, counted)
    left_out, fitted = ridge.left_out(lam, cleaned), ridge.fitted_residuals(lam, cleaned)
    error = float(np.average(_squares(left_out, counted), weights=counts))
    back, moved = np.argsort(order), Y - cleaned
    if seen is not None:
        left_out, fitted, moved = seen * left_out, seen * fitted, seen * moved
    return KernelSearch(
        inputs.kernel(best.candidate),
        lam * ridge.scale,
        error,
        best.candidate,
        (left_out + moved)[back],
        (fitted + moved)[back],
        order[back],
        cleaned[back],
        tuple(board.trials),
    )


def _checked_metric(metric: np.ndarray, X: np.ndarray, is_curves: bool) -> np.ndarray:
    """Return a metric as an array of floats, or raise."""
    values = np.asarray(metric, dtype=np.float64)
    is_fit = values.ndim in (1, 2) and len(values) == X.shape[1] and bool(np.all(np.isfinite(values)))
    if is_curves or not is_fit:
        raise ValueError(
            f"metric must hold finite numbers, shape (d,) or (d, k), for vectors with d columns. Got shape "
            f"{values.shape} for inputs of shape {X.shape}{' that are curves' if is_curves else ''}."
        )
    return values


def cleaned_targets(ridge: "Ridge", Y: np.ndarray, seen: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return targets with outlying ones moved towards their predictions, and a mask of the errors that count.

    Predictions leave the sample out. At a fixed point the moved targets are the pseudo-values of the Huber loss of the
    leave-one-out residuals: the square loss of the moved targets has the gradient of that loss of the original ones.
    Samples that are certainly wrong are replaced by their predictions. The mask is 0 for these and where ``seen`` is 0:
    an error there would favour the kernel that predicted them.
    """
    known = np.ones((len(Y), 1)) if seen is None else seen
    shares = np.mean(known, axis=1)
    moved, counted = _shortened(known * Y, ridge.weights, shares) * Y, known
    for done in range(_ROUNDS):
        lam, _ = ridge.best_lam(moved, counted)
        predictions = moved - ridge.left_out(lam, moved)
        residuals = known * (Y - predictions)
        factors = _shortened(residuals, ridge.weights, shares, _REJECT if done else math.inf)
        moved, counted = predictions + factors * (Y - predictions), known * (factors > 0)
    return moved, counted


def _shortened(residuals: np.ndarray, weights: np.ndarray, shares: np.ndarray, reject: float = math.inf) -> np.ndarray:
    """Return factors (n, 1) that shorten residuals to norms of at most ``_CLIP`` robust scales, 0 beyond ``reject``.

    ``shares`` are the shares of the targets that count. The scale comes from a high quantile, so that up to a fifth of
    wrong samples do not move it far, and outputs that are constant for most samples have a positive one.
    """
    norms = np.linalg.norm(residuals, axis=1) / np.sqrt(shares)
    scale = weighted_quantile(norms, weights, _LEVEL) / _NORMAL
    if scale == 0:
        return np.ones((len(norms), 1))
    factors = np.minimum(1.0, _CLIP * scale / np.where(norms > 0, norms, 1.0))
    shortened: np.ndarray = np.where(norms > reject * scale, 0.0, factors)[:, None]
    return shortened


@dataclass(frozen=True)
class _Inputs:
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
    ) -> "_Inputs":
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


@dataclass(frozen=True)
class Ridge:
    """Kernel ridge regression in the eigenbasis of one Gram matrix, for any targets and any relative lam."""

    values: np.ndarray
    vectors: np.ndarray
    weights: np.ndarray
    scale: float  # mean diagonal
    groups: tuple[np.ndarray, ...] = ()  # indices of samples left out together; empty if each is left out alone

    @classmethod
    def of(cls, matrix: np.ndarray, weights: np.ndarray, groups: np.ndarray | None = None) -> "Ridge":
        scale, root = float(np.average(np.diag(matrix), weights=weights)), np.sqrt(weights)
        values, vectors = eigh(matrix * root[:, None] * root, overwrite_a=True, check_finite=False)
        labels = None if groups is None else np.unique(groups, return_inverse=True)[1]
        places = () if labels is None else tuple(np.flatnonzero(labels == one) for one in range(labels.max() + 1))
        return cls(np.maximum(values, 0.0) / scale, vectors, weights, scale, places)

    def best_lam(self, Y: np.ndarray, seen: np.ndarray | None = None) -> tuple[float, float]:
        """Return the relative lam with the smallest leave-one-out error, and that error; ``seen`` masks errors."""
        rotated = self._rotated(_compressed(Y) if seen is None or seen.shape[1] == 1 else Y)
        return best_lam(lambda lams: self._errors(lams, rotated, seen))

    def left_out(self, lam: float, Y: np.ndarray) -> np.ndarray:
        """Return y_i minus its prediction by the model fitted to the other samples, or other groups, (n, p)."""
        return self._left_out(np.array([lam]), self._rotated(Y))[:, 0]

    def fitted_residuals(self, lam: float, Y: np.ndarray) -> np.ndarray:
        """Return the residuals of the model fitted to all samples, (n, p)."""
        mu = lam * float(np.sum(self.weights))
        duals: np.ndarray = self.vectors @ (self._rotated(Y) * (mu / (self.values + mu))[:, None])
        return duals / np.sqrt(self.weights)[:, None]

    def _rotated(self, Y: np.ndarray) -> np.ndarray:
        rotated: np.ndarray = self.vectors.T @ (np.sqrt(self.weights)[:, None] * Y)
        return rotated

    def _errors(self, lams: np.ndarray, rotated: np.ndarray, seen: np.ndarray | None) -> np.ndarray:
        squares = _squares(self._left_out(lams, rotated), None if seen is None else seen[:, None])
        found: np.ndarray = np.average(squares, axis=0, weights=self.weights)
        return found

    def _left_out(self, lams: np.ndarray, rotated: np.ndarray) -> np.ndarray:
        """Return the residuals (n, lams, p); lam is scaled by the weight of the remaining samples."""
        n, p = rotated.shape
        n_parts = len(self.groups) or n
        total = float(np.sum(self.weights)) * (n_parts - 1) / n_parts if n_parts > 1 else 1.0
        inverse = 1 / (self.values[:, None] + lams * total)
        duals = self.vectors @ (inverse[:, :, None] * rotated[:, None, :]).reshape(n, -1)
        duals, root = duals.reshape(n, len(lams), p), np.sqrt(self.weights)[:, None]
        if self.groups:
            return self._without_groups(inverse, duals) / root[:, :, None]
        diagonal = self.vectors**2 @ inverse
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


class _Board:
    """Evaluates candidates on parts of the sample and records the results."""

    def __init__(
        self,
        inputs: _Inputs,
        Y: np.ndarray,
        weights: np.ndarray,
        seen: np.ndarray | None,
        groups: np.ndarray | None,
    ) -> None:
        self.inputs = inputs
        self.Y = _compressed(Y) if seen is None or seen.shape[1] == 1 else Y
        self.weights = weights
        self.seen = seen
        self.groups = groups
        self.trials: list[Trial] = []
        self._kept: tuple[Trial, Ridge] | None = None  # the best trial on the whole sample

    def ridge(self, best: Trial) -> Ridge:
        """Return the ridge regressions of the best trial on the whole sample."""
        assert self._kept is not None and self._kept[0] == best
        return self._kept[1]

    def race(self, candidates: list[Candidate]) -> Trial:
        """Return the best trial on the whole sample, by successive halving of the candidates."""
        n = len(self.Y)
        for share, kept in _KEPT.items():
            if n // share >= _FEWEST and len(candidates) > kept:
                ranked = sorted((self.run(one, n // share) for one in candidates), key=lambda trial: trial.error)
                candidates = [trial.candidate for trial in ranked[:kept]]
        return min((self.run(one, n) for one in candidates), key=lambda trial: trial.error)

    def refined(self, best: Trial) -> Trial:
        """Return the best trial after refining the width of the kernel."""
        for factor in (math.sqrt(2), 1 / math.sqrt(2)):
            other = self.run(replace(best.candidate, width=best.candidate.width * factor), len(self.Y))
            if other.error < best.error:
                return other
        return best

    def run(self, candidate: Candidate, n: int) -> Trial:
        """Return the best lam of a candidate on the first n samples."""
        start = time.perf_counter()
        groups = None if self.groups is None else self.groups[:n]
        ridge = Ridge.of(self.inputs.matrix(candidate, n), self.weights[:n], groups)
        lam, error = ridge.best_lam(self.Y[:n], None if self.seen is None else self.seen[:n])
        trial = Trial(candidate, n, lam, error, time.perf_counter() - start)
        self.trials.append(trial)
        if n == len(self.Y) and (self._kept is None or error < self._kept[0].error):
            self._kept = trial, ridge
        return trial


def best_lam(errors: Callable[[np.ndarray], np.ndarray]) -> tuple[float, float]:
    """Return the largest lam whose error is nearly the smallest, and that error.

    Decades are searched first, extended beyond an end while the error decreases, then thirds of a decade.
    """
    lams = _LAMS
    found = _with_infinity(errors(lams))
    for end, factor in ((0, 0.1), (len(_LAMS) - 1, 10.0)):
        for _ in range(_MOST_DECADES):
            if int(np.argmin(found)) != end or found[end] > (1 - FLAT) * np.delete(found, end).min():
                break
            beyond = np.array([lams[end] * factor])
            lams, found, end = np.append(lams, beyond), np.append(found, _with_infinity(errors(beyond))), len(lams)
    fine = lams[int(np.argmin(found))] * 10.0 ** np.array([-2 / 3, -1 / 3, 1 / 3, 2 / 3])
    lams, found = np.append(lams, fine), np.append(found, _with_infinity(errors(fine)))
    near = np.flatnonzero(found <= (1 + FLAT) * np.min(found))
    at = int(near[np.argmax(lams[near])])
    return float(lams[at]), float(found[at])


def _with_infinity(errors: np.ndarray) -> np.ndarray:
    """Return errors with NaN replaced by infinity."""
    return np.where(np.isnan(errors), np.inf, errors)


def _squares(residuals: np.ndarray, seen: np.ndarray | None) -> np.ndarray:
    """Return the sums of squares over the last axis, over the entries that count."""
    squares: np.ndarray = np.sum(residuals**2 if seen is None else seen * residuals**2, axis=-1)
    return squares


def _compressed(Y: np.ndarray) -> np.ndarray:
    """Return the targets in fewer orthonormal coordinates that hold nearly all of their variance."""
    if Y.shape[1] <= 8:
        return Y
    left, values, _ = np.linalg.svd(Y, full_matrices=False)
    shares = np.cumsum(values[::-1] ** 2)[::-1]
    count = max(1, int(np.sum(shares > _VARIANCE * shares[0])))
    return left[:, :count] * values[:count]
