"""The histogram at which a weighted loss is least."""

import math
from typing import Any, ClassVar, Self

import numpy as np

from fenchel._check import Interval, Options
from fenchel.decoders.base import Decoder

__all__ = ["Simplex"]

_HALVINGS = 40


class Simplex(Decoder):
    r"""The histogram at which :math:`\sum_i w_i \Delta(y, z_i)` is least.

    The squared Hellinger distance has a closed form for weights of any sign. For the :math:`\chi^2` distance projected
    gradient steps are taken from the closed form of the former and from the best training outputs, and the best end is
    kept: the global minimum where no weight is negative, since the problem is convex then.

    Parameters
    ----------
    n_starts : int, default=3
        Training outputs, the best ones, from which steps start.
    max_iter : int, default=500
        Most steps of each start.
    tol : float, default=1e-10
        Relative gain at which steps end.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "n_starts": Interval(1, math.inf, "left", integer=True),
        "max_iter": Interval(1, math.inf, "left", integer=True),
        "tol": Interval(0, math.inf),
    }

    def __init__(self, n_starts: int = 3, max_iter: int = 500, tol: float = 1e-10) -> None:
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, Y: Any, representation: Any) -> Self:
        """Look whether the task loss is one of histograms."""
        self._loss = self._task_loss(representation, "minimise", "value_slope", what="histograms")
        self._starts = np.asarray(Y)
        return super().fit(Y, representation)

    def decode(self, coordinates: np.ndarray) -> np.ndarray:
        """Return one histogram for each row of weights."""
        outputs = np.asarray(self.representation_.outputs_)
        if hasattr(self._loss, "minimise"):
            return np.asarray(self._loss.minimise(coordinates, outputs))
        scores = self.representation_.distances(coordinates, self._starts)
        order = np.argsort(scores, axis=1, kind="stable")[:, : self.n_starts]
        smoothed = self._loss.first_guess(coordinates, outputs)
        best, least = self._descend(coordinates, smoothed, outputs)
        for column in order.T:
            found, value = self._descend(coordinates, self._starts[column], outputs)
            better = value < least
            best[better], least[better] = found[better], value[better]
        return best

    def _descend(self, weights: np.ndarray, y: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of projected gradient steps from one start for each row, and the losses there."""
        y, active = y.copy(), np.arange(len(y))
        value, slope = self._loss.value_slope(weights, y, Z)
        step = 0.1 / np.maximum(np.max(np.abs(slope), axis=1), 1e-300)
        for _ in range(self.max_iter):
            gain, todo = np.zeros(len(active)), np.arange(len(active))
            for _ in range(_HALVINGS):
                rows = active[todo]
                trial = project_on_simplex(y[rows] - step[rows, None] * slope[rows])
                new, bend = self._loss.value_slope(weights[rows], trial, Z)
                move = np.sum((trial - y[rows]) ** 2, axis=1)
                falls = new <= value[rows] - move / (4 * step[rows])
                done = rows[falls]
                gain[todo[falls]] = value[done] - new[falls]
                y[done], value[done], slope[done] = trial[falls], new[falls], bend[falls]
                step[done] *= 2
                step[rows[~falls]] /= 4
                todo = todo[~falls]
                if len(todo) == 0:
                    break
            active = active[gain > self.tol * np.maximum(np.abs(value[active]), 1e-300)]
            if len(active) == 0:
                break
        return y, value


def project_on_simplex(points: np.ndarray) -> np.ndarray:
    """Return the nearest histogram of each row."""
    ordered = -np.sort(-points, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, points.shape[1] + 1)
    last = np.sum(ordered > excess, axis=1) - 1
    return np.maximum(points - np.take_along_axis(excess, last[:, None], axis=1), 0.0)
