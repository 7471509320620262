"""Curves, functions observed at points, and their conversion from and to other formats."""

import numpy as np

from fenchel._array import Array, Inputs, Outputs, host
from fenchel._check import require
from fenchel.data.curves import Curves, as_floats, as_grid, checked_curves, on_own_grid
from fenchel.data.fdata import at_training_points, classes_of, from_fdata, is_fdata
from fenchel.data.pairs import from_pairs, is_pairs

__all__ = ["Curves", "as_curves", "brings_points", "is_fdata", "to_fdata"]

_FORMS = (
    "an array of shape (n, m) or (n, m, c), a DataFrame, a list of pairs (points, values), one for each curve, or a "
    "scikit-fda object"
)


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
        return on_own_grid(Y.grid, Y.values, grid, name)
    if classes_of(Y, "skfda"):
        return from_fdata(Y, grid, name)
    if is_pairs(Y):
        return from_pairs(Y, grid, name)
    if "DataFrame" in classes_of(Y, "pandas"):
        grid = _numbers(Y.columns) if grid is None else grid
        Y = _frame_values(Y, name)
    values = as_floats(Y, name, _FORMS)
    if values.shape[:1] == (0,):
        raise ValueError(f"{name} must have at least one curve. Got shape {tuple(values.shape)} instead.")
    if values.ndim not in (2, 3):
        advice = (
            " For one number for each sample, use OperatorKernelRegressorCV().fit(X, y): its inputs may be curves, as "
            "arrays (n, m, c), pairs (points, values) or scikit-fda objects. X[:, :, None] are the rows of X as curves."
        )
        raise ValueError(
            f"{name} must be {_FORMS}. Got an array of shape {tuple(values.shape)} instead."
            + (advice if values.ndim == 1 else "")
        )
    points = np.linspace(0, 1, values.shape[1]) if grid is None else as_grid(grid, size=values.shape[1])
    return checked_curves(points, values, name)


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


def to_fdata(curves: Outputs, **names: object) -> Outputs:
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


def input_curves(X: Inputs, grid: np.ndarray | None) -> Curves:
    """Return input functions of scikit-fda at the points of the training functions, or at their own if None."""
    return as_curves(X, name="X") if grid is None else at_training_points(X, grid, "X")


def _numbers(labels: Array) -> np.ndarray | None:
    """Return labels as numbers, or ``None`` if one of them is not a number."""
    try:
        return np.array([float(label) for label in labels])
    except (TypeError, ValueError):
        return None


def _frame_values(frame: Outputs, name: str) -> np.ndarray:
    """Return the values of a DataFrame, with missing values as NaN."""
    dtype = np.float32 if all(kind == np.float32 for kind in frame.dtypes) else np.float64
    try:
        return frame.to_numpy(dtype=dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers. Got a DataFrame with other entries: {error}.") from None
