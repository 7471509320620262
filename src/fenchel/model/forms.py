"""The forms in which inputs and outputs come: what is accepted, and how predictions go back."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, validate_data

from fenchel._array import Array, Outputs, as_like, as_rows, dense, has_shape, is_host, is_sparse, namespace
from fenchel._check import check_array, check_finite, not_times, outputs_like, unmasked
from fenchel.data.frames import columns_of, without_sparse_columns
from fenchel.data.functional import Curves, input_curves, is_fdata, to_fdata
from fenchel.data.parts import as_parts, is_parts
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import OperatorKernel, ScalarKernel
from fenchel.kernels.columns import PartName
from fenchel.kernels.images import OfImages
from fenchel.model.parts import Blocks, PartForm, blocks_of_parts, flattened, learned_parts

__all__ = ["InputForm", "OutputForm"]

Kernel = TypeVar("Kernel", bound=ScalarKernel | OperatorKernel)


@dataclass(frozen=True)
class InputForm:
    """How inputs came: new ones are checked against it and brought to it."""

    shape: tuple[int, ...]  # of one input
    names: tuple[str, ...] | None = None  # of columns
    grid: np.ndarray | None = None  # points of input functions
    is_sparse: bool = False
    is_pairwise: bool = False
    takes_missing: bool = False
    takes_channels: bool = False  # whether inputs may be curves, (n, m) or (n, m, c)
    library: str = "numpy"
    parts: tuple[PartForm, ...] = ()  # of inputs of several kinds, whose columns are those of one array
    blocks: Blocks | None = None  # what these columns are
    medians: np.ndarray | None = None  # of the columns, for gaps in new inputs if there were none before

    @classmethod
    def learn(
        cls,
        owner: BaseEstimator,
        X: Array,
        y: Outputs = None,
        *,
        takes_sparse: bool = False,
        takes_channels: bool = False,
        takes_missing: bool = False,
        is_open: bool = False,
        is_pairwise: bool = False,
        takes_gaps: bool = False,
        **options: object,
    ) -> tuple[Array, Outputs, Self]:
        """Return checked training inputs, outputs, and the form; scikit-learn's attributes are set on the owner.

        Outputs are checked by scikit-learn together with the inputs, with its ``options``, which require them. With
        ``takes_gaps`` they are numbers, or rows of numbers, and may be NaN. ``is_open`` says that the kernel is found
        from the data: then curves keep their points and channels.
        """
        X = as_parts(X, takes_missing, is_open and not takes_channels)
        X, parts = learned_parts(X) if is_parts(X) else (X, ())
        X, grid = _function_values(plain(X, "X"), None, takes_channels)
        y = plain(y, "y")
        if is_host(X):
            data = (X,) if y is None and not (options or takes_gaps) else (X, y)
            options |= {"accept_sparse": "csr" if takes_sparse else False, "allow_nd": takes_channels}
            X, *rest = _validated(owner, *data, takes_gaps=takes_gaps, **options)
            y = rest[0] if rest else None
        ndim = (2, 3) if takes_channels else (2,)
        X = _checked(X, ndim, takes_missing)
        if is_pairwise and X.shape[1] != X.shape[0]:
            raise ValueError(f"X must be a square Gram matrix with a precomputed kernel. Got shape {tuple(X.shape)}.")
        form = cls(
            tuple(X.shape[1:]),
            _names_noted(owner, X),
            grid,
            is_sparse(X),
            is_pairwise,
            takes_missing,
            takes_channels,
            _library(X),
            parts,
            blocks_of_parts(parts) if parts else None,
        )
        return X, y, form

    def read(self, owner: BaseEstimator, X: Array) -> Array:
        """Return new inputs in the form of the training inputs."""
        if self.parts:
            X = flattened(X, self.parts)
        X, _ = _function_values(plain(X, "X"), self.grid, self.takes_channels)
        if is_host(X):
            (X,) = _validated(owner, X, reset=False, accept_sparse="csr", allow_nd=self.takes_channels)
            if is_sparse(X) != self.is_sparse:
                X = as_rows(X) if self.is_sparse else dense(X)
        X = _checked(X, (2, 3) if self.takes_channels else (2,), self.takes_missing)
        if self.takes_channels and _library(X) != self.library:
            raise ValueError(
                f"X must be an array of the library of the training data, {self.library}. Got {_library(X)}."
            )
        if tuple(X.shape[1:]) != self.shape:
            if self.takes_channels:
                raise ValueError(
                    f"X has rows of shape {tuple(X.shape[1:])}, but the model was fitted with {self.shape}."
                )
            raise ValueError(f"X has {X.shape[1]} features, but the model was fitted with {self.shape[0]}.")
        if self.medians is not None and is_host(X) and not is_sparse(X) and np.isnan(X).any():
            X = np.where(np.isnan(X), self.medians.astype(X.dtype), X)
        return X

    def named(self, kernel: Kernel) -> Kernel:
        """Return a kernel of these inputs with the names of columns and parts replaced by positions."""
        if self.parts and not any(isinstance(one, OfImages) for one in (kernel, *kernel.get_params().values())):
            raise IncompatibleError(
                f"Inputs in parts need kernel='auto', or sums and products of Part(kernel, [name]) with the names "
                f"{[part.name for part in self.parts]}. Got {kernel!r}."
            )
        names = [PartName(part.name) for part in self.parts for _ in range(part.width)] or self.names
        return kernel if names is None else kernel.named(names)


@dataclass(frozen=True)
class OutputForm:
    """How outputs came: predictions go back in the same form."""

    shape: tuple[int, ...] = ()  # of one output; () for numbers
    labels: Mapping[str, object] = field(default_factory=dict)  # argument and coordinate names of scikit-fda
    empty: Array = None  # no rows, in the dtype of integer outputs; None for other outputs
    names: tuple[object, ...] | None = None  # of the columns of a frame

    @property
    def is_flat(self) -> bool:
        """Whether outputs are numbers, not vectors."""
        return self.shape == ()

    def wrap(self, values: Array, X: Array) -> Array:
        """Return vectors (n, p, ...) in the dtype of the inputs, without the axis of outputs if these were numbers."""
        values = namespace(X).astype(values, X.dtype, copy=False)
        return values[:, 0] if self.is_flat else values

    def wrap_curves(self, points: np.ndarray, values: Array, rows: Mapping[str, object]) -> Outputs:
        """Return curves as an array, or as scikit-fda functions if the training outputs were."""
        return to_fdata(Curves(points, values), **self.labels, **rows) if self.labels else values

    def as_trained(self, decoded: Outputs) -> Outputs:
        """Return decoded outputs in the integer dtype of the training outputs, if they had one."""
        return decoded if self.empty is None else namespace(decoded).astype(decoded, self.empty.dtype, copy=False)


def plain(values: Outputs, name: str) -> Outputs:
    """Return data without a mask, NaN where entries are masked; raise if they are dates, times or durations."""
    return unmasked(not_times(values, name), name)


def vectors_like(y: Outputs, X: Array, takes_gaps: bool = False) -> Array:
    """Return checked vector outputs, (n,) or (n, p), in the library and dtype of the inputs; gaps are NaN."""

    def check(values: Array, name: str) -> Array:
        return check_array(values, name, ndim=(1, 2))

    if not is_host(X):
        y = _with_gaps(check, outputs_like(as_like(y, X), X, "y"), "y", takes_gaps)
        if X.shape[0] != y.shape[0]:
            raise ValueError(f"X and y must have the same number of samples. Got {X.shape[0]} and {y.shape[0]}.")
        return y
    y = y if y.dtype.kind in "biuf" else _as_floats(y)
    y = _with_gaps(check, y, "y", takes_gaps) if y.dtype.kind == "f" else y  # None has become NaN
    return outputs_like(y, X.data if is_sparse(X) else X, "y")


def _validated(
    owner: BaseEstimator, *data: Outputs, takes_gaps: bool = False, **options: object
) -> tuple[Outputs, ...]:
    """Return X, or X and y, checked by scikit-learn, with advice in its messages."""
    options |= {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
    if takes_gaps:
        outputs = {"ensure_all_finite": "allow-nan", "ensure_2d": False, "dtype": None}
        options = {"validate_separately": (options, outputs)}
    data = (without_sparse_columns(data[0]), *data[1:])
    try:
        checked = validate_data(owner, *data, **options)
        if takes_gaps:
            checked = checked[0], _numbers(checked[1])
            check_consistent_length(*checked)
    except ValueError as error:
        advised = _advised(str(error), data)
        if advised is None:
            raise
        raise ValueError(advised) from error
    except OverflowError as error:
        names = " and ".join(("X", "y")[: len(data)])
        raise ValueError(f"{names} must hold numbers below 1.8e308: {error}.") from error
    X, *rest = checked if len(data) == 2 else (checked,)
    return (as_rows(X) if is_sparse(X) else X, *rest)


def _numbers(y: np.ndarray) -> np.ndarray:
    """Return objects as floats, None as NaN, and other outputs as they are."""
    return y.astype(np.float64) if y.dtype.kind == "O" else y


def _function_values(X: Outputs, grid: np.ndarray | None, takes_channels: bool) -> tuple[Outputs, np.ndarray | None]:
    """Return scikit-fda functions as their values at the points of the training functions, and these points."""
    if not is_fdata(X):
        if not takes_channels and has_shape(X) and len(X.shape) == 3 and X.shape[0]:
            X = namespace(X).reshape(X, (X.shape[0], -1))  # curves with channels, as those of scikit-fda
        return X, None
    curves = input_curves(X, grid)
    return curves.values if takes_channels else curves.values.reshape(len(curves.values), -1), curves.grid


def _checked(X: Array, ndim: tuple[int, ...], takes_missing: bool) -> Array:
    """Return inputs as a finite floating array; NaN is allowed if the kernel accepts missing groups."""
    if X.ndim not in ndim and len(ndim) > 1 and is_host(X):
        raise ValueError(f"X must have shape (n, d) or (n, m, c). Got {tuple(X.shape)} instead.")
    check = check_finite if is_host(X) else lambda X, name: check_array(X, name, ndim=ndim)
    return _with_gaps(check, X, "X", takes_missing and X.ndim == 2 and not is_sparse(X))


def _with_gaps(check: Callable[[Array, str], Array], values: Array, name: str, takes_gaps: bool) -> Array:
    """Return checked values, which may be NaN if gaps are accepted."""
    xp = namespace(values)
    if takes_gaps and xp.isdtype(values.dtype, "real floating") and bool(xp.any(xp.isnan(values))):
        check(xp.where(xp.isnan(values), xp.zeros_like(values), values), name)
        return values
    return check(values, name)


def _names_noted(owner: BaseEstimator, X: Array) -> tuple[str, ...] | None:
    """Return the names of the columns; note the number of those of arrays that scikit-learn has not seen."""
    if not is_host(X):
        vars(owner)["n_features_in_"] = int(X.shape[1])
        vars(owner).pop("feature_names_in_", None)
    names = vars(owner).get("feature_names_in_")
    return None if names is None else tuple(names)


def _library(X: Array) -> str:
    return "numpy" if is_host(X) else str(namespace(X).__name__)


def _advised(text: str, data: Sequence[Outputs]) -> str | None:
    """Return an error of scikit-learn with advice added, ``None`` if its text says enough."""
    names = ("X", "y")[: len(data)]
    if "could not convert" in text:
        found = [told for name, part in zip(names, data, strict=True) if (told := _text_columns(name, part))]
        return found[0] if found else f"{' and '.join(names)} must hold numbers: {text}."
    if text.startswith("Input y contains NaN"):
        y = _as_floats(data[1])
        lacking = np.flatnonzero(np.isnan(y.reshape(len(y), -1)).any(axis=1))
        return (
            f"Input y contains NaN in {len(lacking)} of {len(y)} samples, the first at index {lacking[0]}. Drop these "
            "samples, or fit each output on those that have it. If the outputs of a sample are a curve, NaN is a gap "
            "that FunctionalRegressorCV takes."
        )
    if text.startswith("Found array with dim") and np.ndim(data[0]) > 2:
        return (
            f"{text} Curves with channels are arrays (n, m, c). For fields on a rectangle use FieldRegressor; "
            "X.reshape(len(X), -1) makes vectors."
        )
    return None


def _text_columns(name: str, part: Any) -> str:
    """Return a message that names the columns of a data frame that are not numbers; empty if there are none."""
    examples = {}
    for column, values in columns_of(part):
        for value in values:
            try:
                float(value if value is not None else math.nan)
            except (TypeError, ValueError):
                examples[column] = value
                break
    if not examples:
        return ""
    columns = ", ".join(f"{column!r} (such as {value!r})" for column, value in examples.items())
    encode = "Encode text, by OneHotEncoder in a ColumnTransformer or by fenchel.estimators.TableRegressor"
    advice = encode if name == "X" else "Convert them to numbers"
    return f"{name} must hold numbers. These columns do not: {columns}. {advice}, or drop them."


def _as_floats(y: Outputs) -> np.ndarray:
    """Return outputs as floats; raise if they are not numbers."""
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"y must hold numbers: {error}.") from error


def is_regular(y: Outputs) -> bool:
    """Whether a list holds numbers, or rows of numbers of equal length."""
    with suppress(ValueError):
        return np.asarray(y).dtype.kind in "biuf"
    return False
