"""Curves with gaps, completed from their own values."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fenchel._array import as_like, host
from fenchel.data.content import contents
from fenchel.data.functional import Curves
from fenchel.kernels import Matern
from fenchel.model.codec import Codec
from fenchel.representations import Coordinates

__all__ = ["completed_targets"]

_LENGTHS = (0.1, 0.3, 1.0)  # of the kernel, as fractions of the domain
_NOISES = (1e-4, 1e-2, 1e-1, 1.0)  # variances of the noise, as fractions of that of the values
_MOST_CURVES = 200  # curves on which length and noise are compared
_MOST_POINTS = 200  # points of a curve that are used


def completed_targets(codec: Codec, targets: Coordinates) -> np.ndarray:
    """Return the coordinates (n, p) of training curves whose missing values are estimated from their own values.

    A missing value is its conditional expectation given the observed values of the same curve and channel, under a
    Gaussian process whose length and noise minimise the leave-one-out error within curves. No other curve is used, so
    that a curve that is left out says nothing about itself through the others.
    """
    representation, grid = codec.representation, codec.grid
    assert grid is not None and targets.observed is not None  # only curves have gaps
    seen = host(targets.observed) > 0
    values = np.where(seen, host(representation.decode(targets.unscaled(targets.rows))).reshape(seen.shape), np.nan)
    columns = values.reshape(len(values), len(grid), -1)
    filled = np.stack([_filled(grid, columns[:, :, c]) for c in range(columns.shape[2])], axis=2)
    return host(representation.encode(Curves(grid, as_like(filled, targets.rows))).rows)


def _filled(grid: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return values (n, m) in which NaN is replaced."""
    points = (grid - grid[0])[:, None] / (float(np.ptp(grid)) or 1.0)
    used = [_thinned(np.flatnonzero(~np.isnan(row))) for row in values]
    settings = [(Matern(length, 1.5)(points), noise) for length in _LENGTHS for noise in _NOISES]
    some = np.argsort(contents(values), kind="stable")[:: -(-len(values) // _MOST_CURVES)]
    errors = [sum(_left_out(gram, noise, values[i], used[i]) for i in some) for gram, noise in settings]
    gram, noise = settings[int(np.argmin(errors))]
    found = values.copy()
    for row, at in zip(found, used, strict=True):
        missing = np.isnan(row)
        row[missing] = gram[np.ix_(missing, at)] @ cho_solve(_factor(gram, noise, at), row[at]) if len(at) else 0.0
    return found


def _thinned(places: np.ndarray) -> np.ndarray:
    return places[:: -(-len(places) // _MOST_POINTS) or 1]


def _factor(gram: np.ndarray, noise: float, at: np.ndarray) -> tuple[np.ndarray, bool]:
    factor: tuple[np.ndarray, bool] = cho_factor(gram[np.ix_(at, at)] + noise * np.eye(len(at)))
    return factor


def _left_out(gram: np.ndarray, noise: float, row: np.ndarray, at: np.ndarray) -> float:
    """Return the sum of absolute leave-one-out errors, which a few wrong values do not decide."""
    if not len(at):
        return 0.0
    inverse = cho_solve(_factor(gram, noise, at), np.eye(len(at)))
    return float(np.sum(np.abs(inverse @ row[at] / np.diag(inverse))))
