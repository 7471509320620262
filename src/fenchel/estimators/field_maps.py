"""Maps between fields on grids: through the coordinates of whole fields, or from patches to points."""

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import LeaveOneGroupOut

from fenchel._array import Array, as_index, as_like, host, namespace
from fenchel._progress import evenly
from fenchel._statistics import ranked
from fenchel.approximations import Nystrom
from fenchel.data.content import contents
from fenchel.estimators.field_bases import FieldBasis, basis_of, channel_units, completed, in_units
from fenchel.estimators.regression_cv import OperatorKernelRegressorCV
from fenchel.exceptions import ScaleWarning
from fenchel.kernels import Gaussian, Matern
from fenchel.resample.folds import grouped, whole_folds

__all__: list[str] = []

_WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0)  # widths of the default kernel, in units of the root mean square norm of the inputs
_LAMS = tuple(np.logspace(-11, -1, 11).tolist())
_BLOCK = 4_000_000  # numbers in the fields that are cut into patches at once
# Widths in units of the root mean square norm of patches: Gaussian kernels for smooth maps, Matérn ones for others.
_LOCAL_KERNELS = (
    *(Gaussian(0.5 / width**2) for width in (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)),
    *(Matern(width, nu=2.5) for width in (2.0, 4.0, 8.0)),
)


@dataclass(frozen=True)
class Storey:
    """Size of a search among kernels for patches, and how many of them it passes on."""

    n_positions: int
    n_landmarks: int
    kept: int


# Each storey costs about as much as all before; neighbours say nearly the same, and landmarks bound what is learned.
_FIRST_LOOK = (Storey(1000, 150, 1),)
SECOND_LOOK = (Storey(1000, 150, 1), Storey(10_000, 600, 1))
STOREYS = (Storey(1000, 150, 3), Storey(5000, 400, 1), Storey(25_000, 1000, 1))


class FieldMap(Protocol):
    """What a fitted regression between fields is: a map, the estimator inside, and what it sees of a field."""

    @property
    def estimator(self) -> BaseEstimator: ...

    @property
    def neighbourhood(self) -> "Neighbourhood | None": ...

    def predict(self, fields: Array) -> Array:
        """Return the images (n, *grid, channels) of fields (n, *grid, channels)."""


@dataclass(frozen=True)
class GlobalMap:
    """A regression between the coordinates of whole fields."""

    inputs: FieldBasis
    outputs: FieldBasis
    unit: float  # root mean square norm of the coordinates of the inputs
    estimator: BaseEstimator
    shape: tuple[int, ...]  # of an output
    neighbourhood: None = None  # it sees whole fields

    def predict(self, fields: Array) -> Array:
        """Return the images of fields."""
        values = self.outputs.decode(self.estimator.predict(self.inputs.encode(as_rows(fields)) / self.unit))
        return namespace(values).reshape(values, (fields.shape[0], *self.shape))


@dataclass(frozen=True)
class Neighbourhood:
    """The points of a grid within reach of one."""

    reach: int
    is_periodic: bool  # otherwise the values at the border are continued
    is_cross: bool = True  # the points along each axis alone, otherwise the whole box

    def steps(self, n_axes: int) -> list[tuple[int, ...]]:
        """Return the steps to the points."""
        steps = itertools.product(range(-self.reach, self.reach + 1), repeat=n_axes)
        return [step for step in steps if not self.is_cross or np.count_nonzero(step) <= 1]

    def patches(self, fields: Array) -> Array:
        """Return the values of fields (n, *grid, c) around each point, (n, points, values)."""
        xp, parts = namespace(fields), []
        for step in self.steps(fields.ndim - 2):
            part = fields
            for axis, (move, size) in enumerate(zip(step, fields.shape[1:-1], strict=True), start=1):
                places = np.arange(size) + move
                places = places % size if self.is_periodic else np.clip(places, 0, size - 1)
                part = xp.take(part, as_index(places, part), axis=axis) if move else part
            parts.append(part)
        patches = xp.concat(parts, axis=-1)
        return xp.reshape(patches, (patches.shape[0], -1, patches.shape[-1]))


@dataclass(frozen=True)
class LocalMap:
    """A regression from the patch around a point to the value there, the same at all points."""

    neighbourhood: Neighbourhood
    unit: Array  # of the values of each channel of the inputs, such that the root mean square norm of patches is one
    estimator: BaseEstimator
    n_channels: int  # of the outputs
    first: FieldMap | None = None  # its images are further channels of the inputs

    def predict(self, fields: Array) -> Array:
        """Return the images of fields."""
        xp, inputs = namespace(fields), joined_channels(fields, self.first) / as_like(self.unit, fields)
        parts = (self.neighbourhood.patches(inputs[block]) for block in _blocks(inputs))
        rows = (xp.reshape(part, (-1, part.shape[-1])) for part in parts)
        values = xp.concat([self.estimator.predict(each) for each in rows], axis=0)
        return xp.reshape(values, (*fields.shape[:-1], self.n_channels))


def as_rows(fields: Array) -> Array:
    """Return one row of values for each field."""
    return namespace(fields).reshape(fields, (fields.shape[0], -1))


def joined_channels(fields: Array, first: FieldMap | None) -> Array:
    """Return fields with the images of a map as further channels."""
    return fields if first is None else namespace(fields).concat([fields, first.predict(fields)], axis=-1)


@dataclass(frozen=True)
class GlobalPlan:
    """How whole fields become coordinates, and what is fitted between these."""

    input_basis: str
    input_components: float | None
    output_basis: str
    output_components: float | None
    scale: bool
    estimator: BaseEstimator | None  # None: the width of a kernel is searched for

    def fit(self, X: Array, Y: Array, sample_weight: np.ndarray | None, groups: np.ndarray | None = None) -> GlobalMap:
        """Return the map fitted to fields (n, *grid, channels); groups are held out together."""
        xp = namespace(X)
        counts = as_like(np.ones(X.shape[0]) if sample_weight is None else sample_weight, X)
        units = [channel_units(as_rows(each), counts, each.shape[-1] if self.scale else 1) for each in (X, Y)]
        rows, outputs = in_units(as_rows(X), units[0]), completed(in_units(as_rows(Y), units[1]), counts)
        inputs = basis_of(rows, counts, X.shape[1:], self.input_basis, self.input_components)
        basis = basis_of(outputs, counts, Y.shape[1:], self.output_basis, self.output_components)
        encoded, targets = inputs.encode(rows), basis.encode(outputs)
        unit = float(xp.sqrt(counts @ xp.sum(encoded**2, axis=1) / xp.sum(counts))) or 1.0
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if self.estimator is None:
            estimator = _searched(encoded / unit, targets, sample_weight, groups)
        else:
            labels = grouped(self.estimator, groups, np.arange(X.shape[0]))
            estimator = clone(self.estimator).fit(encoded / unit, targets, **weights, **labels)
        given = replace(inputs, unit=units[0]), replace(basis, unit=units[1])
        return GlobalMap(*given, unit, estimator, tuple(Y.shape[1:]))


@dataclass(frozen=True)
class LocalPlan:
    """Which patches are learned from, at how many points, and what else is known there."""

    neighbourhood: Neighbourhood
    storeys: tuple[Storey, ...] = _FIRST_LOOK
    after: GlobalPlan | None = None  # its held-out images are further channels of the inputs
    noise: float = 0.0  # in the inputs, in units of the deviation of their channels

    def fit(self, X: Array, Y: Array, sample_weight: np.ndarray | None, groups: np.ndarray | None = None) -> LocalMap:
        """Return the map fitted to fields (n, *grid, channels) on one grid.

        Positions of one field are held out together, and fields of one group.
        """
        xp, ranks = namespace(X), contents(as_rows(Y), as_rows(X))
        first = None
        if self.after is not None:
            first = self.after.fit(X, Y, sample_weight, groups)
            X = xp.concat([X, _held_out_images(self.after, first, X, Y, sample_weight, ranks, groups)], axis=-1)
        unit = _unit_of_patches(X, self.neighbourhood)
        X = (
            X + as_like(self._noise(ranks, X.shape), X) * unit * (self.noise / _n_values(X, self.neighbourhood) ** 0.5)
            if self.noise
            else X
        )
        kernels, estimator = list(_LOCAL_KERNELS), None
        for storey in evenly(self.storeys, len(self.storeys)):
            patches, values, fields = self._positions(X / unit, Y, ranks, storey.n_positions)
            weights = {} if sample_weight is None else {"sample_weight": sample_weight[fields]}
            thin = Nystrom(storey.n_landmarks) if len(fields) > 2 * storey.n_landmarks else None
            if len(kernels) > 1:
                options: dict[str, Any] = {"lams": _LAMS, "losses": ["square"], "center": True, "approximation": thin}
                labels = fields if groups is None else groups[fields]
                folds = min(5, len(np.unique(labels)))
                searches = [OperatorKernelRegressorCV(kernel, cv=folds, **options) for kernel in kernels]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ScaleWarning)  # without noise the smallest lam may be the best
                    searches = [each.fit(patches, values, groups=labels, **weights) for each in searches]
                order = ranked([float(np.nanmin(each.cv_errors_)) for each in searches])[: storey.kept]
                estimator, kernels = searches[order[0]].best_estimator_, [kernels[place] for place in order]
            else:
                estimator = clone(estimator).set_params(approximation=thin).fit(patches, values, **weights)
        return LocalMap(self.neighbourhood, unit, estimator, int(Y.shape[-1]), first)

    def _noise(self, ranks: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return white noise of size one, the same for the same fields in any order."""
        drawn = np.random.default_rng(0).standard_normal(shape)
        return np.asarray(drawn[np.argsort(np.argsort(ranks, kind="stable"))])

    def _positions(self, X: Array, Y: Array, ranks: np.ndarray, most: int) -> tuple[Array, Array, np.ndarray]:
        """Return patches, values and fields at some positions of each field, others in the next one by content."""
        xp, (n, size) = namespace(X), (X.shape[0], int(np.prod(X.shape[1:-1])))
        count = min(size, -(-most // n))
        order = np.random.default_rng(0).permutation(size)
        places = order[(np.argsort(np.argsort(ranks, kind="stable"))[:, None] * count + np.arange(count)) % size]
        parts = []
        for block in _blocks(X):
            chosen = np.arange(len(places[block]))[:, None] * size + places[block]
            rows = xp.reshape(self.neighbourhood.patches(X[block]), (chosen.shape[0] * size, -1))
            parts.append(xp.take(rows, as_index(chosen.ravel(), X), axis=0))
        chosen = (np.arange(n)[:, None] * size + places).ravel()
        values = xp.take(xp.reshape(Y, (n * size, -1)), as_index(chosen, Y), axis=0)
        is_seen = np.flatnonzero(~np.any(np.isnan(host(values)), axis=1))
        kept = as_index(is_seen, X)
        return xp.take(xp.concat(parts), kept, axis=0), xp.take(values, kept, axis=0), is_seen // count


def _held_out_images(
    plan: GlobalPlan,
    fitted: GlobalMap,
    X: Array,
    Y: Array,
    sample_weight: np.ndarray | None,
    ranks: np.ndarray,
    groups: np.ndarray | None,
) -> Array:
    """Return the image of each field under the map that is fitted, with the same parameters, without its fold."""
    if plan.estimator is None:
        plan = replace(plan, estimator=fitted.estimator.best_estimator_)
    xp, images = namespace(X), np.zeros(Y.shape)
    for inside, outside in whole_folds(ranks, 5, groups):
        weights = None if sample_weight is None else sample_weight[inside]
        X_in, Y_in, X_out = (
            xp.take(each, as_index(rows, each), axis=0) for each, rows in ((X, inside), (Y, inside), (X, outside))
        )
        images[outside] = host(plan.fit(X_in, Y_in, weights).predict(X_out))
    return as_like(images, X)


def _blocks(fields: Array) -> Iterator[slice]:
    """Yield the places of a few fields at a time."""
    step = max(1, _BLOCK // int(np.prod(fields.shape[1:])))
    yield from (slice(start, start + step) for start in range(0, fields.shape[0], step))


def _unit_of_patches(fields: Array, neighbourhood: Neighbourhood) -> Array:
    """Return the units of channels in which a patch has a root mean square norm of one around its mean."""
    xp, channels = namespace(fields), int(fields.shape[-1])
    ones = as_like(np.ones(fields.shape[0]), fields)
    unit = channel_units(as_rows(fields), ones, channels)
    if unit is None:
        unit = as_like(np.asarray([float(xp.std(fields)) or 1.0]), fields)
    return unit[:channels] * _n_values(fields, neighbourhood) ** 0.5


def _n_values(fields: Array, neighbourhood: Neighbourhood) -> int:
    return int(fields.shape[-1]) * len(neighbourhood.steps(fields.ndim - 2))


def _searched(
    X: Array, Y: Array, sample_weight: np.ndarray | None, groups: np.ndarray | None
) -> OperatorKernelRegressorCV:
    """Return the fitted regressor between coordinates whose Matérn kernel has the best width."""
    options: dict[str, Any] = {
        "lams": _LAMS,
        "losses": ["square"],
        "cv": "loo" if groups is None else LeaveOneGroupOut(),
    }
    models = [OperatorKernelRegressorCV(Matern(width, nu=2.5), **options) for width in _WIDTHS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)  # without noise the smallest lam may be the best
        fitted = list(evenly((model.fit(X, Y, sample_weight, groups) for model in models), len(models)))
    return min(fitted, key=lambda model: float(np.nanmin(model.cv_errors_)))
