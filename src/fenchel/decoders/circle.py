"""Decoder of angles: global minimisation of a weighted loss on the circle."""

import math
from typing import ClassVar, Protocol, Self

import numpy as np

from fenchel._array import Outputs
from fenchel._check import Interval, Options
from fenchel.decoders._ties import first_least, first_of_each_row, round_off
from fenchel.decoders.decoder import Decoder, Space
from fenchel.decoders.scalar import row_blocks

__all__ = ["CircleMinimum"]

_PARTS = 8  # parts into which an arc that may contain the minimum is cut
_ROUNDS = 3  # rounds of cutting, after which the best point found is within 1e-9 of the minimum
_STEPS = 12  # Newton steps; each that helps roughly squares the error


class CircleMinimum(Decoder):
    r"""Angle that minimises :math:`\sum_i w_i \Delta(y, z_i)` over the whole circle, for weights of any sign.

    The circle is cut into arcs by a grid and wherever a loss has a kink. The loss bounds how far it may lie below its
    chord on an arc: arcs that cannot contain the minimum are discarded, the others are cut further, and Newton steps
    refine the best point. Among points that differ only by round-off, the first one found, from -pi onwards, is taken.
    Predictions are in [-pi, pi).

    Parameters
    ----------
    n_grid : int, default=256
        Number of points of the initial grid.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LossTrickPredictor
    >>> from fenchel.decoders import CircleMinimum
    >>> from fenchel.task_losses import CircleGeodesic
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = X[:, 0]
    >>> model = LossTrickPredictor(task_loss=CircleGeodesic(), decoder=CircleMinimum()).fit(X, Y)
    >>> bool(np.abs(model.predict(X) - Y).max() < 0.2)
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"n_grid": Interval(2, math.inf, "left", integer=True)}

    def __init__(self, n_grid: int = 256) -> None:
        self.n_grid = n_grid

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Check that the task loss is a loss of angles."""
        self._loss = self._task_loss(representation, "sag", what="angles")
        return super().fit(Y, representation)

    def decode(self, coordinates: np.ndarray) -> np.ndarray:
        """Return one angle for each row of weights."""
        z = np.asarray(self.representation_.outputs_)
        cuts = np.unique(np.concatenate([np.linspace(-np.pi, np.pi, self.n_grid + 1)[:-1], self._loss.cuts(z)]))
        left, width = cuts, np.diff(np.append(cuts, cuts[0] + 2 * np.pi))
        values, bounds = np.empty((2, len(coordinates), len(cuts)))
        sizes = np.zeros(len(z))
        for part in row_blocks(len(cuts), len(z)):
            losses = self._loss.value(cuts[part, None], z)
            values[:, part], sizes = coordinates @ losses.T, np.maximum(sizes, np.max(np.abs(losses), axis=0))
            bounds[:, part] = -_sags(self._loss, coordinates, left[part], width[part], z)
        bounds += np.minimum(values, np.roll(values, -1, axis=1))
        slack = round_off(np.abs(coordinates) @ sizes)
        best = first_least(values, slack)
        y, least = cuts[best], values[np.arange(len(best)), best]
        rows, places = np.nonzero(bounds < least[:, None])
        arcs: tuple[np.ndarray, ...] = rows, left[places], width[places], bounds[rows, places]
        for _ in range(_ROUNDS):
            arcs = self._cut(coordinates, arcs, y, least, slack, z)
        return wrap(self._newton(coordinates, y, least, z))

    def _cut(
        self,
        weights: np.ndarray,
        arcs: tuple[np.ndarray, ...],
        y: np.ndarray,
        least: np.ndarray,
        slack: np.ndarray,
        z: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        """Return the parts of arcs that may contain the minimum; write the best points found to y and least."""
        pieces = []
        for part in row_blocks(len(arcs[0]), len(z) * (_PARTS + 1)):
            rows, left, width, _ = (column[part] for column in arcs)
            points = left[:, None] + width[:, None] * np.arange(_PARTS + 1) / _PARTS
            values = _weighted(weights[rows], self._loss.value(points[:, :, None], z))
            place = first_least(values, slack[rows])
            inner, lowest = points[np.arange(len(rows)), place], values[np.arange(len(rows)), place]
            lower = np.flatnonzero(lowest < least[rows] - slack[rows])
            lower = lower[first_of_each_row(rows[lower], lowest[lower], slack[rows[lower]])]
            y[rows[lower]], least[rows[lower]] = inner[lower], lowest[lower]
            sags = _sags(self._loss, weights[rows], points[:, :-1], width[:, None] / _PARTS, z)
            bounds = np.minimum(values[:, 1:], values[:, :-1]) - sags
            arc, piece = np.nonzero(bounds < least[rows, None])
            pieces.append((rows[arc], points[arc, piece], width[arc] / _PARTS, bounds[arc, piece]))
        joined = [np.concatenate(column) for column in zip(*pieces, strict=True)] if pieces else list(arcs)
        alive = joined[3] < least[joined[0]]
        return tuple(column[alive] for column in joined)

    def _newton(self, weights: np.ndarray, y: np.ndarray, least: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the points after Newton steps, each taken only if it reduces the loss."""
        reach = 2 * np.pi / self.n_grid
        for part in row_blocks(len(y), len(z)):
            todo = np.arange(len(y))[part]
            for _ in range(_STEPS):
                slope, bend = (
                    _weighted(weights[todo], derivative(y[todo, None, None], z))[:, 0]
                    for derivative in (self._loss.slope, self._loss.bend)
                )
                curved = np.isfinite(bend) & (bend > 0)
                move = np.clip(slope / np.where(curved, bend, np.inf), -reach, reach)
                trial = y[todo] - move
                value = _weighted(weights[todo], self._loss.value(trial[:, None, None], z))[:, 0]
                lower = value < least[todo]
                todo = todo[lower]
                y[todo], least[todo] = trial[lower], value[lower]
                if len(todo) == 0:
                    break
        return y


class _Sagging(Protocol):
    """A loss on the circle that bounds how far it lies from its chords."""

    def sag(self, left: np.ndarray, width: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much the loss, and minus the loss, may lie below a chord."""


def _sags(loss: _Sagging, weights: np.ndarray, left: np.ndarray, width: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return how far weighted losses may lie below their chords, on all arcs (E,) or on each row's own arcs (m, k)."""
    below, above = loss.sag(left[..., None], width[..., None], z)
    plus, minus = np.maximum(weights, 0.0), np.maximum(-weights, 0.0)
    if left.ndim == 1:
        return np.asarray(plus @ below.T + minus @ above.T)
    return _weighted(plus, below) + _weighted(minus, above)


def _weighted(weights: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """Return the sums over the samples of losses (m, k, n) at each row's own points, (m, k)."""
    return np.asarray((losses @ weights[:, :, None])[:, :, 0])


def wrap(angles: np.ndarray) -> np.ndarray:
    """Wrap angles to [-pi, pi); angles already in this interval are unchanged to the last digit."""
    turned = (angles + np.pi) % (2 * np.pi) - np.pi
    return np.where((angles >= -np.pi) & (angles < np.pi), angles, np.where(turned < np.pi, turned, -np.pi))
