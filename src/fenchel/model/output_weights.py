"""Outputs of a task loss: predictions are weights of the training outputs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from fenchel import approximations as approximation_room
from fenchel._array import Array, Outputs, as_like, device, host, is_host, namespace
from fenchel._check import Interval, check_memory, check_parameter, check_psd
from fenchel.approximations import Approximation
from fenchel.data.frames import column_names
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import (
    KernelLike,
    Matrix,
    OperatorKernel,
    ScalarKernel,
    as_operator_kernel,
    as_scalar_kernel,
    is_pairwise,
)
from fenchel.losses.profile import Quadratic
from fenchel.model.codec import Codec, Task
from fenchel.model.forms import InputForm, OutputForm, plain
from fenchel.model.input_gaps import fills_gaps, is_open, with_medians
from fenchel.model.memory import check_fits
from fenchel.model.sample import Sample
from fenchel.model.spec import Spec, part_of
from fenchel.representations import Coordinates, Euclidean, KernelOutputs, Representation
from fenchel.task_losses import TaskLoss

__all__ = ["WeightCodec", "Weights"]

_POWER = Interval(0, float("inf"), "left")


@dataclass(frozen=True)
class WeightCodec(Codec):
    """Weights of the training outputs; those of samples of weight zero are zero."""

    representation: Representation
    index: np.ndarray | None = None  # places of the others among the given samples
    n_given: int = 0

    def encode(self, y: Outputs) -> Coordinates:
        """Return the targets of the dual problem in coordinates."""
        return self.representation.encode(y)

    def decode(self, rows: Array) -> Array:
        """Return weights (m, n) with a column for each given sample."""
        if self.index is None:
            return rows
        spread = np.zeros((rows.shape[0], self.n_given))
        spread[:, self.index] = host(rows)
        return as_like(spread, rows)


@dataclass(frozen=True)
class Weights(Task):
    """Outputs of a task loss; the targets are unit vectors, or the outputs in the feature space of a kernel."""

    kernel: KernelLike
    task_loss: TaskLoss
    spec: Spec
    output_kernel: KernelLike | None = None
    output_approximation: Approximation | str | None = None
    coupling: float = 0.0  # power of the Gram matrix of the outputs

    @property
    def is_expanded(self) -> bool:
        """Whether duals are in the feature space of the outputs, and are expanded into weights."""
        return self.spec.loss.is_relative or bool(self.spec.loss.profile != Quadratic())

    def sample(self, owner: BaseEstimator, X: Array, y: Outputs, sample_weight: Array | None = None) -> Sample:
        """Return checked data, with all given outputs."""
        if y is None:
            raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None.")
        kernel = as_operator_kernel(self.kernel, None).validate()
        if self.output_approximation is not None and not self.is_expanded:
            raise IncompatibleError(
                "output_approximation is of the kernel with which another surrogate than the square loss learns; "
                "surrogate='square' uses none. Remove it, or use surrogate='huber'."
            )
        check_parameter(type(owner).__name__, "coupling", self.coupling, _POWER)
        if self.coupling > 0 and self.is_expanded:
            raise IncompatibleError(
                "coupling is for surrogate='square', whose weights do not depend on the outputs. Use coupling=0."
            )
        X, _, inputs = InputForm.learn(
            owner,
            X,
            takes_missing=fills_gaps(self.kernel),
            is_open=is_open(self.kernel),
            is_pairwise=is_pairwise(self.kernel),
        )
        names, y = column_names(y), plain(y, "y")
        outputs = self.task_loss.check(y if is_host(y) else host(y))
        if len(outputs) != X.shape[0]:
            raise ValueError(f"X and y must have the same number of samples. Got {X.shape[0]} and {len(outputs)}.")
        check_fits(X, kernel, self.spec, 1 if self.is_expanded else X.shape[0])
        if self.is_expanded:  # double_expansion inverts the Gram matrix of the samples with a dual, perhaps of all
            check_memory(32 * len(outputs) ** 2, f"A fit of {len(outputs)} samples", "Fit on a part of the sample")
        is_single = str(getattr(y, "dtype", "")).endswith("float32")
        form = OutputForm((), empty=np.zeros(0, dtype=np.float32) if is_single else None, names=names)
        return with_medians(Sample.of(X, outputs, inputs, form, sample_weight), self.kernel)

    def learn(self, sample: Sample) -> tuple[Codec, Coordinates]:
        """Return the targets of the dual problem: unit vectors, one for each given sample, or features."""
        X, n, place = sample.X, sample.n_samples, (sample.index, sample.n_given)
        if not self.is_expanded:
            representation = Euclidean()
            units = namespace(X).eye(n, dtype=X.dtype, device=device(X))
            return WeightCodec(representation, *place), representation.learn(units)
        features, rows = self._features(self._kernel_of_outputs(sample), sample)
        return WeightCodec(features, *place), features.learn(as_like(rows, X), sample.weights)

    def _features(self, kernel: ScalarKernel, sample: Sample) -> tuple[KernelOutputs, np.ndarray]:
        """Return the feature space of the outputs, and what it is learned from."""
        if self.output_approximation is None:
            return KernelOutputs("precomputed"), _on_outputs(kernel, sample.y, kernel)
        part = part_of(self.output_approximation, approximation_room, "output_approximation", Approximation)
        approximate = KernelOutputs(kernel, approximation=part).validate()
        return KernelOutputs(), _on_outputs(kernel, sample.y, lambda points: approximate.learn(points).rows)

    def _kernel_of_outputs(self, sample: Sample) -> ScalarKernel:
        """Return the kernel of the outputs: the given one, or that of the task loss."""
        own = self.task_loss.resolve(sample.y).output_kernel() if self.output_kernel is None else self.output_kernel
        return as_scalar_kernel(own).validate()

    def _operator(self, sample: Sample) -> Matrix | None:
        """Return the operator that couples the weights, of norm one; ``None`` for the identity."""
        if self.coupling == 0:
            return None
        kernel = self._kernel_of_outputs(sample)
        values, vectors = np.linalg.eigh(check_psd(_on_outputs(kernel, sample.y, kernel), "The output Gram matrix"))
        largest = float(values[-1])
        if not largest > 0:
            raise ValueError(
                "coupling needs outputs whose kernel is not zero. Use coupling=0, or another output_kernel."
            )
        shares = np.where(values > len(values) * np.finfo(values.dtype).eps * largest, values / largest, 0.0)
        powers = shares**self.coupling  # a small power of round-off would not be small
        return Matrix(as_like((vectors * powers) @ vectors.T, sample.X))

    def kernel_of(self, sample: Sample, codec: Codec) -> OperatorKernel:
        """Return the kernel of the inputs, times the operator that couples the weights."""
        kernel = as_operator_kernel(sample.kernel_like(self.kernel), self._operator(sample))
        return sample.inputs.named(kernel)


def _on_outputs(kernel: ScalarKernel, outputs: Outputs, function: Callable[[Outputs], Array]) -> np.ndarray:
    """Return a function of outputs, in the form that their kernel takes, as an array."""
    if kernel.tags.is_pairwise:
        raise IncompatibleError("The output kernel of the loss trick needs the outputs, not their Gram matrix.")
    points = outputs[:, None] if outputs.ndim == 1 and outputs.dtype.kind in "biuf" else outputs
    try:
        return np.asarray(function(points))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The kernel {kernel!r} does not accept these outputs: {error} Set output_kernel to one that does; "
            "surrogate='square' needs none."
        ) from error
