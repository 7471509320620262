"""Decoder of vectors under a Gaussian output kernel."""

import math
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, Outputs, as_like, host
from fenchel._check import Interval, Options
from fenchel.decoders._ties import least_first, round_off
from fenchel.decoders.decoder import Decoder, Space
from fenchel.decoders.products import needs_distances
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Standardized

__all__ = ["Preimage"]

_HALVINGS = 30  # of a step before the point counts as a maximum: the last is 2^-30 = 1e-9 of the first


class Preimage(Decoder):
    r"""Vector whose image under a Gaussian kernel is nearest to the prediction, by a fixed-point iteration.

    .. math:: \hat y = \arg\max_y \sum_i w_i k(y, y_i), \qquad
        y \leftarrow \frac{\sum_i w_i k(y, y_i) y_i}{\sum_i w_i k(y, y_i)} .

    Parameters
    ----------
    n_starts : int, default=3
        Number of training outputs, the nearest ones, from which the iteration starts; the best result is taken, or the
        first of those that differ only by round-off.
    max_iter : int, default=200
        Maximum number of iterations from each start.
    tol : float, default=1e-9
        Relative change of the objective at which the iteration stops.

    Notes
    -----
    A fixed-point step that does not increase the objective (weights may be negative) is replaced by gradient steps that
    do. The result is never worse than the best training output.

    References
    ----------
    [Mika1998]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import StructuredPredictor
    >>> from fenchel.decoders import Preimage
    >>> from fenchel.kernels import Gaussian
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> model = StructuredPredictor(output_kernel=Gaussian(1.0), decoder=Preimage(), lam=1e-5).fit(X, np.sin(X))
    >>> bool(np.abs(model.predict(X) - np.sin(X)).max() < 0.05)
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "n_starts": Interval(1, math.inf, "left", integer=True),
        "max_iter": Interval(1, math.inf, "left", integer=True),
        "tol": Interval(0, math.inf),
    }

    def __init__(self, n_starts: int = 3, max_iter: int = 200, tol: float = 1e-9) -> None:
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Check that the output kernel is Gaussian, possibly on standardised outputs."""
        needs_distances(self, representation)
        kernel = getattr(representation, "kernel_", None)
        self._mean, self._scale = np.zeros(1), np.ones(1)
        if isinstance(kernel, Standardized):
            self._mean, self._scale, kernel = np.asarray(kernel.mean), np.asarray(kernel.scale), kernel.kernel
        if not isinstance(kernel, Gaussian):
            raise IncompatibleError(
                "Preimage is for output_kernel=Gaussian(...), or the task loss KernelInduced(Gaussian(...)). "
                "Use Candidates() or TrainingSet()."
            )
        if not getattr(representation, "has_weights", True):
            raise IncompatibleError(
                "Preimage needs weights of the training outputs, which their approximate features do not define. Use "
                "Candidates() or TrainingSet(), or no approximation of the outputs."
            )
        self._gamma = float(kernel.gamma)  # type: ignore[arg-type]  # resolved to a number
        self._starts = self._standardized(Y)
        return super().fit(Y, representation)

    def decode(self, coordinates: Array) -> Array:
        """Return one vector for each prediction."""
        weights = host(self.representation_.weights(coordinates)).astype(np.float64)
        is_flat = self.representation_.outputs_.ndim == 1
        outputs, starts = self._standardized(self.representation_.outputs_), self._starts
        values = weights @ np.exp(-self._gamma * _squares(outputs, starts))
        slack = round_off(np.sum(np.abs(weights), axis=1))
        order = least_first(-values, self.n_starts, slack)
        best = starts[order[:, 0]].copy()
        top = np.take_along_axis(values, order[:, :1], axis=1)[:, 0]
        for column in order.T:
            points, value = self._climb(weights, outputs, starts[column])
            better = value > top + slack
            best[better], top[better] = points[better], value[better]
        best = self._mean + np.where(np.isinf(self._scale), 0.0, self._scale) * best
        return as_like(best[:, 0] if is_flat else best, coordinates)

    def _standardized(self, outputs: Outputs) -> np.ndarray:
        """Return outputs as float64 rows in the units of the kernel; plain numbers become rows of length one."""
        rows = host(outputs).astype(np.float64)
        return ((rows[:, None] if rows.ndim == 1 else rows) - self._mean) / self._scale

    def _climb(self, weights: np.ndarray, outputs: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Iterate all samples side by side, from one start each, dropping those that no longer improve."""
        y, active = y.copy(), np.arange(len(y))
        terms = weights * np.exp(-self._gamma * _squares(y, outputs))
        value = terms.sum(axis=1)
        for _ in range(self.max_iter):
            total = terms[active].sum(axis=1, keepdims=True)
            step = terms[active] @ outputs - total * y[active]  # the gradient divided by 2 gamma
            step /= np.where(total == 0, 1.0, np.abs(total))
            gain, todo = np.zeros(len(active)), np.arange(len(active))
            for _ in range(_HALVINGS):
                rows = active[todo]
                trial = y[rows] + step[todo]
                new = weights[rows] * np.exp(-self._gamma * _squares(trial, outputs))
                rises = new.sum(axis=1) > value[rows]
                up = rows[rises]
                gain[todo[rises]] = new[rises].sum(axis=1) - value[up]
                y[up], terms[up], value[up] = trial[rises], new[rises], new[rises].sum(axis=1)
                todo, step = todo[~rises], step / 2
                if len(todo) == 0:
                    break
            active = active[gain > self.tol * np.maximum(np.abs(value[active]), 1e-300)]
            if len(active) == 0:
                break
        return y, value


def _squares(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the squared distances between rows."""
    return np.maximum(np.sum(A**2, axis=1)[:, None] + np.sum(B**2, axis=1) - 2 * A @ B.T, 0.0)
