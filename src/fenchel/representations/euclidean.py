"""Representation of vector outputs."""

from fenchel._array import Array
from fenchel.kernels.scalar_kernel import OutputOperator
from fenchel.representations.coordinates import Coordinates
from fenchel.representations.representation import Representation

__all__ = ["Euclidean"]


class Euclidean(Representation):
    """Vector outputs with the Euclidean inner product; the coordinates are the entries.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.representations import Euclidean
    >>> Euclidean().learn(np.array([[1.0, 2.0]])).rows
    array([[1., 2.]])
    """

    has_points = True

    def learn(self, Y: Array, weights: Array | None = None, operator: OutputOperator | None = None) -> Coordinates:
        """Learn the number of outputs."""
        coordinates = self.encode(Y)
        self.n_outputs_ = coordinates.width
        return coordinates

    def encode(self, Y: Array) -> Coordinates:
        """Return Y, as a column if it is one-dimensional, with NaN masked."""
        return Coordinates.of(Y[:, None] if Y.ndim == 1 else Y)

    def decode(self, rows: Array) -> Array:
        """Return the coordinates."""
        return rows

    def congruence(self, matrix: Array) -> Array:
        """Return the matrix after checking its size."""
        return self._on_columns(matrix, self.n_outputs_)
