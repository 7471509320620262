"""Weighted sum of kernels, one per group of columns; groups may be missing for some samples."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, as_index, as_like, host, namespace
from fenchel.kernels.columns import Columns, Part
from fenchel.kernels.fused import DistanceTerm, distance_terms
from fenchel.kernels.scalar import Gaussian, Laplacian, Linear
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.tags import KernelTags

__all__ = ["MultipleKernel"]

Group = tuple[str, ScalarKernel, Columns | None]


class MultipleKernel(ScalarKernel):
    r"""Weighted sum of kernels, one for each group of columns: a modality, a channel, a representation.

    .. math:: k(x, z) = \sum_m \frac{w_m}{s_m} k_m(x_{J_m}, z_{J_m}).

    A sample may lack a group, with NaN in all columns of the group. With :math:`o_m(x)` equal to 1 if the group is
    observed and 0 if it is missing, each term becomes :math:`o_m(x) \, o_m(z) \, k_m(x, z)`.

    Parameters
    ----------
    groups : list of (str, ScalarKernel, columns)
        Name, kernel and columns of each group. Columns are a slice, a list of int or a list of column names, as for
        ``Part``; ``None`` means all columns.
    weights : array of shape (M,) or None, default=None
        Non-negative weights :math:`w`, not all zero; ``None`` weighs all groups equally.
        ``fenchel.learn_kernel_weights`` learns them.
    scales : array of shape (M,) or None, default=None
        Positive scales :math:`s`; ``None`` takes the mean of :math:`k_m(x, x)` over the training samples that have the
        group, so that weights do not depend on the units of a kernel.
    normalize : bool, default=False
        Whether to divide the kernel of incomplete samples by :math:`\sqrt{\omega(x) \, \omega(z)}`, where
        :math:`\omega(x) = \sum_m w_m o_m(x) / \sum_m w_m` is the share of the groups that a sample has.

    Notes
    -----
    A missing group adds nothing to the kernel, so samples are compared by the groups that both have. Each term is a
    kernel times the kernel :math:`o_m(x) \, o_m(z)`, and ``normalize`` multiplies the matrix by a diagonal matrix on
    both sides: the sum remains positive semidefinite.

    A model is a sum of functions, one per group, and by default a missing group drops its function from the sum. This
    is right if the groups carry different information. If they carry the same information, ``normalize=True`` lets the
    observed groups stand in for the missing ones. A sample without any group is predicted as zero, or as the mean of
    the outputs with ``center=True``.

    Data-dependent parameters of the kernels are computed from the samples that have the group.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, Linear, MultipleKernel
    >>> X = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0], [np.nan, np.nan, 1.0]])
    >>> kernel = MultipleKernel([("place", Gaussian(1.0), [0, 1]), ("size", Linear(), [2])], weights=[0.5, 0.5])
    >>> kernel(X).round(2)
    array([[1.7 , 0.18, 0.6 ],
           [0.18, 0.5 , 0.  ],
           [0.6 , 0.  , 0.3 ]])
    """

    def __init__(
        self,
        groups: Sequence[Group],
        weights: ArrayLike | None = None,
        scales: ArrayLike | None = None,
        normalize: bool = False,
    ) -> None:
        self.groups = groups
        self.weights = weights
        self.scales = scales
        self.normalize = normalize

    def validate(self) -> "MultipleKernel":
        """Raise if the groups, weights or scales are invalid."""
        for name, part in zip(self.names, self.parts(), strict=True):
            if not isinstance(name, str):
                raise TypeError(
                    f"Each entry of the 'groups' parameter of MultipleKernel must begin with a name. Got {name!r}."
                )
            part.validate()
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"The 'groups' parameter of MultipleKernel must have distinct names. Got {self.names}.")
        weights = self._numbers("weights", self.weights)
        if weights is not None and not np.any(weights > 0):
            raise ValueError("The 'weights' parameter of MultipleKernel must not be zero for all groups.")
        scales = self._numbers("scales", self.scales)
        if scales is not None and not np.all(scales > 0):
            raise ValueError(f"The 'scales' parameter of MultipleKernel must be positive. Got {self.scales!r}.")
        return super().validate()

    @property
    def names(self) -> list[str]:
        """Names of the groups."""
        is_list = isinstance(self.groups, list | tuple) and len(self.groups) > 0
        if not is_list or not all(isinstance(group, list | tuple) and len(group) == 3 for group in self.groups):
            raise TypeError(
                "The 'groups' parameter of MultipleKernel must be a list of (name, kernel, columns). "
                f"Got {self.groups!r} instead."
            )
        return [group[0] for group in self.groups]

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        known = self.known(X if Z is None else None)
        left = known.seen(X, "X")
        right = left if Z is None else known.seen(Z, "Z")
        total = 0.0
        for part, size, (x, a), (z, b) in zip(known.parts(), known.sizes, left, right, strict=True):
            if size > 0:
                total = total + (a[:, None] * b[None, :]) * part.kernel(x, None if Z is None else z)
        return total

    @property
    def tags(self) -> KernelTags:
        """Those of all kernels; inputs are points, and a group may be missing."""
        tags = [part.tags for part in self.parts()]
        bound = math.inf if self.scales is None else self._diag_bound([one.diag_bound for one in tags])
        return replace(reduce(and_, tags), is_pairwise=False, takes_objects=False, takes_missing=True, diag_bound=bound)

    def _diag_bound(self, bounds: list[float]) -> float:
        values, used = np.array(bounds) / np.asarray(self.scales), self.sizes > 0
        if self.normalize:  # a sample may have only one of the groups
            return float(np.sum(self.sizes)) * float(np.max(values[used]))
        return float(self.sizes[used] @ values[used])

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        known, total = self.known(X), 0.0
        for part, (x, a) in zip(known.parts(), known.seen(X, "X"), strict=True):
            total = total + a * a * part.kernel.diag(x)
        return total

    def resolve(self, X: Array, weights: Array | None = None) -> "MultipleKernel":
        """Return the kernel with data-dependent parameters set from the samples that have each group."""
        self.check()
        groups, means = [], []
        for name, part in zip(self.names, self.parts(), strict=True):
            x, observed = _filled(part.image(X, "X"), name)
            rows = as_index(np.flatnonzero(observed), X)
            counts = None if weights is None else namespace(weights).take(weights, rows, axis=0)
            some = namespace(x).take(x, rows, axis=0)
            if not np.any(observed):
                raise ValueError(f"The group {name!r} of MultipleKernel is missing for all samples.")
            kernel = part.kernel.resolve(some, counts)
            groups.append((name, kernel, part.columns))
            values = host(kernel.diag(some)).astype(np.float64)
            means.append(float(np.average(values, weights=None if counts is None else host(counts))) or 1.0)
        scales = means if self.scales is None else self.scales
        return self.ready(groups=groups, weights=self.sizes.tolist(), scales=scales)

    def terms(self, X: Array) -> tuple[list[Array], np.ndarray]:
        """Return the matrices of the groups divided by their scales, zero where missing, and the observed groups.

        There is one (n, n) matrix per group; the mask of samples that have each group is (n, M).
        """
        known = self.known(X)
        grams, seen = [], []
        for name, part, scale in zip(known.names, known.parts(), np.asarray(known.scales), strict=True):
            x, observed = _filled(part.image(X, "X"), name)
            mask = as_like(observed.astype(np.float64), x)
            grams.append(part.kernel(x) * (mask[:, None] * mask[None, :]) / float(scale))
            seen.append(observed)
        return grams, np.stack(seen, axis=1)

    def with_(self, groups: Sequence[Group], weights: Array, scales: Array) -> "MultipleKernel":
        """Return the kernel with other groups, weights and scales."""
        return MultipleKernel(groups, weights, scales, self.normalize)

    def named(self, names: Sequence[str]) -> "MultipleKernel":
        """Return the kernel with its column names replaced by their positions in ``names``."""
        parts = [part.named(names) for part in self.parts()]
        groups = [(name, part.kernel, part.columns) for name, part in zip(self.names, parts, strict=True)]
        return self.with_(groups, self.weights, self.scales)

    def features(self, X: Array) -> Array | None:
        """Return the features of all groups side by side."""
        if not self.tags.has_features:
            return None
        known = self.known(X)
        pairs = zip(known.parts(), known.seen(X, "X"), strict=True)
        return namespace(X).concat([a[:, None] * part.kernel.features(x) for part, (x, a) in pairs], axis=1)

    @property
    def sizes(self) -> np.ndarray:
        """The weights as an array."""
        return np.ones(len(self.groups)) / len(self.groups) if self.weights is None else np.asarray(self.weights)

    def parts(self) -> list[Part]:
        """Return the kernels on their columns."""
        self.names  # noqa: B018  # raises if the groups are invalid
        return [Part(kernel, slice(None) if columns is None else columns) for _, kernel, columns in self.groups]

    def seen(self, X: Array, name: str) -> list[tuple[Array, Array]]:
        """Return the inputs that each kernel sees, and its factor for each sample, (n,)."""
        views = [_filled(part.image(X, name), group) for group, part in zip(self.names, self.parts(), strict=True)]
        observed = np.stack([seen for _, seen in views], axis=1)
        factors = np.sqrt(self.sizes / np.asarray(self.scales)) * observed
        if self.normalize:
            factors = factors * observed_scale(observed, self.sizes / np.sum(self.sizes))[:, None]
        return [(x, as_like(factors[:, m], x)) for m, (x, _) in enumerate(views)]

    def known(self, X: Array | None) -> "MultipleKernel":
        """Return the kernel with its scales, from the training sample if they were not given; ``None`` is no sample."""
        self.check()
        if self.scales is not None:
            return self
        if X is None:
            raise ValueError(
                "The scales of MultipleKernel depend on the training sample: call kernel.resolve(X_train) first, then "
                "the kernel it returns on (X, Z)."
            )
        return self.resolve(X)

    def _numbers(self, name: str, value: ArrayLike | None) -> np.ndarray | None:
        """Return a parameter that has one number per group, or raise."""
        if value is None:
            return None
        values = np.asarray(value, dtype=np.float64)
        if values.shape != (len(self.groups),) or not np.all(np.isfinite(values) & (values >= 0)):
            raise ValueError(
                f"The {name!r} parameter of MultipleKernel must hold {len(self.groups)} finite non-negative numbers. "
                f"Got {value!r} instead."
            )
        return values

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [
            cls([("first", Gaussian("median"), [0]), ("all", Laplacian(0.5), None)]),
            cls([("first", Linear(), slice(0, 1)), ("rest", Gaussian(0.3), slice(1, None))], [0.2, 3.0], [2.0, 1.0]),
            cls([("a", Gaussian(1.0), [0]), ("b", Linear(), [-1])], [0.0, 1.0]),
        ]


@distance_terms.register
def _(kernel: MultipleKernel, X: Array) -> list[DistanceTerm] | None:
    if bool(namespace(X).any(namespace(X).isnan(X))):
        return None
    terms: list[DistanceTerm] = []
    known = kernel.known(X)
    for part, factor in zip(known.parts(), known.sizes / np.asarray(known.scales), strict=True):
        found = distance_terms(part.kernel, part.image(X, "X"))
        if found is None:
            return None
        terms += [replace(term, weight=float(factor) * term.weight) for term in found]
    return terms


def observed_scale(observed: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(share of the groups that each sample has), (n,); 1 for a sample without groups."""
    mass = observed @ shares
    scale: np.ndarray = 1 / np.sqrt(np.where(mass > 0, mass, 1.0))
    return scale


def _filled(x: Array, name: str) -> tuple[Array, np.ndarray]:
    """Return the columns of a group with zeros where it is missing, and the mask of samples that have it."""
    xp = namespace(x)
    if not xp.isdtype(x.dtype, "real floating"):
        return xp.astype(x, xp.float64), np.ones(x.shape[0], dtype=bool)
    absent = xp.isnan(x)
    if not bool(xp.any(absent)):
        return x, np.ones(x.shape[0], dtype=bool)
    missing = xp.all(absent, axis=1)
    partly = host(xp.any(absent, axis=1) & ~missing)
    if np.any(partly):
        raise ValueError(
            f"A group of MultipleKernel must be missing as a whole or not at all. The group {name!r} has NaN in some "
            f"of its columns, first at sample {int(np.flatnonzero(partly)[0])}. Impute them or make the groups smaller."
        )
    return xp.where(missing[:, None], xp.zeros_like(x), x), ~host(missing)
