"""Vector outputs: numbers, or rows of numbers."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from sklearn.base import BaseEstimator

from fenchel import representations as representation_room
from fenchel._array import Array, Outputs, host
from fenchel._check import Options, check_parameter
from fenchel.data.frames import column_names
from fenchel.exceptions import DataWarning, IncompatibleError, warn_user
from fenchel.kernels import (
    KernelLike,
    OperatorKernel,
    OperatorLike,
    as_operator_kernel,
    is_pairwise,
)
from fenchel.model.codec import Codec, Task
from fenchel.model.forms import InputForm, OutputForm, vectors_like
from fenchel.model.input_gaps import fills_gaps, is_open, with_medians
from fenchel.model.logarithms import Logarithms
from fenchel.model.sample import Sample
from fenchel.model.spec import part_of
from fenchel.model.target_scale import TargetScale, standardized_targets
from fenchel.representations import Coordinates, Euclidean, Representation

__all__ = ["VectorCodec", "Vectors"]


@dataclass(frozen=True)
class VectorCodec(Codec):
    """Vector outputs, centred and scaled if requested, in the coordinates of a representation."""

    representation: Representation
    moments: TargetScale | None = None

    @property
    def is_returned(self) -> bool:  # type: ignore[override]  # depends on the representation
        """Whether predictions are vectors that can be encoded."""
        return isinstance(self.representation, Euclidean) and self.logarithms is None

    @property
    def logarithms(self) -> Logarithms | None:
        """The logarithms that are the targets, ``None`` for the outputs themselves."""
        return None if self.moments is None else self.moments.logarithms

    def with_logarithms(self, logarithms: Logarithms) -> "VectorCodec":
        """Return the codec with other errors of the same logarithms."""
        return replace(self, moments=replace(cast(TargetScale, self.moments), logarithms=logarithms))

    @property
    def units(self) -> float | np.ndarray:
        """The scale of each output, or of its logarithm."""
        return 1.0 if self.moments is None else self.moments.scale

    def encode(self, y: Outputs) -> Coordinates:
        """Return the outputs in coordinates."""
        return self.representation.encode(y if self.moments is None else self.moments.encode(_columns(y)))

    def decode(self, rows: Array) -> Array:
        """Return the outputs with these coordinates, (n, p)."""
        values = self.representation.decode(rows)
        return values if self.moments is None else self.moments.decode(values)

    def restored(self, rows: Array) -> Array:
        """Return the outputs with these coordinates, (n, p)."""
        values = self.representation.decode(rows)
        return values if self.moments is None else self.moments.restored(values)

    def truth(self, y: Outputs) -> Array:
        """Return the outputs, (n, p)."""
        return _columns(y)

    def gradient(self, rows: Array, at: Array) -> Array:
        """Return derivatives in coordinates as derivatives of the predictions with coordinates ``at``, (n, p)."""
        values = self.representation.decode(rows)
        return values if self.moments is None else values * self.moments.slopes(self.representation.decode(at))


@dataclass(frozen=True)
class Vectors(Task):
    """Vector outputs of vectors, sparse rows or a Gram matrix."""

    kernel: KernelLike
    operator: OperatorLike = None
    representation: Representation | str | None = None
    center: bool | str = False
    scale: bool | str | Logarithms = False

    def sample(self, owner: BaseEstimator, X: Array, y: Outputs, sample_weight: Array | None = None) -> Sample:
        """Return checked data."""
        as_operator_kernel(self.kernel, self.operator).validate()
        names = column_names(y)
        X, y, inputs = InputForm.learn(
            owner,
            X,
            y,
            takes_sparse=True,
            takes_missing=fills_gaps(self.kernel),
            is_open=is_open(self.kernel),
            is_pairwise=is_pairwise(self.kernel),
            takes_gaps=True,
        )
        is_gram = self.unlearned().is_pairwise
        y = vectors_like(y, X, takes_gaps=not is_gram)
        form = OutputForm(tuple(y.shape[1:]), names=names)
        return with_medians(with_values(Sample.of(X, y, inputs, form, sample_weight, is_gram)), self.kernel)

    def unlearned(self) -> Representation:
        """Return the representation of the outputs before it is learned."""
        given = "euclidean" if self.representation is None else self.representation
        return part_of(given, representation_room, "representation", Representation).validate()

    def learn(self, sample: Sample) -> tuple[VectorCodec, Coordinates]:
        """Return the centre, the scales and the representation of the outputs."""
        representation = self.unlearned()
        if representation.is_functional:
            raise IncompatibleError(f"{representation!r} is for curves. Use FunctionalRegressor.")
        moments = self._moments(sample, representation)
        targets = sample.y if moments is None else moments.encode(_columns(sample.y))
        return VectorCodec(representation, moments), representation.learn(targets, sample.weights)

    def kernel_of(self, sample: Sample, codec: Codec) -> OperatorKernel:
        """Return the kernel times the output operator."""
        kernel = as_operator_kernel(sample.kernel_like(self.kernel), self.operator)
        return sample.inputs.named(kernel)

    def _moments(self, sample: Sample, representation: Representation) -> TargetScale | None:
        """Return the centre and the scales of the outputs; ``None`` if neither is requested."""
        logarithms = self.scale if isinstance(self.scale, Logarithms) else None
        options = {"center": self.center, "scale": self.scale if logarithms is None else True}
        for name, value in options.items():
            check_parameter("OperatorKernelRegressor", name, value, Options((False, True, "robust")))
        if not any(options.values()):
            return None
        if not isinstance(representation, Euclidean):
            raise IncompatibleError(
                f"center and scale are for vector outputs. Got {representation!r}. Use center=False and scale=False."
            )
        Y = host(_columns(sample.y))
        Y = Y if logarithms is None else logarithms.encode(Y)
        of = {name: standardized_targets(Y, sample.counts, robust=options[name] == "robust") for name in options}
        zeros, ones = np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        center = of["center"].center if self.center else zeros
        return TargetScale(center, of["scale"].scale if self.scale else ones, logarithms)


def with_values(sample: Sample) -> Sample:
    """Return a sample of vectors without the rows that have no value, whose number a warning tells."""
    seen = ~np.isnan(host(_columns(sample.y)))
    if seen.all():
        return sample
    empty = np.flatnonzero(~seen.any(axis=0))
    if len(empty):
        which = "" if seen.shape[1] == 1 else f" in column {', '.join(map(str, empty))}"
        raise ValueError(f"y must have a value in every column. It contains NaN only{which}. Drop this output.")
    rows = rows_with_values(seen)
    return sample if len(rows) == len(seen) else sample.keeping(rows)


def rows_with_values(seen: np.ndarray) -> np.ndarray:
    """Return which rows have a value, for values (n, p) that were observed or not; a warning tells of the others."""
    rows = np.flatnonzero(seen.any(axis=1))
    if len(rows) < len(seen):
        warn_user(
            f"{len(seen) - len(rows)} of {len(seen)} samples have no output, and are left out. Drop them, or pass what "
            "is known of them.",
            DataWarning,
            "no-output",
        )
    return rows


def _columns(y: Array) -> Array:
    return y[:, None] if y.ndim == 1 else y
