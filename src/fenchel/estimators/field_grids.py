"""Functions on grids from scikit-fda, and back, without importing scikit-fda before it is needed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fenchel._array import Array, Outputs, host
from fenchel._optional import require
from fenchel.data.curves import are_same
from fenchel.data.fdata import classes_of, function_names, is_fdata

__all__: list[str] = []


@dataclass(frozen=True)
class FieldGrid:
    """The points of functions along each axis, equally spaced, and what scikit-fda calls axes and channels."""

    points: tuple[np.ndarray, ...]
    names: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, fields: Outputs, name: str) -> "FieldGrid | None":
        """Return the grid of an FDataGrid, ``None`` for arrays; raise for other functions and other grids."""
        if not is_fdata(fields):
            return None
        if "FDataGrid" not in classes_of(fields, "skfda"):
            raise TypeError(
                f"{name} must hold functions on a grid: an array or an FDataGrid. Got a {type(fields).__name__}. "
                "Evaluate it on one by to_grid(grid_points)."
            )
        points = tuple(np.asarray(each, dtype=float) for each in fields.grid_points)
        for axis, each in enumerate(points):
            if not are_same(each, np.linspace(each[0], each[-1], len(each))):
                raise ValueError(
                    f"{name} must be known at equally spaced points. Those of axis {axis} are not: steps are from "
                    f"{np.diff(each).min():.6g} to {np.diff(each).max():.6g}. Interpolate by to_grid(grid_points)."
                )
        return cls(points, function_names(fields, "argument_names", "coordinate_names"))

    def resized(self, shape: tuple[int, ...], interpolation: str | None) -> "FieldGrid":
        """Return a grid of the same domain with another number of points; a period ends one step after the last one."""
        points = []
        for old, size in zip(self.points, shape, strict=True):
            span = (old[-1] - old[0]) * (len(old) / max(len(old) - 1, 1) if interpolation == "fourier" else 1)
            moved = np.linspace(old[0], old[0] + span, size, endpoint=interpolation != "fourier")
            points.append(old if size == len(old) else moved)
        return FieldGrid(tuple(points), self.names)

    def check(self, other: "FieldGrid", interpolation: str | None) -> None:
        """Raise if functions on another grid are not known at the points of this one, or at those it is resized to."""
        if len(other.points) != len(self.points):
            raise ValueError(
                f"X must hold functions of {len(self.points)} variables. Got functions of {len(other.points)}."
            )
        wanted = self.resized(tuple(map(len, other.points)), interpolation)
        for axis, (points, own) in enumerate(zip(other.points, wanted.points, strict=True)):
            if not are_same(own, points):
                raise ValueError(
                    f"X must be known where the training inputs were: along axis {axis} from {own[0]:.6g} to "
                    f"{own[-1]:.6g}. Got {len(points)} points from {points[0]:.6g} to {points[-1]:.6g}. Interpolate by "
                    "to_grid(grid_points)."
                )

    def wrapped(self, values: Array, interpolation: str | None, rows: Mapping[str, object]) -> Outputs:
        """Return values (n, *grid[, channels]) as an FDataGrid."""
        skfda, shape = require("skfda", extra="fda"), values.shape[1 : 1 + len(self.points)]
        points = self.resized(tuple(shape), interpolation).points
        return skfda.FDataGrid(host(values), points, **self.names, **rows)


def values_of(fields: Outputs) -> Outputs:
    """Return the values of an FDataGrid, without the axis of a single channel; arrays as they are."""
    if not is_fdata(fields):
        return fields
    return fields.data_matrix[..., 0] if fields.data_matrix.shape[-1] == 1 else fields.data_matrix


def n_variables(n_axes: int | None, *grids: FieldGrid | None) -> int | None:
    """Return the number of variables of functions, as given or as scikit-fda knows it; raise if these differ."""
    counts = {len(grid.points) for grid in grids if grid is not None} | (set() if n_axes is None else {n_axes})
    if len(counts) > 1:
        raise ValueError(f"X, y and n_axes must agree on the number of variables. Got {sorted(counts)}.")
    return counts.pop() if counts else None
