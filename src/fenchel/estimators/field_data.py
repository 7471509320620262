"""Functions on grids as they are given: outputs, their gaps, and which pairs are held out together."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array as check_host_array

from fenchel._array import Array, Outputs, as_index, as_like, host, is_host, namespace
from fenchel._check import outputs_like, unmasked
from fenchel.data.content import contents, ranks_of_groups
from fenchel.estimators.field_maps import as_rows
from fenchel.exceptions import DataWarning, warn_user
from fenchel.model.vectors import rows_with_values
from fenchel.resample.folds import blocks_of, label_codes

__all__: list[str] = []


def checked_outputs(y: Outputs, X: Array, n_axes: int | None) -> Array:
    """Return outputs in the array library and dtype of the inputs."""
    y = unmasked(y, "y")
    if y is None:
        raise ValueError("FieldRegressor requires y to be passed, but the target y is None.")
    if is_host(y):
        try:
            y = check_host_array(y, dtype=[np.float64, np.float32], allow_nd=True, ensure_2d=False,
                                 ensure_all_finite="allow-nan", input_name="y")  # fmt: skip
        except OverflowError as error:
            raise ValueError(f"y must hold numbers below 1.8e308: {error}.") from error
    Y = outputs_like(y, X, "y")
    if Y.ndim > 5:
        raise ValueError(f"y must hold functions of one to three variables. Got shape {tuple(Y.shape)}.")
    if Y.shape[0] != X.shape[0]:
        raise ValueError(f"X and y must have the same number of samples. Got {X.shape[0]} and {Y.shape[0]}.")
    warn_of_cubes(Y, "y", n_axes)
    return Y


def warn_of_cubes(fields: Array, name: str, n_axes: int | None) -> None:
    """Warn if the last axis, read as channels, is as long as an axis of the grid."""
    if n_axes is None and fields.ndim == 4 and 1 < fields.shape[3] >= min(fields.shape[1:3]):
        warn_user(
            f"{name} of shape {tuple(fields.shape)} is read as fields of two variables with {fields.shape[3]}"
            " channels. If the last axis is a third variable, set n_axes=3, otherwise n_axes=2.",
            DataWarning,
            "channels-or-cubes",
        )


def together(X: Array, Y: Array, groups: ArrayLike | None, order: ArrayLike | None) -> np.ndarray | None:
    """Return the labels of pairs that are held out together, in an order that does not depend on their names."""
    codes = label_codes(blocks_of(order, groups, X, 2), X.shape[0], "groups")
    return None if codes is None else ranks_of_groups(contents(as_rows(Y), as_rows(X)), codes)


def with_outputs(
    X: Array, Y: Array, sample_weight: Array | None, labels: np.ndarray | None
) -> tuple[Array, Array, Array | None, np.ndarray | None]:
    """Return the samples of whose outputs at least one value was observed, with a warning if there are others."""
    rows = rows_with_values(~np.isnan(host(as_rows(Y))))
    if len(rows) == Y.shape[0]:
        return X, Y, sample_weight, labels
    if not len(rows):
        raise ValueError("y must have observed values. All of them are NaN.")
    X, Y = (namespace(each).take(each, as_index(rows, each), axis=0) for each in (X, Y))
    weights = None if sample_weight is None else host(as_like(sample_weight, X))[rows]
    return X, Y, weights, None if labels is None else labels[rows]
