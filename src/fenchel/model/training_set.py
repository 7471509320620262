"""A sample in coordinates with a kernel bound to it, from which dual problems are built."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Self, cast

import numpy as np
from sklearn.base import clone

from fenchel._array import Array, as_like, namespace
from fenchel._check import check_memory
from fenchel.approximations import Approximation
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import OperatorKernel, OutputOperator
from fenchel.kernels.scalar_kernel import BoundKernel
from fenchel.kernels.separable import BoundTerms, features_of
from fenchel.losses import Loss, Square
from fenchel.model.codec import Codec, Task
from fenchel.model.memory import check_fits, is_streamed, preconditioner, settled, warn_of_time
from fenchel.model.sample import Sample
from fenchel.model.spec import Spec
from fenchel.model.spectrum import Spectrum
from fenchel.operators import Operator, Remembered, Thin, is_thin, kronecker, orthogonal, scaled
from fenchel.problem import DualProblem
from fenchel.representations import Coordinates, CoordinateSpace, Representation

__all__ = ["TrainingSet", "check_loss"]


@dataclass(frozen=True)
class TrainingSet:
    """A sample in coordinates with a kernel bound to it. Its problems share one factorisation."""

    sample: Sample
    codec: Codec
    targets: Coordinates
    kernel: BoundKernel
    ridge: DualProblem  # of the square loss at lam = 1; the other problems share its factorisation
    approximation: Approximation | None = None  # with the actual number of features
    exact_gram: Operator | None = None  # of an approximated kernel, in tiles

    @classmethod
    def learn(cls, task: Task, sample: Sample, spec: Spec) -> Self:
        """Return a sample in the coordinates that a task learns, with the kernel of the task."""
        if (representation := task.unlearned()) is not None:
            check_loss(spec.loss, representation)
        codec, targets = task.learn(sample)
        check_loss(spec.loss, codec.representation)
        return cls.of(sample, codec, targets, task.kernel_of(sample, codec), spec)

    @classmethod
    def of(cls, sample: Sample, codec: Codec, targets: Coordinates, kernel: OperatorKernel, spec: Spec) -> Self:
        """Return a sample in given coordinates with a kernel; raise if it does not fit in memory."""
        spec = settled(sample.X, kernel, spec, targets.width)
        check_fits(sample.X, kernel, spec, targets.width)
        bound = kernel.bind(
            sample.X, CoordinateSpace(codec.representation, targets.rows, sample.weights, targets.observed)
        )
        exact_gram = None
        if spec.approximation is not None:
            bound, exact_gram = _approximated(bound, kernel, sample, targets, spec)
        spectrum = cache(lambda: Spectrum.of(cast(BoundTerms, bound).terms[0][0], sample.X))
        if is_streamed(sample.X, kernel, spec, targets.width, spectrum):
            warn_of_time(sample.X, spec, targets.width)
            gram = cast(BoundTerms, bound).streamed(
                sample.X,
                lambda scalar: preconditioner(sample.X, spec, targets.width, spectrum).approximate(
                    scalar, sample.X, sample.weights
                ),
            )
        else:
            gram = bound.gram(sample.X)
        bound, ridge = _orthogonal(bound, _ridge(gram, sample, targets))
        return cls(sample, codec, targets, bound, ridge, _counted(spec.approximation, bound, sample.X), exact_gram)

    @classmethod
    def bound(cls, sample: Sample, codec: Codec, targets: Coordinates, kernel: BoundKernel) -> Self:
        """Return a sample in given coordinates with a kernel that is bound already; its Gram matrix is stored."""
        n = sample.n_samples
        check_memory(24 * n**2, f"The Gram matrix of {n} samples", "Use a part of the sample", like=sample.X)
        return cls(sample, codec, targets, kernel, _ridge(kernel.gram(sample.X), sample, targets))

    def with_kernel(self, kernel: OperatorKernel, spec: Spec) -> Self:
        """Return the training set with another kernel."""
        return self.of(self.sample, self.codec, self.targets, kernel, spec)

    def remembered(self) -> Self:
        """Return the training set with a scalar Gram matrix that keeps its blocks and their eigenvectors."""
        if is_thin(self.ridge.gram):
            return self
        ((scalar, output),) = self.ridge.gram.terms
        return self._on(kronecker(Remembered(scalar), output.matrix))

    def with_operator(self, operator: OutputOperator, codec: Codec) -> Self:
        """Return the training set with another output operator, on the same input Gram matrix."""
        ((scalar, _),) = self.ridge.gram.terms
        matrix = operator.matrix(
            CoordinateSpace(codec.representation, self.targets.rows, self.sample.weights, self.targets.observed)
        )
        kernel = BoundTerms(((cast(BoundTerms, self.kernel).terms[0][0], matrix),))
        return replace(self._on(kronecker(scalar, matrix)), codec=codec, kernel=kernel)

    def _on(self, gram: Operator) -> Self:
        return replace(self, ridge=replace(self.ridge, gram=gram))

    def with_outputs(self, codec: Codec, targets: Coordinates) -> Self:
        """Return the training set with outputs in other complete coordinates; its output operator is the identity."""
        root = self.ridge.root
        rows = targets.rows if root is None else targets.rows * root
        ridge = replace(self.ridge, targets=rows, point_scale=targets.point_scale)
        return replace(self, codec=codec, targets=targets, ridge=ridge)

    def with_targets(self, rows: Array) -> Self:
        """Return the training set with other targets, given in coordinates with the roots of the weights."""
        return replace(self, ridge=replace(self.ridge, targets=rows))

    @property
    def X(self) -> Array:  # noqa: N802  # a matrix keeps its capital
        """Inputs of the samples with a positive weight."""
        return self.sample.X

    @property
    def n_samples(self) -> int:
        """Number of samples with a positive weight."""
        return self.targets.n_samples

    @property
    def is_pairwise(self) -> bool:
        """Whether inputs are a Gram matrix."""
        return self.sample.inputs.is_pairwise

    def problem(self, loss: Loss, lam: float) -> DualProblem:
        """Return the dual problem of a loss and a lam."""
        check_loss(loss, self.codec.representation)
        return self.ridge.with_(loss=loss.bind(self.targets.rows, self.targets.point_scale), lam=lam)

    def as_returned(self, problem: DualProblem, rows: Array) -> tuple[DualProblem, Array]:
        """Return the problem of the outputs as given, and the predictions that ``predict`` returns, in coordinates.

        A centre that is added to predictions in float32 may cost more digits than these have.
        """
        rounding, codec = self.sample.rounding, self.codec
        if rounding is None or not codec.is_returned:
            return problem, rows
        values = as_like(codec.decode(rows), rounding)
        returned = codec.encode_values(namespace(values).astype(values, namespace(values).float64)).rows
        targets = codec.encode(self.sample.double().y).rows
        targets = targets if problem.root is None else targets * problem.root
        return replace(problem, targets=targets), returned

    def resolved(self, loss: Loss, residuals: Array) -> Loss:
        """Return a loss with thresholds that are relative to residuals resolved to numbers."""
        return loss.resolve(residuals, self.sample.weights, self.targets.point_scale)


def _ridge(gram: Operator, sample: Sample, targets: Coordinates) -> DualProblem:
    """Return the dual problem of the square loss at lam = 1."""
    gram = gram if targets.row_scale is None else scaled(gram, targets.row_scale)
    return DualProblem.build(gram, targets.rows, Square(), 1.0, sample.weights, targets.point_scale, targets.observed)


def check_loss(loss: Loss, representation: Representation) -> None:
    """Raise if a loss of point values is used with coordinates that have none."""
    if loss.pointwise and not representation.has_points:
        raise IncompatibleError(
            f"{loss!r} needs point values, which {type(representation).__name__} does not provide. Use p=2, or for "
            "curves representation='spline'."
        )


def _approximated(
    bound: BoundKernel, kernel: OperatorKernel, sample: Sample, targets: Coordinates, spec: Spec
) -> tuple[BoundTerms, Operator]:
    """Return the bound kernel with its scalar parts approximated, and the exact Gram operator in tiles."""
    approximation = cast(Approximation, spec.approximation)
    if spec.certificate != "approximate" and not approximation.is_projection:
        raise IncompatibleError(
            f"certificate={spec.certificate!r} needs an approximation that is a projection in the space of the kernel, "
            f"as Nystrom is. Got {approximation!r}. Use certificate='approximate'."
        )
    if not isinstance(bound, BoundTerms) or kernel.is_pairwise:
        raise IncompatibleError(
            f"{approximation!r} approximates scalar kernels on points. Got {kernel!r}. Use approximation=None."
        )
    X, weights = sample.X, sample.weights
    approximate = bound.mapped(lambda scalar: approximation.approximate(scalar, X, weights, spec.lam))
    exact = bound.streamed(X)
    for root in (targets.row_scale, None if weights is None else namespace(X).sqrt(weights)[:, None]):
        exact = exact if root is None else scaled(exact, root)
    return approximate, exact


def _orthogonal(bound: BoundKernel, ridge: DualProblem) -> tuple[BoundKernel, DualProblem]:
    """Return both in coordinates in which many features are orthogonal, so that no further factorisation is needed."""
    if not (isinstance(bound, BoundTerms) and is_thin(ridge.gram) and hasattr(bound.terms[0][0], "turned")):
        return bound, ridge
    scalar, output = ridge.gram.terms[0]
    found = orthogonal(cast(Thin, scalar))
    if found is None:
        return bound, ridge
    thin, turn = found
    return bound.mapped(lambda kernel: kernel.turned(turn)), replace(ridge, gram=kronecker(thin, output.matrix))


def _counted(approximation: Approximation | None, bound: BoundKernel, X: Array) -> Approximation | None:
    """Return the approximation with the actual number of features of the bound kernel."""
    if approximation is None:
        return None
    terms = cast(BoundTerms, bound).terms
    count = int(np.max([features_of(scalar, X) for scalar, _ in terms]))
    return clone(approximation).set_params(n_components=count)
