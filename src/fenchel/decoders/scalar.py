"""The number at which a weighted loss is least: a global search."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from fenchel._check import Interval, Options
from fenchel.decoders.base import Decoder

__all__ = ["ScalarMinimum"]

_BLOCK = 2**22  # losses in memory at a time
_STEPS = 12  # Newton steps; each that helps about squares the error


class ScalarMinimum(Decoder):
    r"""The number of an interval at which :math:`\sum_i w_i \Delta(y, z_i)` is least, for weights of any sign.

    Weighted robust losses have many local minima. A loss of lines is least at one of its knots or at an end: all are
    tried. A smooth one is computed on a grid, by one matrix product; Newton's steps start from every local minimum of
    the grid near which, by the bounds of the second derivative, the least value can be; the best end is kept. Rows are
    decoded column by column.

    Parameters
    ----------
    low, high : float or None, default=None
        The interval; ``None`` is the least and the greatest training output.
    n_grid : int, default=512
        Points of the grid.
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

    def fit(self, Y: Any, representation: Any) -> Self:
        """Look at the task loss and the interval."""
        self._loss = self._task_loss(representation, "knots", "slope", what="numbers")
        outputs = np.asarray(Y)
        self.low_ = float(np.min(outputs)) if self.low is None else float(self.low)
        self.high_ = float(np.max(outputs)) if self.high is None else float(self.high)
        if not self.low_ <= self.high_:
            raise ValueError(f"ScalarMinimum needs low <= high. Got {self.low_:g} and {self.high_:g}.")
        return super().fit(Y, representation)

    def decode(self, coordinates: np.ndarray) -> np.ndarray:
        """Return one number, or one row of numbers, for each row of weights."""
        outputs = np.asarray(self.representation_.outputs_)
        search = self._among_knots if hasattr(self._loss, "knots") else self._on_grid
        if outputs.ndim == 1:
            return search(coordinates, outputs)
        return np.stack([search(coordinates, column) for column in outputs.T], axis=1)

    def _among_knots(self, weights: np.ndarray, z: np.ndarray) -> np.ndarray:
        knots = np.clip(self._loss.knots(z), self.low_, self.high_)
        points = np.unique(np.concatenate([knots, [self.low_, self.high_]]))
        return np.asarray(points[np.argmin(self._values(weights, points, z), axis=1)])

    def _values(self, weights: np.ndarray, points: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the weighted losses at all points, (m, G)."""
        step = max(1, _BLOCK // len(z))
        parts = [points[i : i + step] for i in range(0, len(points), step)]
        return np.hstack([weights @ self._loss.value(part[:, None], z).T for part in parts])

    def _on_grid(self, weights: np.ndarray, z: np.ndarray) -> np.ndarray:
        points = np.linspace(self.low_, self.high_, self.n_grid)
        values = self._values(weights, points, z)
        low, high = self._loss.bend_bounds(z)
        bend = np.maximum(weights, 0.0) @ high + np.maximum(-weights, 0.0) @ -low  # no second derivative is greater
        width = (self.high_ - self.low_) / (self.n_grid - 1)
        slack = np.maximum(bend, 0.0) * width**2 / 8  # how far the loss can fall below two neighbours between them
        padded = np.pad(values, ((0, 0), (1, 1)), constant_values=np.inf)
        is_low = (values < padded[:, :-2]) & (values <= padded[:, 2:])
        rows, nodes = np.nonzero(is_low & (values - slack[:, None] <= np.min(values, axis=1, keepdims=True)))
        y, least = points[nodes], values[rows, nodes]
        for part in _blocks(len(rows), len(z)):
            y[part], least[part] = self._newton(weights[rows[part]], y[part], least[part], z, width)
        order = np.lexsort((-least, rows))  # within a row the least comes last, and stays
        found = np.empty(len(weights))
        found[rows[order]] = y[order]
        return found

    def _newton(
        self, weights: np.ndarray, y: np.ndarray, least: np.ndarray, z: np.ndarray, width: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return points and losses after Newton steps of at most a cell, each taken where it lowers the loss."""
        y, least, todo = y.copy(), least.copy(), np.arange(len(y))
        for _ in range(_STEPS):
            w, at = weights[todo], y[todo, None]
            slope = np.einsum("mn,mn->m", w, self._loss.slope(at, z))
            bend = np.abs(np.einsum("mn,mn->m", w, self._loss.bend(at, z)))
            step = np.clip(slope / np.where(bend > 0, bend, np.inf), -width, width)
            trial = np.clip(y[todo] - step, self.low_, self.high_)
            value = np.einsum("mn,mn->m", w, self._loss.value(trial[:, None], z))
            lower = value < least[todo]
            todo = todo[lower]
            y[todo], least[todo] = trial[lower], value[lower]
            if len(todo) == 0:
                break
        return y, least


def _blocks(count: int, width: int) -> Iterator[slice]:
    """Yield parts of ``count`` rows, each with a bounded number of entries."""
    step = max(1, _BLOCK // max(width, 1))
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))
