"""Losses of rows on the workers of a Dask cluster."""

from operator import methodcaller

import numpy as np

from fenchel._array import Array
from fenchel.chunks.rows import Rows
from fenchel.losses import Loss
from fenchel.losses.profile import Profile, Step

__all__ = ["Rowwise"]


class Rowwise(Loss):
    """A loss of rows in chunks: each worker evaluates it on its own, bound to their targets.

    Parameters
    ----------
    loss : Loss
        The loss.
    targets : Rows of shape (n, p)
        Targets, without the square roots of the sample weights.
    """

    def __init__(self, loss: Loss, targets: Rows | None) -> None:
        self.loss = loss
        self.targets = targets

    def __reduce__(self) -> "tuple[type[Rowwise], tuple[Loss, None]]":
        return Rowwise, (self.loss, None)  # in the key of a checkpoint, which has the targets of the problem

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """The weight of the squared norm in the conjugate."""
        return self.loss.curvature

    @property
    def profile(self) -> Profile | None:
        """The profile of the loss."""
        return self.loss.profile

    @property
    def sparse(self) -> bool:
        """Whether small residuals have a zero dual variable."""
        return self.loss.sparse

    def value(self, residuals: Rows) -> Rows:
        """Return the loss of each row, shape (n,)."""
        return self._each("value", residuals)

    def conjugate(self, duals: Rows) -> Rows:
        """Return the conjugate at each row, shape (n,)."""
        return self._each("conjugate", duals)

    def prox_conjugate(self, duals: Rows, step: Step) -> Rows:
        """Return the prox of ``step`` times the conjugate."""
        return self._each("prox_conjugate", duals, step)

    def prox_remainder(self, duals: Rows, step: Step) -> Rows:
        """Return the prox of ``step`` times the conjugate without its quadratic part."""
        return self._each("prox_remainder", duals, step)

    def saturation(self, duals: Rows) -> Rows | None:
        """Return each dual norm, or value, divided by its bound; ``None`` if there is none."""
        row = np.zeros((1, duals.shape[1]))
        ratios = self.loss.bind(row).saturation(row)
        return None if ratios is None else self._each("saturation", duals)

    def _each(self, method: str, rows: Rows, *step: Step) -> Rows:
        return rows.of(_of_chunk, rows, self.targets, self.loss, method, *step)


def _of_chunk(rows: np.ndarray, targets: np.ndarray, loss: Loss, method: str, *step: Step) -> Array:
    return methodcaller(method, rows, *step)(loss.bind(targets))
