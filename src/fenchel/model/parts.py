"""Inputs in parts: each part as columns of one array, and which columns belong together."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import blake2b
from typing import Self

import numpy as np

from fenchel._array import Array, Inputs, Outputs, dense, has_shape, host, is_host, is_sparse, namespace
from fenchel._check import check_finite, not_times, unmasked
from fenchel.data.containers import length
from fenchel.data.frames import column_names
from fenchel.data.functional import Curves, as_curves, brings_points, input_curves, is_fdata
from fenchel.data.pairs import is_pairs
from fenchel.data.parts import is_category, is_missing, parts_of
from fenchel.data.quadrature import trapezoid_weights
from fenchel.exceptions import DataWarning, warn_user
from fenchel.kernels import Completed, Constant, Gaussian, Indicators, ScalarKernel, Standardized
from fenchel.kernels.images import OfImages
from fenchel.kernels.standardized import moments
from fenchel.model.smoothed_curves import CurveSmoother

__all__ = [
    "Blocks",
    "PartForm",
    "blocks_of_parts",
    "default_kernel",
    "encoded",
    "flattened",
    "has_gaps",
    "learned_parts",
]


@dataclass(frozen=True)
class Blocks:
    """What the columns of inputs in parts are."""

    names: tuple[str, ...]  # of the parts
    part: np.ndarray  # (d,), the part of each column
    group: np.ndarray  # (d,), labels of columns with one scale: a channel of curves, a number, a category
    measure: np.ndarray  # (d,), quadrature weights, 1 for numbers
    is_category: np.ndarray  # (d,)
    is_curve: np.ndarray  # (d,)

    def with_indicators(self, columns: Sequence[int]) -> Self:
        """Return the blocks with a further column for each of these, in the same part."""
        return self._appended(np.asarray(columns, dtype=int), self._new_groups(len(columns)))

    def with_levels(self, counts: Sequence[int]) -> Self:
        """Return the blocks with so many indicators at the end in place of each category."""
        columns, groups = np.flatnonzero(self.is_category), self._new_groups(int(np.sum(self.is_category)))
        longer = self._appended(np.repeat(columns, counts), np.repeat(groups, counts))
        return longer._taken(np.flatnonzero(~longer.is_category))

    def moments(self, X: Array, weights: Array | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return centres and scales of the columns, with which the mean square of every part about its centre is 1."""
        mean, deviation = moments(X, weights, False)
        largest = float(np.max(deviation[np.isfinite(deviation)], initial=1.0))
        variance = np.where(np.isfinite(deviation), deviation / largest, 0.0) ** 2
        total = np.bincount(self.group, self.measure * variance)[self.group]
        moving = np.unique(self.group[total > 0])
        part_of = np.zeros(int(self.group.max()) + 1, dtype=int)
        part_of[self.group] = self.part
        count = np.bincount(part_of[moving], minlength=len(self.names))[self.part]
        with np.errstate(divide="ignore"):
            return mean, np.where(total > 0, largest * np.sqrt(total * count / self.measure), np.inf)

    def _new_groups(self, count: int) -> np.ndarray:
        return np.max(self.group, initial=-1) + 1 + np.arange(count)

    def _appended(self, columns: np.ndarray, groups: np.ndarray) -> Self:
        width = len(self.part)
        longer = self._taken(np.concatenate([np.arange(width), columns]))
        for name, values in (("group", groups), ("measure", 1.0), ("is_category", False), ("is_curve", False)):
            getattr(longer, name)[width:] = values
        return longer

    def _taken(self, columns: np.ndarray) -> Self:
        names = ("part", "group", "measure", "is_category", "is_curve")
        return replace(self, **{name: getattr(self, name)[columns] for name in names})


@dataclass(frozen=True)
class PartForm:
    """How one part of the inputs came: new ones are checked against it."""

    name: str
    shape: tuple[int, ...]  # of one sample: (m, c) for curves, (d,) for numbers, () for a category
    grid: np.ndarray | None = None  # points of curves
    names: tuple[object, ...] | None = None  # of the columns of a frame
    levels: np.ndarray | None = None  # of a category, as numbers that name them
    smoother: CurveSmoother | None = None  # of curves with gaps, or observed at points of their own

    @classmethod
    def learn(cls, name: str, values: Outputs) -> tuple[Self, np.ndarray]:
        """Return the form of a part and its columns, (n, width)."""
        if is_category(values):
            codes = _codes(values)
            return cls(name, (), levels=np.unique(codes)), codes[:, None]
        if _is_curves(values):
            curves = as_curves(values, name=_told(name))
            smoother = None if curves.is_complete else CurveSmoother.of(curves)
            grid = curves.grid if smoother is None else smoother.grid
            rows = _values(curves, smoother, name)
            return cls(name, rows.shape[1:], grid, smoother=smoother), rows.reshape(len(rows), -1)
        rows = _numbers(values, name)
        return cls(name, rows.shape[1:], names=column_names(values)), rows

    def read(self, values: Outputs) -> np.ndarray:
        """Return new values of the part as columns, (m, width)."""
        told = _told(self.name)
        if self.levels is not None:
            return self._read_category(values)
        if self.grid is not None:
            if not _is_curves(values):
                raise ValueError(f"{told} must hold curves, as the training inputs did. Got {_kind(values)}.")
            is_function = is_fdata(values) and self.smoother is None
            curves = input_curves(values, self.grid) if is_function else as_curves(values, name=told)
            if math.prod(curves.values.shape[2:]) != self.shape[1]:
                raise ValueError(
                    f"{told} must have {self.shape[1]} channels. Got values of shape {curves.values.shape}."
                )
            if self.smoother is not None and not brings_points(values) and tuple(self.grid[[0, -1]]) != (0.0, 1.0):
                raise ValueError(
                    f"{told} must come with points, as in training: pairs (points, values), or functions of scikit-fda."
                )
            rows = _values(curves, self.smoother, self.name)
            return self._checked(rows.reshape(len(rows), -1))
        if self.names is not None and (found := column_names(values)) is not None:
            if set(found) != set(self.names):
                raise ValueError(f"{told} must have the columns {list(self.names)}. Got {list(found)}.")
            values = values.loc[:, list(self.names)] if hasattr(values, "loc") and np.ndim(values) == 2 else values
        if is_category(values) or _is_curves(values):
            raise ValueError(f"{told} must hold numbers, as the training inputs did. Got {_kind(values)}.")
        return self._checked(_numbers(values, self.name))

    def _read_category(self, values: Outputs) -> np.ndarray:
        told, levels = _told(self.name), self.levels
        assert levels is not None  # of a category
        if not is_category(values) and not all(is_missing(one) for one in list(values)):
            raise ValueError(f"{told} must hold names of categories, as the training inputs did. Got {_kind(values)}.")
        codes = _codes(values)
        new = np.flatnonzero(~np.isin(codes, levels))
        if len(new):
            warn_user(
                f"{told} has {len(np.unique(codes[new]))} categories that no training sample has, such as "
                f"{str(list(values)[new[0]])!r}, in {len(new)} of {len(codes)} samples. Their predictions are as for "
                "none of the known ones.",
                DataWarning,
                "new-category",
            )
        return codes[:, None]

    def _checked(self, rows: np.ndarray) -> np.ndarray:
        if rows.shape[1] != self.width:
            raise ValueError(
                f"{_told(self.name)} must have shape (n, {', '.join(map(str, self.shape))}), as in training. Got "
                f"{rows.shape[1]} numbers for each sample."
            )
        return rows

    @property
    def width(self) -> int:
        """Number of columns."""
        return math.prod(self.shape)  # one for a category, whose shape is ()

    @property
    def _groups(self) -> np.ndarray:
        """Labels from 0 of the columns that share a scale."""
        if self.grid is not None:
            return np.tile(np.arange(self.shape[1]), self.shape[0])
        return np.arange(self.width)

    def blocks(self) -> Blocks:
        """Return what the columns of the part are."""
        groups = self._groups
        measure = np.ones(len(groups))
        if self.grid is not None:
            measure = np.repeat(trapezoid_weights(self.grid) if len(self.grid) > 1 else np.ones(1), self.shape[1])
        is_category, is_curve = (np.full(len(groups), one is not None) for one in (self.levels, self.grid))
        return Blocks((self.name,), 0 * groups, groups, measure, is_category, is_curve)


def learned_parts(X: Inputs) -> tuple[np.ndarray, tuple[PartForm, ...]]:
    """Return inputs in parts as columns of one array, and the form of each part."""
    parts = parts_of(X)
    if not parts:
        raise ValueError("X must have at least one part. Got none.")
    _check_lengths(parts)
    learned = [PartForm.learn(name, part) for name, part in parts.items()]
    return np.hstack([rows for _, rows in learned]), tuple(form for form, _ in learned)


def flattened(X: Inputs, forms: Sequence[PartForm]) -> np.ndarray:
    """Return new inputs in parts as columns of one array; parts are found by name."""
    wanted = [form.name for form in forms]
    is_named = isinstance(X, Mapping) or "DataFrame" in {kind.__name__ for kind in type(X).__mro__}
    if not is_named and len(forms) == 1:
        X, is_named = {wanted[0]: X}, True
    if not is_named:
        raise ValueError(f"X must have the parts {wanted}, as the training inputs did. Got {_kind(X)}.")
    parts = parts_of(X)
    missing, others = [name for name in wanted if name not in parts], [name for name in parts if name not in wanted]
    if missing or others:
        raise ValueError(
            f"X must have the parts {wanted}, as the training inputs did. Missing: {missing}; not known: {others}."
        )
    _check_lengths(parts)
    return np.hstack([form.read(parts[form.name]) for form in forms])


def blocks_of_parts(forms: Sequence[PartForm]) -> Blocks:
    """Return what the columns of all parts are."""
    blocks = [form.blocks() for form in forms]
    sizes = [len(one.part) for one in blocks]
    shifts = np.cumsum([0, *(int(one.group.max()) + 1 for one in blocks)])[:-1]
    rest = ("measure", "is_category", "is_curve")
    return Blocks(
        tuple(form.name for form in forms),
        np.repeat(np.arange(len(forms)), sizes),
        np.concatenate([one.group for one in blocks]) + np.repeat(shifts, sizes),
        *(np.concatenate([getattr(one, name) for one in blocks]) for name in rest),
    )


def encoded(
    X: Array, blocks: Blocks | None, weights: Array | None = None
) -> tuple[Array, Blocks | None, Callable[[ScalarKernel], ScalarKernel]]:
    """Return inputs without gaps and categories, what their columns are, and a kernel of them as one of the inputs.

    Missing numbers become medians and indicators, categories become indicators.
    """
    images = list[OfImages]()
    if has_gaps(X):
        images.append(completion := Completed(Constant()).known(X, weights))
        X, blocks = completion.image(X), blocks and blocks.with_indicators(completion.gaps)
    if blocks is not None and blocks.is_category.any():
        images.append(indicators := Indicators(Constant(), np.flatnonzero(blocks.is_category).tolist()).known(X))
        X, blocks = indicators.image(X), blocks.with_levels([len(levels) for levels in indicators.levels or ()])

    def of_inputs(kernel: ScalarKernel) -> ScalarKernel:
        return reduce(lambda inner, image: image.ready(kernel=inner), reversed(images), kernel)

    return X, blocks, of_inputs


def default_kernel(X: Array, blocks: Blocks, weights: Array | None = None) -> ScalarKernel:
    """Return a Gaussian kernel of inputs in parts, in which all parts have the same weight."""
    X, known, of_inputs = encoded(X, blocks, weights)
    assert known is not None  # as given
    return of_inputs(Standardized(Gaussian("median"), *known.moments(X, weights)))


def has_gaps(X: Array) -> bool:
    """Whether some inputs are missing."""
    return not is_sparse(X) and bool(namespace(X).any(namespace(X).isnan(X)))


def _check_lengths(parts: Mapping[str, Outputs]) -> None:
    lengths = {name: length(part) for name, part in parts.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"The parts of X must have the same number of samples. Got {lengths}.")


def _is_curves(values: Outputs) -> bool:
    """Whether a part holds curves: with their points, or an array (n, m, c)."""
    is_array = has_shape(values) and len(values.shape) == 3
    return is_array or isinstance(values, Curves) or is_fdata(values) or is_pairs(values)


def _values(curves: Curves, smoother: CurveSmoother | None, name: str) -> np.ndarray:
    """Return the values of curves at common points, (n, m, c); smoothed if those of the training curves were."""
    if smoother is not None:
        return smoother(curves)
    if not curves.is_complete:
        raise ValueError(
            f"The curves of {_told(name)} must be complete, as the training curves were. Smooth them to common points "
            "first, or fit to some curves with gaps too."
        )
    values = np.asarray(host(curves.values))
    return values.reshape(len(curves), len(curves.grid), -1)


def _numbers(values: Outputs, name: str) -> np.ndarray:
    """Return numbers as an array (n, d) of floats, NaN where they are missing."""
    told = _told(name)
    values = unmasked(not_times(dense(values), told), told)
    try:
        rows = np.asarray(values if is_host(values) else host(values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{told} must hold numbers, curves (n, m, c) or with their points, or one name of a category for each "
            f"sample: {error}."
        ) from error
    if rows.ndim not in (1, 2) or rows.size == 0:
        raise ValueError(f"{told} must have shape (n,) or (n, d), or (n, m, c) for curves. Got {rows.shape}.")
    check_finite(np.where(np.isnan(rows), 0.0, rows), told)
    return rows.reshape(len(rows), -1)


def _codes(values: Outputs) -> np.ndarray:
    """Return a number below 2^48 for each name, the same for equal names; missing ones share one."""
    names = ["missing" if is_missing(one) else f"={one}" for one in list(values)]
    known = {name: float(int.from_bytes(blake2b(name.encode(), digest_size=6).digest())) for name in set(names)}
    return np.array([known[name] for name in names])


def _told(name: str) -> str:
    return f"X[{name!r}]"


def _kind(values: Outputs) -> str:
    shape = getattr(values, "shape", None)
    return f"a {type(values).__name__}" + (f" of shape {tuple(shape)}" if isinstance(shape, tuple) else "")
