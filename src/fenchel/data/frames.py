"""Data frames of any library: the names of their columns, their index, and predictions as frames."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import wraps
from typing import Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator

from fenchel._array import Array, Inputs, Outputs, has_shape, host
from fenchel._check import Options, check_parameter, require
from fenchel.data.fdata import classes_of, is_fdata
from fenchel.exceptions import page_of_class

__all__: list[str] = []

Predict = TypeVar("Predict", bound=Callable[..., Any])
_CONTAINERS = Options(("default", "pandas", "polars"))
_NAMES: dict[str, Callable[[Any], Sequence[object]]] = {  # of the columns of a frame, by the library that defines it
    "pandas": lambda frame: frame.columns.tolist(),
    "polars": lambda frame: frame.columns,
    "pyarrow": lambda frame: frame.column_names,
}


def column_names(values: object) -> tuple[object, ...] | None:
    """Return the names of the columns of a frame, or the name of a series; ``None`` if there are none."""
    for library, names in _NAMES.items():
        if kinds := classes_of(values, library):
            found = names(values) if kinds & {"DataFrame", "Table"} else [getattr(values, "name", None) or None]
            return None if None in found else tuple(map(_label, found))
    return None


def columns_of(values: object) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the names and the entries of the columns of a frame; nothing for other data."""
    if "DataFrame" in classes_of(values, "pandas"):
        yield from ((str(name), column) for name, column in cast(Any, values).items())
    elif "DataFrame" in classes_of(values, "polars"):
        yield from ((column.name, column) for column in cast(Any, values).iter_columns())
    elif "Table" in classes_of(values, "pyarrow"):
        table = cast(Any, values)
        yield from ((name, table[name].to_pylist()) for name in table.column_names)


def without_sparse_columns(values: Outputs) -> Outputs:
    """Return a pandas frame with sparse columns as one with dense columns, and other data as they are."""
    if "DataFrame" not in classes_of(values, "pandas"):
        return values
    kinds = {name: kind.subtype for name, kind in values.dtypes.items() if hasattr(kind, "fill_value")}
    return values.astype(kinds) if kinds else values


def index_of(values: object) -> Any:
    """Return the index of a pandas frame or series, ``None`` for other data."""
    return values.index if classes_of(values, "pandas") and hasattr(values, "index") else None


def plain_index(index: Any) -> tuple[np.ndarray | list[object], list[object]] | None:
    """Return the labels and the names of a pandas index, in types that files hold; ``None`` of ``None``."""
    if index is None:
        return None
    labels = np.asarray(index) if index.nlevels == 1 else np.empty(0, dtype=object)
    return labels if labels.dtype.kind in "biufmM" else [_label(label) for label in index], list(index.names)


def index_from(plain: tuple[np.ndarray | list[object], list[object]] | None) -> Any:
    """Return the pandas index with these labels and names; ``None`` of ``None``, and where pandas is not installed."""
    if plain is not None:
        with suppress(ImportError):
            return require("pandas", extra="pandas").Index(plain[0]).set_names(plain[1])
    return None


def frame_of(values: np.ndarray, container: str, names: Sequence[object] | None, index: Any = None) -> Any:
    """Return numbers (n,) as a series and rows of numbers as a frame; ``None`` names columns ``y0`` and so on."""
    library = require(container, extra=container)
    if container == "polars":
        if values.ndim == 1:
            return library.Series(str(_name(names) or "y"), values)
        return library.DataFrame(values, schema=list(map(str, _named(names, values.shape[1]))))
    if values.ndim == 1:
        return library.Series(values, index, name=_name(names))
    return library.DataFrame(values, index, _named(names, values.shape[1]))


class FramesOutMixin:
    """Estimator whose predictions can be asked for as data frames."""

    def set_output(self, *, predict: str | None = None, transform: str | None = None) -> Self:
        """Choose the container of predictions.

        Parameters
        ----------
        predict : {"default", "pandas", "polars"} or None, default=None
            ``"default"`` returns arrays. The others return a frame, or a series if outputs are numbers: columns have
            the names that the training outputs had, rows the index of X if it is a pandas frame. ``None`` changes
            nothing.
        transform : None
            There is no ``transform``: any other value raises. Scikit-learn's pipelines pass it to transformers alone.

        Returns
        -------
        self : estimator
            The estimator. ``clone`` keeps the container, as do pipelines and searches around the estimator.
        """
        name = type(self).__name__
        if transform is not None:
            raise ValueError(
                f"{name} has no transform. Got set_output(transform={transform!r}). Frames of predictions are "
                f"set_output(predict='pandas') or set_output(predict='polars')."
            )
        if predict is not None:
            check_parameter(f"{name}.set_output", "predict", predict, _CONTAINERS)
            kept = vars(self).get("_sklearn_output_config", {})  # the attribute that scikit-learn's clone copies
            self._sklearn_output_config = kept | {"predict": predict}
        return self

    @property
    def _doc_link_template(self) -> str:
        """The link of scikit-learn's HTML box."""
        return page_of_class()

    @property
    def _doc_link_module(self) -> str:
        return "fenchel" if self._doc_link_template else ""

    def _with_arrays(self) -> Self:
        """Return the estimator, or a copy whose predictions are arrays."""
        if "_sklearn_output_config" not in vars(self):
            return self
        plain = copy(self)
        del plain._sklearn_output_config
        return plain

    def _output_names(self, *args: Any, **kwargs: Any) -> Sequence[object] | None:
        """Return the names of the columns of a prediction, from the further arguments of ``predict``."""
        inner = vars(self).get("best_estimator_", vars(self).get("estimator_"))
        names = inner._output_names(*args, **kwargs) if isinstance(inner, FramesOutMixin) else None
        return vars(self).get("output_names_") if names is None else names


def in_container(predict: Predict) -> Predict:
    """Decorate ``predict`` so that it returns the container that ``set_output`` asks for."""

    @wraps(predict)
    def predict_in_container(self: FramesOutMixin, X: Inputs, *args: Any, **kwargs: Any) -> Any:
        values = predict(self, X, *args, **kwargs)
        container = vars(self).get("_sklearn_output_config", {}).get("predict", "default")
        if container == "default" or is_lazy(values):
            return values
        return frame_of(_rows(values, container), container, self._output_names(*args, **kwargs), index_of(X))

    return cast(Predict, predict_in_container)


def with_arrays(model: BaseEstimator) -> Any:
    """Return a model whose predictions are arrays: itself, or a copy of one that predicts frames."""
    return model._with_arrays() if isinstance(model, FramesOutMixin) else model


def is_lazy(values: object) -> bool:
    """Whether values are a Dask array, which stays on the workers."""
    return bool(classes_of(values, "dask"))


def _rows(values: Outputs, container: str) -> Array:
    """Return predictions as numbers or rows of numbers; raise if they are neither."""
    if classes_of(values, "pandas") or classes_of(values, "polars"):
        return values.to_numpy()
    array = values.data_matrix[..., 0] if is_fdata(values) and hasattr(values, "data_matrix") else values
    if not has_shape(array) or len(array.shape) > 2:
        what = f"shape {tuple(array.shape)}" if has_shape(array) else f"a {type(values).__name__}"
        raise ValueError(
            f"A frame needs predictions that are numbers or rows of numbers. Got {what}. Use "
            f"set_output(predict='default') instead of {container!r}."
        )
    return host(array)


def band_frame(
    parts: Mapping[str, np.ndarray], container: str, names: Sequence[object] | None, index: Any = None
) -> Any:
    """Return arrays (n,) or (n, q) as one frame, where the columns of each output stand together.

    The names of the parts, such as ``"_lower"``, follow that of the output.
    """
    rows = {end: values.reshape(len(values), -1) for end, values in parts.items()}
    width = next(iter(rows.values())).shape[1]
    known = _named(names, width) if names is not None or width > 1 else ["y"]
    columns = {f"{name}{end}": values[:, k] for k, name in enumerate(known) for end, values in rows.items()}
    library = require(container, extra=container)
    return library.DataFrame(columns) if container == "polars" else library.DataFrame(columns, index)


def _name(names: Sequence[object] | None) -> Any:
    return names[0] if names is not None and len(names) == 1 else None


def _named(names: Sequence[object] | None, width: int) -> list[object]:
    return [f"y{k}" for k in range(width)] if names is None or len(names) != width else list(names)


def _label(name: object) -> object:
    """Return a name that can be saved: a string or a number, other labels as text."""
    return name if isinstance(name, str | int | float | tuple) else str(name)
