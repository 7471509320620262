"""Functions observed at points of a common grid, and the checks of points and values."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from fenchel._array import Array, Index, as_index, host, namespace
from fenchel._check import not_times, unmasked

__all__: list[str] = []

SAME_POINT = 1e-12  # points closer than this share of the range are identified


@dataclass(frozen=True, eq=False)
class Curves:
    """Functions observed at points of a common grid; ``as_curves`` creates and checks them.

    Parameters
    ----------
    grid : ndarray of shape (m,)
        Increasing points.
    values : array of shape (n, m) or (n, m, c)
        Values of the n functions, with c channels in the second form. NaN means not observed.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.datasets import as_curves
    >>> as_curves(np.ones((2, 3)), grid=[0.0, 0.5, 1.0]).values.shape
    (2, 3)
    """

    grid: np.ndarray
    values: Array

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def take(self, index: Index) -> "Curves":
        """Return the curves selected by an integer, a list of integers, a mask or a slice, on the same grid."""
        index = index if isinstance(index, int | slice | list | np.ndarray) else host(index)
        rows = np.atleast_1d(np.arange(len(self))[index])
        values = namespace(self.values).take(self.values, as_index(rows, self.values), axis=0)
        return Curves(self.grid, values)

    @property
    def observed(self) -> Array:
        """Mask of the observed values, with their shape."""
        return ~namespace(self.values).isnan(self.values)

    @property
    def is_complete(self) -> bool:
        """Whether every curve is observed at every point, in every channel."""
        return bool(namespace(self.values).all(self.observed))


def checked_curves(grid: np.ndarray, values: Array, name: str) -> Curves:
    """Return the curves; raise if a value is infinite or a curve is nowhere observed."""
    xp, rest = namespace(values), tuple(range(1, values.ndim))
    if values.shape[0] == 0:
        raise ValueError(f"{name} must have at least one curve. Got none.")
    curves = Curves(grid, values)
    infinite = host(xp.any(xp.isinf(values), axis=rest))
    if infinite.any():
        raise ValueError(
            f"{name} must hold finite values, or NaN where a curve is not observed. "
            f"Curve {infinite.argmax()} contains infinity."
        )
    empty = ~host(xp.any(curves.observed, axis=rest))
    if empty.any():
        raise ValueError(
            f"Every curve of {name} must be observed somewhere. Curve {empty.argmax()} has no observed value; "
            f"drop such curves ({empty.sum()} of {len(empty)})."
        )
    return curves


def as_floats(values: Array, what: str, requirement: str) -> Array:
    """Return numbers as a float32 or float64 array of the original library, or of NumPy."""
    values = unmasked(not_times(values, what), what)
    try:
        namespace(values)
    except TypeError:  # not an array
        try:
            values = np.asarray(values)
        except ValueError:
            raise ValueError(f"{what} must be {requirement}. Got a sequence whose parts differ in shape.") from None
    xp = namespace(values)
    if values.dtype == object and all(isinstance(value, Real) for value in values.flat):
        try:
            values = values.astype(np.float64)  # numbers stored as objects, as in some tables
        except OverflowError as error:
            raise ValueError(f"{what} must be {requirement}, below 1.8e308: {error}.") from error
    if values.dtype in (xp.float32, xp.float64):
        return values
    if not xp.isdtype(values.dtype, ("bool", "integral", "real floating")):
        raise TypeError(f"{what} must be {requirement}, of real numbers. Got dtype {values.dtype} instead.")
    return xp.astype(values, xp.float64)


def as_points(points: Array, what: str) -> np.ndarray:
    """Return points as a new NumPy array of float64."""
    return host(as_floats(points, what, "a one-dimensional array")).astype(np.float64)


def as_grid(grid: Array, size: int | None = None) -> np.ndarray:
    """Return increasing finite points as float64, or raise."""
    points = as_points(grid, "grid")
    if points.ndim != 1 or (size is not None and points.shape != (size,)):
        requirement = "one-dimensional" if size is None else f"of shape ({size},), one point for each column of values"
        raise ValueError(f"grid must be {requirement}. Got shape {points.shape} instead.")
    if not np.all(np.isfinite(points)):
        raise ValueError("grid must hold finite points. Got NaN or infinity.")
    falls = np.flatnonzero(np.diff(points) <= 0)
    if falls.size:
        k = falls[0]
        raise ValueError(
            f"grid must be increasing. Got {points[k + 1]} after {points[k]} at position {k + 1}; sort the points, "
            "and the values with them."
        )
    return points


def on_own_grid(own: np.ndarray, values: Array, grid: Array | None, name: str) -> Curves:
    """Return curves on their own grid; a grid passed by the caller must be the same."""
    own = as_grid(own, size=values.shape[1])
    if grid is not None and not are_same(own, as_points(grid, "grid")):
        raise ValueError(
            f"grid must be the grid that {name} comes with. Got other points; leave grid=None, or evaluate {name} "
            "on that grid first."
        )
    return checked_curves(own, values, name)


def are_same(points: np.ndarray, others: np.ndarray) -> bool:
    """Whether two grids have the same points, up to round-off."""
    return points.shape == others.shape and bool(np.all(np.abs(points - others) <= SAME_POINT * np.ptp(points)))
