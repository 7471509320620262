"""The number at which a weighted loss is least: a global search."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from fenchel._check import Interval, Options
from fenchel.decoders.base import Decoder

__all__ = ["ScalarMinimum"]

_PARTS = 16  # parts into which a cell of the grid that may hold the minimum is cut
_LEVELS = 4  # times that cells are cut
_KEPT = 256  # cells of a row that are cut at a time
_SLACK = 1e-10  # a gain that is not looked for, as a share of the range of the loss
_BLOCK = 2**22  # losses in memory at a time
_STEPS = 24  # Newton steps; each that helps about squares the error


class ScalarMinimum(Decoder):
    r"""The number of an interval at which :math:`\sum_i w_i \Delta(y, z_i)` is least, for weights of any sign.

    Weighted robust losses have many local minima. A loss of lines is least at one of its knots or at an end: all are
    tried. A smooth one is computed on a grid; cells that by the bounds of its second derivative cannot hold the minimum
    are left out, the others are cut finer and finer, and Newton's steps finish at the best point. Rows are decoded
    column by column.

    Parameters
    ----------
    low, high : float or None, default=None
        The interval; ``None`` is the least and the greatest training output, in each column.
    n_grid : int, default=256
        Points of the first grid.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "low": Interval(-float("inf"), float("inf"), also=(None,)),
        "high": Interval(-float("inf"), float("inf"), also=(None,)),
        "n_grid": Interval(2, float("inf"), "left", integer=True),
    }

    def __init__(self, low: float | None = None, high: float | None = None, n_grid: int = 256) -> None:
        self.low = low
        self.high = high
        self.n_grid = n_grid

    def fit(self, Y: Any, representation: Any) -> Self:
        """Look at the task loss and the interval."""
        self._loss = self._task_loss(representation, "knots", "slope", what="numbers")
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
        found = [search(coordinates, z, low, high) for z, (low, high) in zip(rows.T, self._intervals, strict=True)]
        return found[0] if outputs.ndim == 1 else np.stack(found, axis=1)

    def _among_knots(self, weights: np.ndarray, z: np.ndarray, low: float, high: float) -> np.ndarray:
        points = np.unique(np.concatenate([np.clip(self._loss.knots(z), low, high), [low, high]]))
        return np.asarray(points[np.argmin(self._values(weights, points, z), axis=1)])

    def _values(self, weights: np.ndarray, points: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the weighted losses at all points, (m, G)."""
        step = max(1, _BLOCK // len(z))
        parts = [points[i : i + step] for i in range(0, len(points), step)]
        return np.hstack([weights @ self._loss.value(part[:, None], z).T for part in parts])

    def _on_grid(self, weights: np.ndarray, z: np.ndarray, low: float, high: float) -> np.ndarray:
        points = np.linspace(low, high, self.n_grid)
        values, width = self._values(weights, points, z), (high - low) / (self.n_grid - 1)
        y, least = _row_least(np.broadcast_to(points, values.shape), values)
        slack = _SLACK * (np.max(values, axis=1) - least)
        below, above = self._loss.bend_bounds(z)
        bend = np.maximum(np.maximum(weights, 0.0) @ above - np.maximum(-weights, 0.0) @ below, 0.0)
        rows = np.repeat(np.arange(len(weights)), self.n_grid - 1)
        left, ends = np.tile(points[:-1], len(weights)), (values[:, :-1].ravel(), values[:, 1:].ravel())
        for _ in range(_LEVELS):
            bound = _cell_bound(*ends, bend[rows] * width**2)
            chosen = _most_hopeful(rows, bound, bound < (least - slack)[rows])
            if len(chosen) == 0:
                break
            rows, width = rows[chosen], width / _PARTS
            finer = left[chosen, None] + width * np.arange(_PARTS + 1)
            inner = self._inner(weights, rows, finer[:, 1:-1], z)
            cells = np.column_stack([ends[0][chosen], inner, ends[1][chosen]])
            _lower(y, least, rows, *_row_least(finer, cells))
            rows = np.repeat(rows, _PARTS)
            left, ends = finer[:, :-1].ravel(), (cells[:, :-1].ravel(), cells[:, 1:].ravel())
        return np.clip(self._newton(weights, y, least, z, bend, (low, high)), low, high)

    def _inner(self, weights: np.ndarray, rows: np.ndarray, points: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the losses at some points of cells; ``rows`` are the weights of each cell."""
        found = np.empty(points.shape)
        for part in _blocks(len(rows), len(z) * points.shape[1]):
            found[part] = self._at(weights[rows[part]], points[part], z)
        return found

    def _at(self, weights: np.ndarray, points: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the weighted losses at points of each row's own, (m, k)."""
        return np.einsum("mkn,mn->mk", self._loss.value(points[:, :, None], z), weights)

    def _newton(
        self,
        weights: np.ndarray,
        y: np.ndarray,
        least: np.ndarray,
        z: np.ndarray,
        most: np.ndarray,
        interval: tuple[float, float],
    ) -> np.ndarray:
        """Return the points after Newton steps, each taken where it lowers the loss.

        Where the loss bends down, or Newton's step goes too far, the step is that of the greatest second derivative,
        which never raises the loss.
        """
        for part in _blocks(len(y), len(z)):
            todo = np.arange(len(y))[part]
            for _ in range(_STEPS):
                w, at, moved = weights[todo], y[todo, None], np.zeros(len(todo), dtype=bool)
                slope = np.sum(w * self._loss.slope(at, z), axis=1)
                bend = np.sum(w * self._loss.bend(at, z), axis=1)
                for divisor in (np.where(bend > 0, bend, most[todo]), most[todo]):
                    step = slope / np.where(divisor > 0, divisor, np.inf)
                    trial = np.clip(at[:, 0] - step, *interval)
                    value = self._at(w, trial[:, None], z)[:, 0]
                    lower = ~moved & (value < least[todo])
                    y[todo[lower]], least[todo[lower]] = trial[lower], value[lower]
                    moved |= lower
                    if np.all(moved):
                        break
                todo = todo[moved]
                if len(todo) == 0:
                    break
        return y


def _cell_bound(left: np.ndarray, right: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Return what a function between two points is not below, from its values there.

    ``curvature`` is the greatest second derivative times the squared width: the function is not below the parabola of
    that second derivative through both points.
    """
    room = np.maximum(curvature / 2 - np.abs(left - right), 0.0)
    return np.asarray(np.minimum(left, right) - room**2 / np.where(curvature > 0, 2 * curvature, 1.0))


def _most_hopeful(rows: np.ndarray, bound: np.ndarray, hopeful: np.ndarray) -> np.ndarray:
    """Return the places of hopeful cells, in each row those of the least bounds: a flat loss has too many."""
    places = np.flatnonzero(hopeful)
    places = places[np.lexsort((bound[places], rows[places]))]
    first = np.searchsorted(rows[places], rows[places])
    return places[np.arange(len(places)) - first < _KEPT]


def _lower(y: np.ndarray, least: np.ndarray, rows: np.ndarray, points: np.ndarray, values: np.ndarray) -> None:
    """Take over points at which the losses of their rows are lower."""
    order = np.argsort(-values, kind="stable")  # of several points of a row the least comes last
    order = order[values[order] < least[rows[order]]]
    y[rows[order]], least[rows[order]] = points[order], values[order]


def _row_least(points: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the point of each row with the least value, and the value."""
    place = np.argmin(values, axis=1)[:, None]
    return np.take_along_axis(points, place, axis=1)[:, 0], np.take_along_axis(values, place, axis=1)[:, 0]


def _blocks(count: int, width: int) -> Iterator[slice]:
    """Yield parts of ``count`` rows, each with a bounded number of entries."""
    step = max(1, _BLOCK // max(width, 1))
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))
