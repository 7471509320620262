"""Tables with one row for each sample or value, as structured arrays or data frames, and lists of outputs."""

from typing import Any

import numpy as np

from fenchel._optional import require

__all__ = ["listed_names", "shown", "table_of", "table_of_cells"]

_MOST_NAMES = 5  # of outputs of one sample
_SHOWN = 5  # rows of the text representation


def table_of(columns: dict[str, Any], index: Any, as_frame: bool, order: np.ndarray) -> Any:
    """Return columns of equal length, without those that are ``None``, in an order, as an array or a data frame."""
    known = {name: np.asarray(values)[order] for name, values in columns.items() if values is not None}
    table = np.empty(len(next(iter(known.values()))), dtype=[(name, values.dtype) for name, values in known.items()])
    for name, values in known.items():
        table[name] = values
    if not as_frame:
        return table
    return require("pandas", extra="pandas").DataFrame(table, None if index is None else index[order])


def shown(table: np.ndarray, n_flagged: int) -> str:
    """Return the first rows of the table of a report as text."""
    lines = [f"OutlierReport: {n_flagged} of {len(table)} samples flagged at a false discovery rate of 0.1"]
    names = table.dtype.names or ()
    lines += [
        f"  sample {row['sample']:>5}   score {row['score']:7.1f}   p-value {row['p_value']:.1e}   "
        + row["outputs" if "outputs" in names else "kind"]
        + (f"   saturation {row['saturation']:.2f}" if "saturation" in names else "")
        for row in table[:_SHOWN]
    ]
    return "\n".join([*lines, "  ..."] if len(table) > _SHOWN else lines)


def table_of_cells(
    p_values: np.ndarray,
    is_flagged: np.ndarray,
    residuals: np.ndarray,
    names: list[str] | None,
    index: Any,
    as_frame: bool,
) -> Any:
    """Return a table of the flagged values of several samples, by their p-values; arrays have the same shape."""
    p_values, is_flagged, residuals = (part.reshape(len(part), -1) for part in (p_values, is_flagged, residuals))
    samples, places = np.nonzero(is_flagged)
    columns = {
        "sample": samples,
        "output": places if names is None else np.asarray(names)[places],
        "residual": residuals[samples, places],
        "p_value": p_values[samples, places],
    }
    order = np.argsort(columns["p_value"], kind="stable")
    return table_of(columns, None if index is None else index[samples], as_frame, order)


def listed_names(names: list[str], is_wrong: np.ndarray, deviates: np.ndarray) -> np.ndarray:
    """Return the names of the wrong outputs of each sample, only the most deviating if there are many, (n,)."""

    def listed(places: np.ndarray, sizes: np.ndarray) -> str:
        kept = np.sort(places[np.argsort(-sizes[places], kind="stable")[:_MOST_NAMES]])
        text = ", ".join(str(names[place]) for place in kept)
        return text if len(kept) == len(places) else f"{text} and {len(places) - len(kept)} more"

    return np.array([listed(np.flatnonzero(row), sizes) for row, sizes in zip(is_wrong, deviates, strict=True)])
