"""Representation of vector outputs."""

from fenchel._array import Array, as_like
from fenchel.representations.base import Representation

__all__ = ["Euclidean"]


class Euclidean(Representation):
    """Vector outputs with the Euclidean inner product; the coordinates are the entries.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.representations import Euclidean
    >>> Euclidean().fit(np.array([[1.0, 2.0]])).targets_
    array([[1., 2.]])
    """

    has_points = True

    def encode(self, Y: Array) -> Array:
        """Return Y, as a column if it is one-dimensional."""
        return Y[:, None] if Y.ndim == 1 else Y

    def decode(self, coordinates: Array) -> Array:
        """Return the coordinates."""
        return coordinates

    def congruence(self, matrix: Array) -> Array:
        """Return the matrix after checking its size."""
        p = self.targets_.shape[1]
        if matrix.shape[0] != p:
            shape = tuple(matrix.shape)
            raise ValueError(f"The operator must act on the {p} output columns of Y. Got one of shape {shape} instead.")
        return as_like(matrix, self.targets_)
