"""Curves from scikit-fda objects, without importing scikit-fda."""

import numpy as np

from fenchel._array import Array, Outputs
from fenchel.data.curves import SAME_POINT, Curves, are_same, as_grid, checked_curves, on_own_grid
from fenchel.data.pairs import from_pairs

__all__ = ["is_fdata"]

_BASIS_POINTS = 101  # number of points at which functions given in a basis are evaluated by default


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
    return bool(classes_of(Y, "skfda"))


def function_names(Y: Outputs, *kinds: str) -> dict[str, tuple[str, ...]]:
    """Return names of a scikit-fda object, such as ``"argument_names"``; other data have none."""
    return {kind: getattr(Y, kind) for kind in kinds} if is_fdata(Y) else {}


def at_training_points(fdata: Outputs, grid: np.ndarray, name: str) -> Curves:
    """Return functions of scikit-fda at the points of the training ones; scikit-fda interpolates those on a grid."""
    low, high = fdata.domain_range[0]
    margin = SAME_POINT * np.ptp(grid)
    if low > grid[0] + margin or high < grid[-1] - margin:
        raise ValueError(
            f"{name} must be defined on [{grid[0]:g}, {grid[-1]:g}], the domain of the training functions. Got "
            f"functions on [{low:g}, {high:g}]. Observe them on the whole domain, or fit the model on the part "
            "that both have: restrict((low, high)) of scikit-fda cuts it out."
        )
    points = np.clip(grid, low, high)
    is_elsewhere = hasattr(fdata, "grid_points") and not are_same(fdata.grid_points[0], grid)
    if is_elsewhere and fdata.dim_domain == 1:
        return checked_curves(points, _channels(fdata(points)), name)
    return from_fdata(fdata, points, name)


def from_fdata(fdata: Outputs, grid: Array | None, name: str) -> Curves:
    """Return the curves of a scikit-fda object, without importing scikit-fda."""
    kinds = classes_of(fdata, "skfda") & {"FDataGrid", "FDataIrregular", "FDataBasis"}
    if not kinds:
        raise TypeError(f"{name} must be an FDataGrid, FDataIrregular or FDataBasis. Got a {type(fdata).__name__}.")
    if fdata.dim_domain != 1:
        raise ValueError(f"{name} must hold functions of one variable. Got functions of {fdata.dim_domain} variables.")
    if "FDataGrid" in kinds:
        return on_own_grid(fdata.grid_points[0], _channels(fdata.data_matrix), grid, name)
    if "FDataIrregular" in kinds:
        cuts = fdata.start_indices[1:]
        parts = zip(np.split(fdata.points[:, 0], cuts), np.split(_channels(fdata.values), cuts), strict=True)
        return from_pairs(list(parts), grid, name)
    low, high = fdata.domain_range[0]
    points = np.linspace(low, high, _BASIS_POINTS) if grid is None else as_grid(grid)
    if points.size and (points[0] < low or points[-1] > high):
        raise ValueError(
            f"grid must lie in the domain of {name}, [{low:g}, {high:g}]. Got points from {points[0]:g} to "
            f"{points[-1]:g}."
        )
    return checked_curves(points, _channels(fdata(points)), name)


def _channels(values: np.ndarray) -> np.ndarray:
    """Return values as a floating array, without the last axis if there is only one channel."""
    array = values[..., 0] if values.shape[-1] == 1 else values
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def classes_of(Y: Outputs, library: str) -> set[str]:
    """Return the names of the classes of an object that a library defines, without importing the library."""
    return {kind.__name__ for kind in type(Y).__mro__ if kind.__module__.split(".")[0] == library}
