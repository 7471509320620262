"""Vector outputs: numbers, or rows of numbers."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from fenchel import representations as representation_room
from fenchel._array import Array, Outputs, as_like, host
from fenchel._check import Options, check_parameter
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import (
    KernelLike,
    OperatorKernel,
    OperatorLike,
    as_operator_kernel,
    is_pairwise,
    takes_missing,
)
from fenchel.model.codec import Codec, Task
from fenchel.model.forms import InputForm, OutputForm, vectors_like
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
        return isinstance(self.representation, Euclidean)

    @property
    def units(self) -> float | np.ndarray:
        """The scale of each output."""
        return 1.0 if self.moments is None else self.moments.scale

    def encode(self, y: Outputs) -> Coordinates:
        """Return the outputs in coordinates."""
        return self.representation.encode(y if self.moments is None else self.moments.encode(_columns(y)))

    def decode(self, rows: Array) -> Array:
        """Return the outputs with these coordinates, (n, p)."""
        values = self.representation.decode(rows)
        return values if self.moments is None else self.moments.decode(values)

    def truth(self, y: Outputs) -> Array:
        """Return the outputs, (n, p)."""
        return _columns(y)

    def gradient(self, rows: Array) -> Array:
        """Return derivatives in coordinates as derivatives of the outputs, (n, p)."""
        values = self.representation.decode(rows)
        return values if self.moments is None else values * as_like(self.moments.scale, values)


@dataclass(frozen=True)
class Vectors(Task):
    """Vector outputs of vectors, sparse rows or a Gram matrix."""

    kernel: KernelLike
    operator: OperatorLike = None
    representation: Representation | str | None = None
    center: bool | str = False
    scale: bool | str = False

    def sample(self, owner: BaseEstimator, X: Array, y: Outputs, sample_weight: Array | None = None) -> Sample:
        """Return checked data."""
        as_operator_kernel(self.kernel, self.operator).validate()
        X, y, inputs = InputForm.learn(
            owner,
            X,
            y,
            takes_sparse=True,
            takes_missing=takes_missing(self.kernel),
            is_pairwise=is_pairwise(self.kernel),
            multi_output=True,
            y_numeric=True,
        )
        y = vectors_like(y, X)
        return Sample.of(X, y, inputs, OutputForm(tuple(y.shape[1:])), sample_weight, self.is_gram)

    @property
    def is_gram(self) -> bool:
        """Whether the outputs are given by their Gram matrix."""
        return bool(getattr(self.representation, "is_pairwise", False))

    def learn(self, sample: Sample) -> tuple[VectorCodec, Coordinates]:
        """Return the centre, the scales and the representation of the outputs."""
        given = "euclidean" if self.representation is None else self.representation
        representation = part_of(given, representation_room, "representation", Representation).validate()
        if representation.is_functional:
            raise IncompatibleError(f"{representation!r} is for curves. Use FunctionalRegressor.")
        moments = self._moments(sample, representation)
        targets = sample.y if moments is None else moments.encode(_columns(sample.y))
        return VectorCodec(representation, moments), representation.learn(targets, sample.weights)

    def kernel_of(self, sample: Sample, codec: Codec) -> OperatorKernel:
        """Return the kernel times the output operator."""
        kernel = as_operator_kernel(self.kernel, self.operator)
        return kernel if sample.inputs.names is None else kernel.named(sample.inputs.names)

    def _moments(self, sample: Sample, representation: Representation) -> TargetScale | None:
        """Return the centre and the scales of the outputs; ``None`` if neither is requested."""
        options = {"center": self.center, "scale": self.scale}
        for name, value in options.items():
            check_parameter("OperatorKernelRegressor", name, value, Options((False, True, "robust")))
        if not any(options.values()):
            return None
        if not isinstance(representation, Euclidean):
            raise IncompatibleError(
                f"center and scale are for vector outputs. Got {representation!r}. Use center=False and scale=False."
            )
        Y = host(_columns(sample.y))
        of = {name: standardized_targets(Y, sample.counts, robust=options[name] == "robust") for name in options}
        zeros, ones = np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        center = of["center"].center if self.center else zeros
        return TargetScale(center, of["scale"].scale if self.scale else ones)


def _columns(y: Array) -> Array:
    return y[:, None] if y.ndim == 1 else y
