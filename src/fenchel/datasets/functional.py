"""Curves, functions observed at points, and their conversion from and to other formats."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from fenchel._array import Array, Index, Outputs, as_index, host, namespace
from fenchel._check import check_memory, not_times, require, unmasked

__all__ = ["Curves", "as_curves", "brings_points", "is_fdata", "to_fdata"]

_BASIS_POINTS = 101  # number of points at which functions given in a basis are evaluated by default
_SAME_POINT = 1e-12  # points closer than this share of the range are identified
_FORMS = (
    "an array of shape (n, m) or (n, m, c), a DataFrame, a list of pairs (points, values), one for each curve, or a "
    "scikit-fda object"
)


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


def as_curves(Y: Outputs, grid: Array | None = None, name: str = "Y") -> Curves:
    """Convert curves in any supported format to a common grid.

    Parameters
    ----------
    Y : Curves, array, DataFrame, list of pairs, FDataGrid, FDataIrregular or FDataBasis
        Arrays of any library, of shape (n, m) or (n, m, c), where NaN means not observed; they keep their library, and
        their dtype if it is float32 or float64. In a list or tuple of pairs ``(points, values)``, one pair (itself a
        list or tuple) per curve, the values have shape (m_i,) or (m_i, c), and the points may be in any order and
        differ between curves; the grid is their union. A nested list of shape (n, 2, c) is therefore read as pairs:
        convert it to an array if it is not. Functions of scikit-fda have one variable; their coordinates become
        channels.
    grid : array of shape (m,) or None, default=None
        Increasing points. ``None`` means, for arrays, equally spaced points on [0, 1]; for a DataFrame, its column
        names if all of them are numbers (or strings that read as numbers); for an FDataBasis, 101 equally spaced points
        on its domain. For data with their own points (pairs, FDataGrid, FDataIrregular, Curves) the grid must contain
        them.
    name : str, default="Y"
        Name of the data in error messages.

    Returns
    -------
    curves : Curves
        The values are shared with ``Y`` if they need no change.

    Examples
    --------
    >>> from fenchel.datasets import as_curves
    >>> curves = as_curves([([0.0, 0.5], [1.0, 2.0]), ([1.0, 0.5], [3.0, 4.0])])
    >>> curves.grid
    array([0. , 0.5, 1. ])
    >>> curves.values
    array([[ 1.,  2., nan],
           [nan,  4.,  3.]])
    """
    if isinstance(Y, Curves):
        return _on_own_grid(Y.grid, Y.values, grid, name)
    if _classes(Y, "skfda"):
        return _from_fdata(Y, grid, name)
    if is_pairs(Y):
        return _from_pairs(Y, grid, name)
    if "DataFrame" in _classes(Y, "pandas"):
        grid = _numbers(Y.columns) if grid is None else grid
        Y = _frame_values(Y, name)
    values = _floats(Y, name, _FORMS)
    if values.shape[:1] == (0,):
        raise ValueError(f"{name} must have at least one curve. Got shape {tuple(values.shape)} instead.")
    if values.ndim not in (2, 3):
        raise ValueError(f"{name} must be {_FORMS}. Got an array of shape {tuple(values.shape)} instead.")
    points = np.linspace(0, 1, values.shape[1]) if grid is None else _as_grid(grid, size=values.shape[1])
    return _checked(points, values, name)


def brings_points(Y: Outputs) -> bool:
    """Whether curves come with their own points.

    Parameters
    ----------
    Y : array, Curves, list, tuple or FData
        Curves.

    Returns
    -------
    brings_points : bool
        ``False`` for an array, whose points are given by a separate grid.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.datasets import brings_points
    >>> brings_points(np.ones((2, 3))), brings_points([(np.array([0.0, 1.0]), np.array([2.0, 3.0]))])
    (False, True)
    """
    return isinstance(Y, Curves | list | tuple) or is_fdata(Y)


def is_fdata(Y: Outputs) -> bool:
    """Whether the data are a scikit-fda object.

    Parameters
    ----------
    Y : object
        Data.

    Returns
    -------
    is_fdata : bool
        ``True`` for ``FDataGrid``, ``FDataBasis`` and ``FDataIrregular``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.datasets import is_fdata
    >>> is_fdata(np.ones((2, 3)))
    False
    """
    return bool(_classes(Y, "skfda"))


def function_names(Y: Outputs, *kinds: str) -> dict[str, Any]:
    """Return names of a scikit-fda object, such as ``"argument_names"``; other data have none."""
    return {kind: getattr(Y, kind) for kind in kinds} if is_fdata(Y) else {}


def to_fdata(curves: Outputs, **names: Any) -> Any:
    """Return the curves as a scikit-fda object.

    Parameters
    ----------
    curves : Curves, or any other input of ``as_curves``
        Curves; channels become coordinates.
    **names : dict
        Further arguments of the scikit-fda object, such as ``argument_names``, ``coordinate_names`` and
        ``sample_names``.

    Returns
    -------
    fdata : FDataGrid or FDataIrregular
        An FDataGrid if every value is observed, otherwise an FDataIrregular with the points at which a curve is
        observed in at least one channel.

    Examples
    --------
    >>> from fenchel.datasets import make_functional, to_fdata
    >>> to_fdata(make_functional(5, 10, random_state=0).Y).data_matrix.shape  # doctest: +SKIP
    (5, 10, 1)
    """
    skfda, curves = require("skfda", extra="fda"), as_curves(curves, name="curves")
    values = host(curves.values)
    if curves.is_complete:
        return skfda.FDataGrid(values, curves.grid, **names)
    values = values.reshape(*values.shape[:2], -1)
    row, column = np.nonzero(~np.isnan(values).all(axis=2))
    starts = np.searchsorted(row, np.arange(len(curves)))
    ends = (float(curves.grid[0]), float(curves.grid[-1]))
    return skfda.FDataIrregular(starts, curves.grid[column], values[row, column], domain_range=ends, **names)


def _checked(grid: np.ndarray, values: Array, name: str) -> Curves:
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


def _floats(values: Array, what: str, requirement: str) -> Array:
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


def _points(points: Array, what: str) -> np.ndarray:
    """Return points as a new NumPy array of float64."""
    return host(_floats(points, what, "a one-dimensional array")).astype(np.float64)


def _as_grid(grid: Array, size: int | None = None) -> np.ndarray:
    """Return increasing finite points as float64, or raise."""
    points = _points(grid, "grid")
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


def _on_own_grid(own: np.ndarray, values: Array, grid: Array | None, name: str) -> Curves:
    """Return curves on their own grid; a grid passed by the caller must be the same."""
    own = _as_grid(own, size=values.shape[1])
    if grid is not None and not _are_same(own, _points(grid, "grid")):
        raise ValueError(
            f"grid must be the grid that {name} comes with. Got other points; leave grid=None, or evaluate {name} "
            "on that grid first."
        )
    return _checked(own, values, name)


def _are_same(points: np.ndarray, others: np.ndarray) -> bool:
    return points.shape == others.shape and bool(np.all(np.abs(points - others) <= _SAME_POINT * np.ptp(points)))


def is_pairs(Y: Outputs) -> bool:
    """Whether Y is a list of pairs (points, values)."""
    if not isinstance(Y, list | tuple) or not Y:
        return False
    return all(isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_has_length, pair)) for pair in Y)


def _has_length(part: object) -> bool:
    return hasattr(part, "__len__") and not isinstance(part, str) and getattr(part, "ndim", 1) > 0


def _from_pairs(pairs: Sequence[tuple[Array, Array]], grid: Array | None, name: str) -> Curves:
    """Return curves on the union of the points of pairs (points, values), or on a grid that contains them all."""
    points, values = _checked_pairs(pairs, name)
    owner = np.repeat(np.arange(len(points)), [len(at) for at in points])
    every = np.concatenate(points)
    if grid is None:
        union, place = _union(every)
    else:
        union = _as_grid(grid)
        place = _places(every, union, owner, name)
    _, first = np.unique(owner * len(union) + place, return_index=True)
    if len(first) < len(every):
        k = np.setdiff1d(np.arange(len(every)), first)[0]
        raise ValueError(
            f"The points of each curve of {name} must be distinct. Curve {owner[k]} has the point {every[k]} more than "
            "once; keep one of them, or their mean."
        )
    shape, dtype = (len(points), len(union), *values[0].shape[1:]), np.result_type(*values)
    n_bytes = math.prod(shape) * dtype.itemsize
    check_memory(n_bytes, f"{name} on the union of its points, shape {shape},", "Bring the curves to common points")
    joined = np.full(shape, np.nan, dtype=dtype)
    joined[owner, place] = np.concatenate(values)
    return _checked(union, joined, name)


def _checked_pairs(pairs: Sequence[tuple[Array, Array]], name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the points and the values of each curve as matching arrays, or raise."""
    points = [_points(at, f"The points of curve {i} of {name}") for i, (at, _) in enumerate(pairs)]
    requirement = "an array of shape (m_i,) or (m_i, c)"
    values = [
        host(_floats(observed, f"The values of curve {i} of {name}", requirement))
        for i, (_, observed) in enumerate(pairs)
    ]
    for i, (at, observed) in enumerate(zip(points, values, strict=True)):
        if at.ndim != 1 or observed.ndim not in (1, 2) or len(at) != len(observed):
            raise ValueError(
                f"Each curve of {name} must be a pair of points (m_i,) and values (m_i,) or (m_i, c). "
                f"Curve {i} has points of shape {at.shape} and values of shape {observed.shape}."
            )
        if not np.all(np.isfinite(at)):
            raise ValueError(f"The points of each curve of {name} must be finite. Those of curve {i} are not.")
        if observed.shape[1:] != values[0].shape[1:]:
            raise ValueError(
                f"The curves of {name} must have the same number of channels. Curve {i} has values of shape "
                f"{observed.shape}, curve 0 of shape {values[0].shape}."
            )
    return points, values


def _union(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct points in order, and the index of each point among them."""
    if not points.size:
        return points, np.zeros(0, dtype=int)
    order = np.argsort(points, kind="stable")
    ordered = points[order]
    is_new = np.concatenate([[True], np.diff(ordered) > _SAME_POINT * np.ptp(points)])
    place = np.empty(len(points), dtype=int)
    place[order] = np.cumsum(is_new) - 1
    return ordered[is_new], place


def _places(points: np.ndarray, grid: np.ndarray, owner: np.ndarray, name: str) -> np.ndarray:
    """Return the index of each point in a grid, or raise if a point is not in the grid."""
    if not grid.size:
        raise ValueError("grid must have at least one point. Got none.")
    right = np.searchsorted(grid, points).clip(0, len(grid) - 1)
    left = (right - 1).clip(0)
    place = np.where(points - grid[left] < grid[right] - points, left, right)
    off = np.abs(grid[place] - points) > _SAME_POINT * np.ptp(grid)
    if off.any():
        k = off.argmax()
        raise ValueError(
            f"grid must contain every point at which a curve of {name} is observed. Curve {owner[k]} is observed at "
            f"{points[k]}, which is not in it; leave grid=None in fit to use the union of the points, or "
            "smooth the curves to a basis first (to_basis of scikit-fda)."
        )
    return place


def input_curves(X: Any, grid: np.ndarray | None) -> Curves:
    """Return input functions of scikit-fda at the points of the training functions, or at their own if None."""
    curves = as_curves(X, name="X") if grid is None else at_training_points(X, grid, "X")
    if type(X).__name__ == "FDataIrregular" and np.isnan(curves.values).any():
        raise ValueError(
            "Input curves must be observed at the same points. Smooth them first, with a penalty if the points are "
            "few: to_basis and BasisSmoother of scikit-fda."
        )
    return curves


def at_training_points(fdata: Any, grid: np.ndarray, name: str) -> Curves:
    """Return functions of scikit-fda at the points of the training ones; scikit-fda interpolates those on a grid."""
    low, high = fdata.domain_range[0]
    margin = _SAME_POINT * np.ptp(grid)
    if low > grid[0] + margin or high < grid[-1] - margin:
        raise ValueError(
            f"{name} must be defined on [{grid[0]:g}, {grid[-1]:g}], the domain of the training functions. Got "
            f"functions on [{low:g}, {high:g}]. Observe them on the whole domain, or fit the model on the part "
            "that both have: restrict((low, high)) of scikit-fda cuts it out."
        )
    points = np.clip(grid, low, high)
    is_elsewhere = hasattr(fdata, "grid_points") and not _are_same(fdata.grid_points[0], grid)
    if is_elsewhere and fdata.dim_domain == 1:
        return _checked(points, _channels(fdata(points)), name)
    return _from_fdata(fdata, points, name)


def _from_fdata(fdata: Any, grid: Array | None, name: str) -> Curves:
    """Return the curves of a scikit-fda object, without importing scikit-fda."""
    kinds = _classes(fdata, "skfda") & {"FDataGrid", "FDataIrregular", "FDataBasis"}
    if not kinds:
        raise TypeError(f"{name} must be an FDataGrid, FDataIrregular or FDataBasis. Got a {type(fdata).__name__}.")
    if fdata.dim_domain != 1:
        raise ValueError(f"{name} must hold functions of one variable. Got functions of {fdata.dim_domain} variables.")
    if "FDataGrid" in kinds:
        return _on_own_grid(fdata.grid_points[0], _channels(fdata.data_matrix), grid, name)
    if "FDataIrregular" in kinds:
        cuts = fdata.start_indices[1:]
        parts = zip(np.split(fdata.points[:, 0], cuts), np.split(_channels(fdata.values), cuts), strict=True)
        return _from_pairs(list(parts), grid, name)
    low, high = fdata.domain_range[0]
    points = np.linspace(low, high, _BASIS_POINTS) if grid is None else _as_grid(grid)
    if points.size and (points[0] < low or points[-1] > high):
        raise ValueError(
            f"grid must lie in the domain of {name}, [{low:g}, {high:g}]. Got points from {points[0]:g} to "
            f"{points[-1]:g}."
        )
    return _checked(points, _channels(fdata(points)), name)


def _channels(values: np.ndarray) -> np.ndarray:
    """Return values as a floating array, without the last axis if there is only one channel."""
    array = values[..., 0] if values.shape[-1] == 1 else values
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _classes(Y: Outputs, library: str) -> set[str]:
    """Return the names of the classes of an object that a library defines, without importing the library."""
    return {kind.__name__ for kind in type(Y).__mro__ if kind.__module__.split(".")[0] == library}


def _numbers(labels: Array) -> np.ndarray | None:
    """Return labels as numbers, or ``None`` if one of them is not a number."""
    try:
        return np.array([float(label) for label in labels])
    except (TypeError, ValueError):
        return None


def _frame_values(frame: Any, name: str) -> np.ndarray:
    """Return the values of a DataFrame, with missing values as NaN."""
    dtype = np.float32 if all(kind == np.float32 for kind in frame.dtypes) else np.float64
    try:
        return frame.to_numpy(dtype=dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers. Got a DataFrame with other entries: {error}.") from None
