"""Curves given as pairs of points and values, each observed at its own points."""

import math
from collections.abc import Sequence, Sized

import numpy as np

from fenchel._array import Array, Outputs, host
from fenchel._check import check_memory
from fenchel.data.curves import SAME_POINT, Curves, as_floats, as_grid, as_points, checked_curves

__all__: list[str] = []


def is_pairs(Y: Outputs) -> bool:
    """Whether Y is a list of pairs (points, values)."""
    if not isinstance(Y, list | tuple) or not Y:
        return False
    return all(isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_has_length, pair)) for pair in Y)


def _has_length(part: object) -> bool:
    return isinstance(part, Sized) and not isinstance(part, str) and getattr(part, "ndim", 1) > 0


def from_pairs(pairs: Sequence[tuple[Array, Array]], grid: Array | None, name: str) -> Curves:
    """Return curves on the union of the points of pairs (points, values), or on a grid that contains them all."""
    points, values = _checked_pairs(pairs, name)
    owner = np.repeat(np.arange(len(points)), [len(at) for at in points])
    every = np.concatenate(points)
    if grid is None:
        union, place = _union(every)
    else:
        union = as_grid(grid)
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
    return checked_curves(union, joined, name)


def _checked_pairs(pairs: Sequence[tuple[Array, Array]], name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the points and the values of each curve as matching arrays, or raise."""
    points = [as_points(at, f"The points of curve {i} of {name}") for i, (at, _) in enumerate(pairs)]
    requirement = "an array of shape (m_i,) or (m_i, c)"
    values = [
        host(as_floats(observed, f"The values of curve {i} of {name}", requirement))
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
    is_new = np.concatenate([[True], np.diff(ordered) > SAME_POINT * np.ptp(points)])
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
    off = np.abs(grid[place] - points) > SAME_POINT * np.ptp(grid)
    if off.any():
        k = off.argmax()
        raise ValueError(
            f"grid must contain every point at which a curve of {name} is observed. Curve {owner[k]} is observed at "
            f"{points[k]}, which is not in it; leave grid=None in fit to use the union of the points, or "
            "smooth the curves to a basis first (to_basis of scikit-fda)."
        )
    return place
