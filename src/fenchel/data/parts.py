"""Inputs in parts of different kinds, such as a curve, some numbers and a category of each sample."""

from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any, cast

import numpy as np

from fenchel._array import Inputs, Outputs, has_shape
from fenchel.data.curves import Curves
from fenchel.data.fdata import classes_of, is_fdata
from fenchel.data.frames import columns_of
from fenchel.data.pairs import is_pairs

__all__: list[str] = []

_CURVES = "curves"  # name of the only part
_REST = "columns"  # name of the columns of a frame that are no curves


def is_parts(X: Inputs) -> bool:
    """Whether inputs come in parts: a mapping from names to parts, or a pandas frame with a column of curves."""
    if isinstance(X, Mapping):
        return not has_shape(X)  # a sparse matrix of keys is a mapping too
    return _is_frame(X) and any(_is_function_column(column) for _, column in columns_of(X))


def parts_of(X: Inputs) -> dict[str, Outputs]:
    """Return the parts by name; each text column of a frame is a part, and its numbers are one."""
    if isinstance(X, Mapping):
        given = {str(name): part for name, part in X.items()}
    else:
        rest = [name for name, column in columns_of(X) if not _is_function_column(column)]
        given = {name: _functions(column) for name, column in columns_of(X) if name not in rest}
        frame = cast(Any, X)
        kept = [not _is_function_column(frame.iloc[:, k]) for k in range(frame.shape[1])]
        given |= {_REST: frame.loc[:, kept]} if rest else {}
    return {name: part for key, value in given.items() for name, part in _split(key, value)}


def as_parts(X: Inputs, takes_missing: bool, takes_complete: bool = False) -> Inputs:
    """Return curves with points of their own as the only part, and others, with or without gaps, where these are taken.

    Curves are arrays (n, m, c) and functions of scikit-fda; other inputs are returned as given.
    """
    is_own = is_pairs(X) and all(isinstance(pair, tuple) for pair in X)  # lists may be nested arrays
    if is_own or (is_fdata(X) and type(X).__name__ == "FDataIrregular"):
        return {_CURVES: X}
    values = X.data_matrix if is_fdata(X) and hasattr(X, "data_matrix") else X
    is_array = isinstance(values, np.ndarray) and values.ndim == 3
    if takes_complete and (is_array or is_fdata(X)):
        return {_CURVES: X}
    has_gaps = takes_missing and is_array and values.dtype.kind == "f" and bool(np.isnan(values).any())
    return {_CURVES: X} if has_gaps else X


def spread(X: Inputs) -> list[Outputs]:
    """Return the parts of inputs in a list, which has other inputs as its only part."""
    return list(parts_of(X).values()) if is_parts(X) else [X]


def _split(name: str, part: Outputs) -> Iterator[tuple[str, Outputs]]:
    """Yield a part, or the numbers and each of the text columns of one that is a frame."""
    if not _is_frame(part):
        yield name, part
        return
    is_text = [is_category(column) for _, column in columns_of(part)]
    if not all(is_text):
        yield name, part.loc[:, [not one for one in is_text]]
    for (column, values), one in zip(columns_of(part), is_text, strict=True):
        if one:
            yield f"{name}.{column}", values


def is_category(values: Outputs) -> bool:
    """Whether values (n,) are names rather than numbers."""
    if classes_of(values, "pandas") and hasattr(getattr(values, "dtype", None), "categories"):
        return True
    if is_fdata(values) or is_pairs(values) or isinstance(values, Curves):
        return False
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "OUST":
        return False
    return not all(is_missing(one) or isinstance(one, Real) for one in array.tolist())


def is_missing(value: object) -> bool:
    """Whether an entry is None, NaN or the missing value of pandas."""
    return (
        value is None or (isinstance(value, Real) and value != value) or type(value).__name__ in ("NAType", "NaTType")
    )


def _is_frame(part: Outputs) -> bool:
    return "DataFrame" in classes_of(part, "pandas")


def _is_function_column(column: Any) -> bool:
    """Whether a column of a frame holds curves: functions of scikit-fda, arrays, or pairs (points, values)."""
    if is_fdata(column.array):
        return True
    if column.dtype != object or not len(column):
        return False
    first = column.iloc[0]
    return isinstance(first, list | tuple) or (has_shape(first) and len(first.shape) > 0)


def _functions(column: Any) -> Outputs:
    """Return the curves of a column of a frame."""
    if is_fdata(column.array):
        return column.array
    cells = list(column)
    return np.stack(cells)[:, :, None] if _are_rows(cells) else cells


def _are_rows(cells: list[Any]) -> bool:
    """Whether all cells are arrays (m,) of one length, the values of curves at the same points."""
    return all(has_shape(cell) and cell.shape == cells[0].shape and len(cell.shape) == 1 for cell in cells)
