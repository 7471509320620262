"""Outputs of any kind, in the feature space of a kernel."""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator

from fenchel import approximations as approximation_room
from fenchel._array import Array, Outputs, as_objects, is_host, is_numpy, namespace
from fenchel._check import check_array, outputs_like, shown, unmasked
from fenchel.approximations import Approximation
from fenchel.data.frames import column_names
from fenchel.kernels import (
    KernelLike,
    OperatorKernel,
    OperatorLike,
    as_operator_kernel,
    as_scalar_kernel,
    is_pairwise,
)
from fenchel.kernels.vectors import VectorKernel
from fenchel.model.codec import Codec, Task
from fenchel.model.forms import InputForm, OutputForm, is_regular, plain
from fenchel.model.input_gaps import fills_gaps, is_open, with_medians
from fenchel.model.sample import Sample
from fenchel.model.spec import part_of
from fenchel.representations import Coordinates, KernelOutputs

__all__ = ["FeatureCodec", "Objects", "outputs_of"]


@dataclass(frozen=True)
class FeatureCodec(Codec):
    """Outputs in the feature space of their kernel; decoding to objects is the decoder's."""

    representation: KernelOutputs

    def encode(self, y: Outputs) -> Coordinates:
        """Return the outputs in coordinates, without their mean if outputs are centred."""
        encoded = self.representation.encode(y)
        return Coordinates(encoded.rows - self.representation.mean_)

    def decode(self, rows: Array) -> Array:
        """Return coordinates in the feature space, with the mean."""
        return rows + self.representation.mean_


@dataclass(frozen=True)
class Objects(Task):
    """Objects with a kernel as outputs, or their Gram matrix."""

    kernel: KernelLike
    operator: OperatorLike = None
    output_kernel: KernelLike = "linear"
    center: bool = False
    output_approximation: Approximation | str | None = None

    def sample(self, owner: BaseEstimator, X: Array, y: Outputs, sample_weight: Array | None = None) -> Sample:
        """Return checked data."""
        if y is None:
            raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None.")
        as_operator_kernel(self.kernel, self.operator).validate()
        X, _, inputs = InputForm.learn(
            owner,
            X,
            takes_sparse=True,
            takes_missing=fills_gaps(self.kernel),
            is_open=is_open(self.kernel),
            is_pairwise=is_pairwise(self.kernel),
        )
        names, y = column_names(y), plain(y, "y")
        outputs = outputs_of(y, X)
        if len(outputs) != X.shape[0]:
            raise ValueError(f"X and y must have the same number of samples. Got {X.shape[0]} and {len(outputs)}.")
        is_gram = as_scalar_kernel(self.output_kernel).tags.is_pairwise
        is_objects = is_numpy(outputs) and outputs.dtype.kind == "O"
        form = OutputForm(tuple(outputs.shape[1:]), {}, None if is_objects or is_gram else _no_rows(y), names)
        sample = Sample.of(X, outputs, inputs, form, sample_weight, is_gram)
        if is_gram and sample.index is not None:
            raise ValueError(
                "Samples of weight zero are not supported with an output Gram matrix. Remove them from X and y."
            )
        return with_medians(sample, self.kernel)

    def learn(self, sample: Sample) -> tuple[FeatureCodec, Coordinates]:
        """Return the feature space of the outputs."""
        approximation = self.output_approximation
        if approximation is not None:
            approximation = part_of(approximation, approximation_room, "output_approximation", Approximation)
        kernel = as_scalar_kernel(self.output_kernel)
        representation = KernelOutputs(kernel, None, self.center, approximation).validate()
        outputs = outputs_of(sample.y, sample.X)
        if isinstance(kernel, VectorKernel) and is_host(outputs) and np.asarray(outputs).dtype == object:
            raise ValueError(
                f"y must be an array of numbers (n, p) for the output kernel {kernel!r}. Got objects, such as "
                f"{shown(outputs[0])}. Encode lists of labels by MultiLabelBinarizer, and one label for each sample by "
                "OneHotEncoder, or use an output kernel of such objects."
            )
        return FeatureCodec(representation), representation.learn(outputs, sample.weights)

    def kernel_of(self, sample: Sample, codec: Codec) -> OperatorKernel:
        """Return the kernel times the output operator."""
        kernel = as_operator_kernel(sample.kernel_like(self.kernel), self.operator)
        return sample.inputs.named(kernel)


def outputs_of(y: Outputs, X: Array) -> Outputs:
    """Return outputs as an array that can be indexed: numbers in the dtype of X, other objects unchanged."""
    y = unmasked(y, "y")
    if is_host(y):
        numbers = np.asarray(y) if hasattr(y, "dtype") or is_regular(y) else None
        if numbers is not None and numbers.dtype == object and all(isinstance(v, Real) for v in numbers.flat):
            try:
                numbers = numbers.astype(np.float64)  # numbers stored as objects, as in some tables
            except OverflowError as error:
                raise ValueError(f"y must hold numbers below 1.8e308: {error}.") from error
        if numbers is None or numbers.dtype.kind not in "biuf":
            return as_objects(y)
        y = numbers
    y = y[:, None] if y.ndim == 1 else y
    return check_array(outputs_like(y, X, "y"), "y", ndim=tuple(range(2, y.ndim + 1)))


def _no_rows(y: Outputs) -> Array:
    """Return an empty array in the dtype of integer outputs; ``None`` for other outputs."""
    empty = (np.asarray(y) if is_host(y) else y)[:0]
    is_integral = empty.dtype.kind in "biu" if is_numpy(empty) else _is_integral(empty)
    return empty if is_integral else None


def _is_integral(array: Array) -> bool:
    return bool(namespace(array).isdtype(array.dtype, ("bool", "integral")))
