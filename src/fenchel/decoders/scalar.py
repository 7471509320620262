"""Decoder of numbers: global minimisation of a weighted loss on an interval."""

from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Outputs
from fenchel._check import Interval, Options
from fenchel.decoders._ties import first_least, first_of_each_row, round_off
from fenchel.decoders.decoder import Decoder, Space

__all__ = ["ScalarMinimum"]

_FINE = 1e-4  # how far the loss may fall between two grid points, relative to its range
_MOST = 2**14  # number of points of the finest grid
_EPS = 4 * float(np.finfo(np.float64).eps)
_BLOCK = 2**22  # losses in memory at a time
_STEPS = 100  # limit on Newton or bisection steps; only a few are taken unless the loss is nearly piecewise linear


class ScalarMinimum(Decoder):
    r"""Number in an interval that minimises :math:`\sum_i w_i \Delta(y, z_i)`, for weights of any sign.

    Weighted robust losses have many local minima. A piecewise linear loss is smallest at a knot or at an end, and all
    are tried. A smooth loss is evaluated on a grid and at the outputs by one matrix product; the grid is refined
    until bounds on the second derivative leave little room between two points. Newton steps start from every local
    minimum of the grid near which the global minimum can lie, and the best result is kept; among results that differ
    only by round-off, the smallest number. Rows are decoded column by column.

    Parameters
    ----------
    low, high : float or None, default=None
        The interval; ``None`` means the smallest and the largest training output of each column.
    n_grid : int, default=512
        Number of points of the initial grid.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LossTrickPredictor
    >>> from fenchel.decoders import ScalarMinimum
    >>> from fenchel.task_losses import Absolute
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = np.sin(X[:, 0])
    >>> model = LossTrickPredictor(task_loss=Absolute(), decoder=ScalarMinimum()).fit(X, Y)
    >>> bool(np.abs(model.predict(X) - Y).max() < 0.2)
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "low": Interval(-float("inf"), float("inf"), also=(None,)),
        "high": Interval(-float("inf"), float("inf"), also=(None,)),
        "n_grid": Interval(2, float("inf"), "left", integer=True),
    }

    def __init__(self, low: float | None = None, high: float | None = None, n_grid: int = 512) -> None:
        self.low = low
        self.high = high
        self.n_grid = n_grid

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Validate the task loss and the interval."""
        self._loss = self._task_loss(representation, "knots", "bend_bounds", what="numbers")
        outputs = np.asarray(Y, dtype=np.float64)
        outputs = outputs[:, None] if outputs.ndim == 1 else outputs
        low = np.min(outputs, axis=0) if self.low is None else np.full(outputs.shape[1], float(self.low))
        high = np.max(outputs, axis=0) if self.high is None else np.full(outputs.shape[1], float(self.high))
        if np.any(low > high):
            worst = int(np.argmax(low - high))
            raise ValueError(f"ScalarMinimum needs low <= high. Got {low[worst]:g} and {high[worst]:g}.")
        self._intervals = np.stack([low, high], axis=1)
        return super().fit(Y, representation)

    def decode(self, coordinates: np.ndarray) -> np.ndarray:
        """Return one number, or one row of numbers, for each row of weights."""
        outputs = np.asarray(self.representation_.outputs_)
        rows = outputs[:, None] if outputs.ndim == 1 else outputs
        search = self._among_knots if hasattr(self._loss, "knots") else self._on_grid
        columns = [search(coordinates, z, low, high) for z, (low, high) in zip(rows.T, self._intervals, strict=True)]
        return columns[0] if outputs.ndim == 1 else np.stack(columns, axis=1)

    def _among_knots(self, weights: np.ndarray, z: np.ndarray, low: float, high: float) -> np.ndarray:
        points = np.unique(np.concatenate([np.clip(self._loss.knots(z), low, high), [low, high]]))
        values = self._values(weights, points, z)
        slack = round_off(self._sizes(weights, points[np.argmin(values, axis=1)], z))
        return np.asarray(points[first_least(values, slack)])

    def _values(self, weights: np.ndarray, points: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the weighted losses at all points, (m, G)."""
        step = max(1, _BLOCK // len(z))
        parts = [points[i : i + step] for i in range(0, len(points), step)]
        return np.hstack([weights @ self._loss.value(part[:, None], z).T for part in parts])

    def _sizes(self, weights: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the size of the terms of the weighted losses at one point for each row, (m,)."""
        parts = row_blocks(len(y), len(z))
        return np.concatenate([np.sum(np.abs(weights[i] * self._loss.value(y[i, None], z)), axis=1) for i in parts])

    def _on_grid(self, weights: np.ndarray, z: np.ndarray, low: float, high: float) -> np.ndarray:
        below, above = self._loss.bend_bounds(z)
        bend = np.maximum(np.maximum(weights, 0.0) @ above - np.maximum(-weights, 0.0) @ below, 0.0)
        n_grid, inside = self.n_grid, z[(z >= low) & (z <= high)]
        while True:
            points = np.unique(np.concatenate([np.linspace(low, high, n_grid), inside]))
            values = self._values(weights, points, z)
            slack = bend * ((high - low) / (n_grid - 1)) ** 2 / 8  # how far the loss can fall between two points
            if np.all(slack <= _FINE * np.ptp(values, axis=1)) or n_grid >= _MOST:
                break
            n_grid *= 4
        padded = np.pad(values, ((0, 0), (1, 1)), constant_values=np.inf)
        is_low = (values < padded[:, :-2]) & (values <= padded[:, 2:])
        best = np.argmin(values, axis=1)
        room = np.min(values, axis=1) + slack + round_off(self._sizes(weights, points[best], z))
        rows, nodes = np.nonzero(is_low & (values <= room[:, None]))
        y, least, sizes = points[nodes], values[rows, nodes], np.empty(len(rows))
        ends = points[np.maximum(nodes - 1, 0)], points[np.minimum(nodes + 1, len(points) - 1)]
        for part in row_blocks(len(rows), len(z)):
            w = weights[rows[part]]
            stationary = self._stationary(w, y[part], ends[0][part], ends[1][part], z)
            terms = w * self._loss.value(stationary[:, None], z)
            value, sizes[part] = np.sum(terms, axis=1), np.sum(np.abs(terms), axis=1)
            lower = value < least[part]
            y[part], least[part] = np.where(lower, stationary, y[part]), np.where(lower, value, least[part])
        return np.asarray(y[first_of_each_row(rows, least, round_off(sizes))])

    def _stationary(
        self, weights: np.ndarray, y: np.ndarray, left: np.ndarray, right: np.ndarray, z: np.ndarray
    ) -> np.ndarray:
        """Return stationary points between two ends, by Newton steps safeguarded by bisection."""
        y, left, right, todo = y.copy(), left.copy(), right.copy(), np.arange(len(y))
        for _ in range(_STEPS):
            w, at = weights[todo], y[todo]
            slope = np.einsum("mn,mn->m", w, self._loss.slope(at[:, None], z))
            bend = np.einsum("mn,mn->m", w, self._loss.bend(at[:, None], z))
            left[todo], right[todo] = np.where(slope < 0, at, left[todo]), np.where(slope > 0, at, right[todo])
            trial = at - slope / np.where(bend > 0, bend, np.inf)
            is_in = (bend > 0) & (trial > left[todo]) & (trial < right[todo])
            y[todo] = np.where(is_in, trial, (left[todo] + right[todo]) / 2)
            y[todo[slope == 0]] = at[slope == 0]
            todo = todo[np.abs(y[todo] - at) > _EPS * (np.abs(at) + np.abs(right[todo] - left[todo]))]
            if len(todo) == 0:
                break
        return y


def row_blocks(count: int, width: int) -> Iterator[slice]:
    """Yield blocks of ``count`` rows, each with a bounded number of entries."""
    step = max(1, _BLOCK // max(width, 1))
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))
