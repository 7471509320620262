"""Outputs in coordinates, and the space that they live in."""

from dataclasses import dataclass
from typing import Protocol, Self

from fenchel._array import Array, as_like, namespace
from fenchel._check import check_memory
from fenchel.kernels.scalar_kernel import OutputOperator

__all__ = ["CoordinateSpace", "Coordinates"]


@dataclass(frozen=True)
class Coordinates:
    """Outputs as rows of orthonormal coordinates. What was not observed is zero and masked.

    Attributes
    ----------
    rows : array of shape (n, p)
        The coordinates.
    observed : array of shape (n, p) or None
        1 where an output was observed, else 0; ``None`` if nothing is missing.
    row_scale : array of shape (n, 1) or None
        Factor of each row, which makes an integral over few points a mean over those points.
    point_scale : array of shape (p,) or (n, p), or None
        Factors of values of points, with that of the row; ``None`` unless coordinates are values at weighted points.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.representations import Coordinates
    >>> Coordinates.of(np.array([[1.0, np.nan]])).observed
    array([[1., 0.]])
    """

    rows: Array
    observed: Array | None = None
    row_scale: Array | None = None
    point_scale: Array | None = None

    @classmethod
    def of(cls, values: Array, roots: Array | None = None) -> Self:
        """Return values with NaN masked, times the roots (p,) of quadrature weights.

        With roots, each row is scaled such that its weights have the sum of all weights: integrals are means over what
        was observed. Without, the coordinates are the values.
        """
        xp = namespace(values)
        if not bool(xp.any(xp.isnan(values))):
            return cls(values if roots is None else values * roots, point_scale=roots)
        observed = xp.astype(~xp.isnan(values), values.dtype)
        known = xp.where(observed > 0, values, xp.zeros_like(values))
        if roots is None:
            return cls(known, observed)
        squares = roots**2
        row_scale = xp.sqrt(xp.sum(squares) / xp.sum(observed * squares, axis=1, keepdims=True))
        point_scale = observed * roots * row_scale
        return cls(known * point_scale, observed, row_scale, point_scale)

    @property
    def n_samples(self) -> int:
        """Number of outputs."""
        return int(self.rows.shape[0])

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return int(self.rows.shape[1])

    def double(self) -> Self:
        """Return the coordinates in float64."""
        xp, parts = namespace(self.rows), (self.rows, self.observed, self.row_scale, self.point_scale)
        return type(self)(*(None if part is None else xp.astype(part, xp.float64, copy=False) for part in parts))

    def unscaled(self, rows: Array) -> Array:
        """Return rows without the factors of the rows."""
        return rows if self.row_scale is None else rows / as_like(self.row_scale, rows)


class Represented(Protocol):
    """The interface that operators on the outputs need from a representation."""

    is_functional: bool

    def congruence(self, matrix: Array) -> Array:
        """Return the operator with this matrix on the raw outputs in coordinates, (p, p)."""

    def congruence_diagonal(self, values: Array) -> Array:
        """Return the operator with this diagonal on the raw outputs in coordinates, (p,) or (p, p)."""


@dataclass(frozen=True)
class CoordinateSpace:
    """The space of the outputs as kernels and output operators see it: a representation, and the training outputs.

    Attributes
    ----------
    representation : Representation
        The fitted representation.
    targets : array of shape (n, p)
        Coordinates of the training outputs.
    weights : array of shape (n,) or None
        Sample weights.
    observed : array of shape (n, p) or None
        1 where an output was observed, else 0; ``None`` if nothing is missing.
    """

    representation: Represented
    targets: Array
    weights: Array | None = None
    observed: Array | None = None

    @property
    def is_functional(self) -> bool:
        """Whether outputs are curves."""
        return self.representation.is_functional

    @property
    def name(self) -> str:
        """Name of the representation, for messages."""
        return type(self.representation).__name__

    def congruence(self, matrix: Array) -> Array:
        """Return the operator with this matrix on the raw outputs in coordinates, (p, p)."""
        return as_like(self.representation.congruence(matrix), self.targets)

    def congruence_diagonal(self, values: Array) -> Array:
        """Return the operator with this diagonal on the raw outputs in coordinates, (p,) or (p, p)."""
        return as_like(self.representation.congruence_diagonal(values), self.targets)

    def covariance(self) -> Array:
        """Return the second moment of the training outputs in coordinates, (p, p).

        With missing outputs each entry is a mean over the samples that have both outputs, zero if there are none, and
        negative eigenvalues are then clipped.
        """
        xp, targets, p = namespace(self.targets), self.targets, self.targets.shape[1]
        what, advice = f"The covariance of {p} outputs", "Use operator=None, or fewer outputs"
        check_memory(32 * p**2, what, advice, like=targets)
        if self.observed is not None:
            return self._of_pairs(self.observed)
        if self.weights is None:
            return targets.T @ targets / targets.shape[0]
        return (targets * self.weights[:, None]).T @ targets / float(xp.sum(self.weights))

    def _of_pairs(self, observed: Array) -> Array:
        xp, weights = namespace(observed), 1.0 if self.weights is None else self.weights[:, None]
        masses = (observed * weights).T @ observed
        least = float(xp.finfo(masses.dtype).smallest_normal)  # of pairs that no sample has, whose sum is zero
        values, vectors = xp.linalg.eigh((self.targets * weights).T @ self.targets / xp.clip(masses, min=least))
        return (vectors * xp.clip(values, min=0.0)) @ vectors.T

    def integral(self, operator: OutputOperator) -> Array:
        """Return an integral operator in the coordinates of curves."""
        matrix: Array = self.representation.integral(operator)  # type: ignore[attr-defined]  # of curves
        return matrix
