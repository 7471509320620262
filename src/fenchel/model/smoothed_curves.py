"""Curves from noisy values at a few points of their own: conditional expectations given these values."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from fenchel._array import host
from fenchel.data.functional import Curves
from fenchel.exceptions import DataWarning, warn_user
from fenchel.kernels import Matern
from fenchel.model.curve_center import CurveCenter

__all__ = ["CurveSmoother"]

_POINTS = 51  # of the smoothed curves: trapezoids on them lose less than the noise of a few values does
_COMPONENTS = 12  # functions that span the smoothed curves; 15 values of a curve determine no more
_LENGTHS = (0.2, 0.5, 1.5)  # of the prior covariance, in lengths of the domain
_STRENGTHS = (4.0, 30.0, 300.0)  # of the prior covariance, in curves
_MARGIN = 1 / (_POINTS - 1)  # of the domain, the spacing of the grid: points that are closer to an end count as the end
_ROUNDS, _LEAST = 100, 1e-4  # of expectation maximisation, and the change of the noise at which it stops


@dataclass(frozen=True)
class CurveSmoother:
    """Gaussian processes, one for each channel, learned from curves that were observed at their own points."""

    grid: np.ndarray
    center: CurveCenter
    processes: tuple["Process", ...]

    @classmethod
    def of(cls, curves: Curves) -> Self:
        """Return the processes of noisy curves: means by smoothing, covariances by maximum likelihood."""
        grid = np.linspace(curves.grid[0], curves.grid[-1], _POINTS)
        values = _channels(curves)
        center = CurveCenter.of(curves, values, np.ones(len(values)), "mean")
        points = _on_unit(curves.grid, grid)
        residuals = values - center(curves.grid)
        channels = np.moveaxis(residuals, 2, 0)
        return cls(grid, center, tuple(_chosen(Observed.of(points, rows)) for rows in channels))

    def __call__(self, curves: Curves) -> np.ndarray:
        """Return the conditional expectations of curves given their values, at the points of the grid, (n, m, c)."""
        points, at = _on_unit(curves.grid, self.grid), np.linspace(0, 1, len(self.grid))
        residuals = _channels(curves) - self.center(curves.grid)
        is_outside = (points < -_MARGIN) | (points > 1 + _MARGIN)
        points = np.clip(points, 0.0, 1.0)
        if is_outside.any():
            warn_user(
                f"Some input curves were observed outside of [{self.grid[0]:g}, {self.grid[-1]:g}], where the training "
                "curves were. What is known of them there is not used.",
                DataWarning,
                "outside-curves",
            )
        residuals[:, is_outside] = np.nan
        pairs = zip(self.processes, np.moveaxis(residuals, 2, 0), strict=True)
        found = [process.expected(Observed.of(points, rows), at) for process, rows in pairs]
        return np.stack(found, axis=2) + self.center(self.grid)


@dataclass(frozen=True)
class Observed:
    """Values of several curves in one array, curve by curve."""

    points: np.ndarray  # (N,), in [0, 1]
    values: np.ndarray  # (N,)
    owner: np.ndarray  # (N,), the curve of each value, increasing
    count: int  # of the curves

    @classmethod
    def of(cls, points: np.ndarray, rows: np.ndarray) -> Self:
        """Return the values of curves (n, m) that are not NaN."""
        owner, place = np.nonzero(~np.isnan(rows))
        return cls(points[place], rows[owner, place], owner, len(rows))

    def of_curves(self, kept: np.ndarray) -> Self:
        """Return the values of some of the curves, (n,) mask."""
        some = kept[self.owner]
        number = np.cumsum(kept) - 1
        return type(self)(self.points[some], self.values[some], number[self.owner[some]], int(kept.sum()))

    def total(self, rows: np.ndarray) -> np.ndarray:
        """Return the sums over each curve of one row for each value."""
        found = np.zeros((self.count, *rows.shape[1:]))
        np.add.at(found, self.owner, rows)
        return found


@dataclass(frozen=True)
class Process:
    """Gaussian process with a covariance in the span of smooth functions, and the variance of the noise."""

    length: float  # of the Matern kernel whose leading functions are used
    covariance: np.ndarray  # (k, k), of their coefficients
    noise: float

    @classmethod
    def learn(cls, seen: Observed, length: float, strength: float) -> Self:
        """Return the process that maximises the likelihood times a prior, as if so many curves were of the kernel."""
        basis = _basis(length, seen.points)
        grams = seen.total(basis[:, :, None] * basis[:, None, :])
        moments = seen.total(basis * seen.values[:, None])
        size = float(np.mean(seen.values**2)) or 1.0
        prior = covariance = size * np.eye(basis.shape[1])
        noise = size / 4
        for _ in range(_ROUNDS):
            spread, means = _posterior(grams, moments, covariance, noise)
            covariance = (means.T @ means + spread.sum(0) + strength * prior) / (seen.count + strength)
            errors = seen.values - np.sum(basis * means[seen.owner], axis=1)
            before, noise = noise, float(np.sum(errors**2) + np.sum(grams * spread)) / len(seen.values)
            noise = max(noise, 1e-10 * size)
            if abs(noise - before) <= _LEAST * before:
                break
        return cls(length, covariance, noise)

    def log_likelihood(self, seen: Observed) -> float:
        """Return the logarithm of the density of the values of other curves, up to a constant."""
        basis = _basis(self.length, seen.points)
        grams = seen.total(basis[:, :, None] * basis[:, None, :])
        moments = seen.total(basis * seen.values[:, None])
        _, means = _posterior(grams, moments, self.covariance, self.noise)
        squares = (np.sum(seen.values**2) - np.sum(means * moments)) / self.noise
        inner = np.eye(basis.shape[1]) + self.covariance @ grams / self.noise
        return -0.5 * float(squares + len(seen.values) * np.log(self.noise) + np.sum(np.linalg.slogdet(inner)[1]))

    def expected(self, seen: Observed, at: np.ndarray) -> np.ndarray:
        """Return the conditional expectations of the curves at points of [0, 1], (n, m)."""
        basis = _basis(self.length, seen.points)
        grams = seen.total(basis[:, :, None] * basis[:, None, :])
        moments = seen.total(basis * seen.values[:, None])
        found: np.ndarray = _posterior(grams, moments, self.covariance, self.noise)[1] @ _basis(self.length, at).T
        return found


def _posterior(
    grams: np.ndarray, moments: np.ndarray, covariance: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return covariances (n, k, k) and means (n, k) of the coefficients of each curve given its values."""
    inner = np.eye(len(covariance)) + covariance @ grams / noise
    spread = np.linalg.solve(inner, np.broadcast_to(covariance, grams.shape))
    return spread, np.einsum("nij,nj->ni", spread, moments) / noise


def _basis(length: float, points: np.ndarray) -> np.ndarray:
    """Return the leading functions of a Matern kernel on [0, 1], which sum up to it, at points, (N, k)."""
    kernel, nodes = Matern(length, 2.5), np.linspace(0, 1, _POINTS)[:, None]
    values, vectors = np.linalg.eigh(kernel(nodes))
    values, vectors = values[-_COMPONENTS:], vectors[:, -_COMPONENTS:]
    kept = values > 1e-8 * values[-1]  # of smoother kernels fewer functions count
    found: np.ndarray = kernel(points[:, None], nodes) @ (vectors[:, kept] / np.sqrt(values[kept]))
    return found


def _chosen(seen: Observed) -> Process:
    """Return the process with the length and the strength of the prior under which other curves are most likely."""
    is_first = np.arange(seen.count) % 2 == 0
    halves = [seen.of_curves(is_first), seen.of_curves(~is_first)]
    settings = [(length, strength) for length in _LENGTHS for strength in _STRENGTHS]
    if seen.count < 2:
        return Process.learn(seen, *settings[-1])
    scores = [
        sum(Process.learn(one, *setting).log_likelihood(other) for one, other in (halves, halves[::-1]))
        for setting in settings
    ]
    return Process.learn(seen, *settings[int(np.argmax(scores))])


def _on_unit(points: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Return points in units of the domain of a grid."""
    moved: np.ndarray = (points - grid[0]) / (float(np.ptp(grid)) or 1.0)
    return moved


def _channels(curves: Curves) -> np.ndarray:
    """Return the values of curves as floats, (n, m, c)."""
    return np.asarray(host(curves.values), dtype=np.float64).reshape(len(curves), len(curves.grid), -1)
