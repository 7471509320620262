"""Decoder of histograms by minimisation of a weighted loss on the simplex."""

import math
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Outputs
from fenchel._check import Interval, Options
from fenchel.decoders._ties import least_first, round_off
from fenchel.decoders.decoder import Decoder, Space

__all__ = ["Simplex"]

_HALVINGS = 40  # of a Newton step before the point counts as a minimum: the last is 2^-40 = 1e-12 of the first
_ARMIJO = 1e-4  # sufficient decrease of a step, relative to the slope


class Simplex(Decoder):
    r"""Histogram that minimises :math:`\sum_i w_i \Delta(y, z_i)`.

    The squared Hellinger distance has a closed form for weights of any sign. For the :math:`\chi^2` distance, a sum of
    functions of one entry each, projected Newton steps start from the closed form for the Hellinger distance, from the
    best histogram with a single entry and from the best training outputs. The best result is kept, or the first of
    those that differ only by round-off. It is the global minimum if no weight is negative, since the problem is then
    convex, and if none is positive. Otherwise it is the best of these local minima.

    Parameters
    ----------
    n_starts : int, default=3
        Number of training outputs, the best ones, from which steps start.
    max_iter : int, default=500
        Maximum number of steps from each start.
    tol : float, default=1e-10
        Gain at which steps end, relative to the sum of the absolute weights.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LossTrickPredictor
    >>> from fenchel.decoders import Simplex
    >>> from fenchel.task_losses import Hellinger
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = np.hstack([X, 3 - X]) / 3
    >>> model = LossTrickPredictor(task_loss=Hellinger(), decoder=Simplex()).fit(X, Y)
    >>> bool(np.abs(model.predict(X) - Y).max() < 0.2)
    True
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

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Check that the task loss is a loss of histograms."""
        self._loss = self._task_loss(representation, "minimise", "derivatives", what="histograms")
        self._starts = np.asarray(Y)
        return super().fit(Y, representation)

    def decode(self, coordinates: np.ndarray) -> np.ndarray:
        """Return one histogram for each row of weights."""
        outputs = np.asarray(self.representation_.outputs_)
        if hasattr(self._loss, "minimise"):
            return np.asarray(self._loss.minimise(coordinates, outputs))
        scores = self.representation_.distances(coordinates, self._starts)
        slack = round_off(self.representation_.magnitudes(coordinates, self._starts))
        order = least_first(scores, self.n_starts, slack)
        first, *more = self._loss.first_guesses(coordinates, outputs)
        best, least = self._descend(coordinates, first, outputs)
        for start in [*more, *(self._starts[column] for column in order.T)]:
            points, value = self._descend(coordinates, start, outputs)
            better = value < least - slack
            best[better], least[better] = points[better], value[better]
        return best

    def _descend(self, weights: np.ndarray, y: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the results of Newton steps from one start for each row, and their losses."""
        y, active, enough = y.copy(), np.arange(len(y)), self.tol * np.sum(np.abs(weights), axis=1)
        value, slope, bend = self._loss.derivatives(weights, y, Z)
        for _ in range(self.max_iter):
            move = newton_on_simplex(y[active], slope[active], bend[active]) - y[active]
            fall = -np.sum(slope[active] * move, axis=1)
            going = fall > enough[active]
            active, move, fall = active[going], move[going], fall[going]
            todo, share = np.arange(len(active)), 1.0
            for _ in range(_HALVINGS):
                if len(todo) == 0:
                    break
                rows = active[todo]
                trial = y[rows] + share * move[todo]
                new, *more = self._loss.derivatives(weights[rows], trial, Z)
                falls = new <= value[rows] - _ARMIJO * share * fall[todo]
                done = rows[falls]
                y[done], value[done], slope[done], bend[done] = (part[falls] for part in (trial, new, *more))
                todo, share = todo[~falls], share / 2
            active = np.delete(active, todo)  # rows where no step reduces the loss have reached round-off
            if len(active) == 0:
                break
        return y, value


def newton_on_simplex(y: np.ndarray, slope: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """Return the histogram v of each row that minimises the sum of slope (v - y) + bend (v - y)^2 / 2."""
    bend = np.maximum(bend, 1e-12 * np.max(bend, axis=1, keepdims=True) + 1e-300)
    level = bend * y - slope  # entries above the multiplier of the constraint are positive
    order = np.argsort(-level, axis=1)
    level, sizes = np.take_along_axis(level, order, axis=1), 1 / np.take_along_axis(bend, order, axis=1)
    multiplier = (np.cumsum(level * sizes, axis=1) - 1) / np.cumsum(sizes, axis=1)
    last = np.sum(level > multiplier, axis=1) - 1
    projected = np.empty_like(y)
    own = np.maximum(level - np.take_along_axis(multiplier, last[:, None], axis=1), 0.0) * sizes
    np.put_along_axis(projected, order, own, axis=1)
    return np.asarray(projected / np.sum(projected, axis=1, keepdims=True))
