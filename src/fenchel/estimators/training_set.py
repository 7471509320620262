"""Training data in coordinates, from which the dual problems of a fit are built."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from fenchel._array import Array, as_index, eps, host, namespace
from fenchel.approximations import Approximation
from fenchel.estimators.memory import check_fits, is_streamed, preconditioner, warn_of_time
from fenchel.estimators.validation import DualSettings, sample_weights
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import OperatorKernel
from fenchel.kernels.base import BoundKernel
from fenchel.kernels.separable import features_of
from fenchel.losses import Loss, Square
from fenchel.operators import Operator, is_thin, kronecker, orthogonal, scaled
from fenchel.problem import DualProblem
from fenchel.representations import Representation

__all__ = ["Encoded", "TrainingSet", "check_loss", "encode", "with_kernel"]


@dataclass(frozen=True)
class TrainingSet:
    """Checked training data: inputs, a bound kernel, outputs in coordinates, weights.

    Samples of weight zero are left out; ``index`` holds the indices of the others among the given samples.
    """

    X: Array  # (n, ...), or the (n, n) Gram matrix
    kernel: BoundKernel
    representation: Representation  # fitted; targets_ are the outputs in coordinates, (n, p)
    ridge: DualProblem  # of the square loss at lam = 1; the other problems share its factorisation
    weights: Array | None  # (n,), positive; None counts each sample once
    index: np.ndarray | None  # indices of the samples among the given ones; None: all
    n_given: int  # number of given samples, including those of weight zero
    is_pairwise: bool  # inputs are a Gram matrix
    approximation: Approximation | None  # with the actual number of features
    exact_gram: Operator | None  # Gram operator of the exact kernel, computed in tiles, if the kernel is approximated

    @property
    def n_samples(self) -> int:
        """Number of samples with a positive weight."""
        return int(self.targets.shape[0])

    @property
    def is_exact(self) -> bool:
        """Whether the kernel is not approximated."""
        return self.approximation is None

    @property
    def targets(self) -> Array:
        """Outputs in coordinates, (n, p)."""
        return self.representation.targets_

    @property
    def counts(self) -> np.ndarray:
        """Sample weights, as a NumPy array (n,)."""
        return np.ones(self.n_samples) if self.weights is None else host(self.weights)

    def problem(self, loss: Loss, lam: float) -> DualProblem:
        """Return the dual problem of a loss and a lam."""
        check_loss(loss, self.representation)
        return self.ridge.with_(loss=loss.bind(self.targets, self.representation.point_scale), lam=lam)

    def check_folds(self, tests: Iterable[np.ndarray]) -> None:
        """Raise if a fold holds all samples, or all of their weight but what a shared factorisation rounds away."""
        counts = self.counts
        total = float(np.sum(counts))
        if any(total - float(np.sum(counts[test])) <= len(counts) * eps(self.targets) * total for test in tests):
            held = "" if self.n_samples == 1 else ", and a fold with all of the weight"
            raise ValueError(f"Each fold must leave samples to fit on. Got n_samples = {self.n_given}{held}.")

    def given(self, rows: Array) -> Array:
        """Return one row for each given sample, with zeros for those of weight zero."""
        if self.index is None:
            return rows
        xp = namespace(rows)
        place = np.full(self.n_given, len(self.index))  # the last row is zero
        place[self.index] = np.arange(len(self.index))
        return xp.take(xp.concat([rows, 0 * rows[:1, ...]]), as_index(place, rows), axis=0)


class Encoded(Protocol):
    """Encoded data of an estimator: a training set, and what else prediction needs."""

    @property
    def training_set(self) -> TrainingSet:
        """The training set."""


def encode(
    X: Array,
    y: Any,
    kernel: OperatorKernel,
    representation: Representation,
    settings: DualSettings,
    sample_weight: Array | None = None,
    operator: Any = None,
) -> TrainingSet:
    """Return checked data as a training set; raise if the loss does not fit the data, or the data the memory.

    ``operator`` is the output operator, from which a representation of curves may take its basis.
    """
    n = X.shape[0]
    check_loss(settings.loss, representation)
    weights, index = sample_weights(sample_weight, X)
    if kernel.is_pairwise and X.shape[1] != n:
        raise ValueError(f"X must be a square Gram matrix with a precomputed kernel. Got shape {tuple(X.shape)}.")
    if index is not None:
        xp, rows = namespace(X), as_index(index, X)
        X, y = xp.take(X, rows, axis=0), representation.take(y, rows)
        X = xp.take(X, rows, axis=1) if kernel.is_pairwise else X
    check_fits(X, kernel, settings)
    targets = representation.fit(y, weights, operator).targets_
    check_fits(X, kernel, settings, targets.shape[1])
    bound, ridge, exact_gram = _bound(X, kernel, representation, settings, weights)
    approximation = _resolved(settings.approximation, bound, X)
    return TrainingSet(
        X, bound, representation, ridge, weights, index, n, kernel.is_pairwise, approximation, exact_gram
    )


def with_kernel(training_set: TrainingSet, kernel: OperatorKernel, settings: DualSettings) -> TrainingSet:
    """Return the training set with another kernel on points."""
    X, representation = training_set.X, training_set.representation
    check_fits(X, kernel, settings, training_set.targets.shape[1])
    bound, ridge, exact_gram = _bound(X, kernel, representation, settings, training_set.weights)
    approximation = _resolved(settings.approximation, bound, X)
    return replace(training_set, kernel=bound, ridge=ridge, approximation=approximation, exact_gram=exact_gram)


def _bound(
    X: Array, kernel: OperatorKernel, representation: Representation, settings: DualSettings, weights: Array | None
) -> tuple[BoundKernel, DualProblem, Operator | None]:
    """Return the bound kernel, the problem of the square loss at lam = 1, and the exact Gram operator, if any."""
    bound: Any = kernel.bind(X, representation)
    targets, exact_gram = representation.targets_, None
    if settings.approximation is not None:
        _check_certificate(settings.approximation, settings.certificate)
        approximated = _approximated(bound, settings.approximation, kernel, X, weights, settings.lam)
        bound, exact_gram = approximated, bound.streamed(X)
        for root in (representation.row_scale_, None if weights is None else namespace(X).sqrt(weights)[:, None]):
            exact_gram = exact_gram if root is None else scaled(exact_gram, root)
    if is_streamed(X, kernel, settings, targets.shape[1]):
        warn_of_time(X, settings, targets.shape[1])
        features = preconditioner(X, settings, targets.shape[1])
        gram = bound.streamed(X, lambda scalar: features.approximate(scalar, X, weights))
    else:
        gram = bound.gram(X)
    if representation.row_scale_ is not None:
        gram = scaled(gram, representation.row_scale_)
    ridge = DualProblem.build(
        gram, targets, Square(), 1.0, weights, representation.point_scale, representation.observed_
    )
    return *_orthogonal(bound, ridge), exact_gram


def _orthogonal(bound: Any, ridge: DualProblem) -> tuple[BoundKernel, DualProblem]:
    """Return both in coordinates in which many features are orthogonal, so that no further factorisation is needed."""
    if not (is_thin(ridge.gram) and hasattr(bound.terms[0][0], "turned")):
        return bound, ridge
    scalar, output = ridge.gram.terms[0]
    found = orthogonal(scalar)  # type: ignore[arg-type]  # thin operators are of one kind
    if found is None:
        return bound, ridge
    thin, turn = found
    return bound.mapped(lambda kernel: kernel.turned(turn)), replace(ridge, gram=kronecker(thin, output.matrix))


def _check_certificate(approximation: Approximation, certificate: str) -> None:
    """Raise if the gap of the exact kernel is requested but only that of the approximation is available."""
    if certificate != "approximate" and not approximation.is_projection:
        raise IncompatibleError(
            f"certificate={certificate!r} needs an approximation that is a projection in the space of the kernel, as "
            f"Nystrom is. Got {approximation!r}. Use certificate='approximate'."
        )


def check_loss(loss: Loss, representation: Representation) -> None:
    """Raise if a loss of point values is used with coordinates that have none."""
    if loss.pointwise and not representation.has_points:
        raise IncompatibleError(
            f"{loss!r} needs point values, which {type(representation).__name__} does not provide. Use p=2, or for "
            "curves representation='spline'."
        )


def _approximated(
    bound: Any, approximation: Approximation, kernel: OperatorKernel, X: Array, weights: Array | None, lam: float
) -> BoundKernel:
    """Return the bound kernel with its scalar parts approximated."""
    mapped = getattr(bound, "mapped", None)  # exists for sums of scalar kernels times operators
    if mapped is None or kernel.is_pairwise:
        raise IncompatibleError(
            f"{approximation!r} approximates scalar kernels on points. Got {kernel!r}. Use approximation=None."
        )
    approximated: BoundKernel = mapped(lambda scalar: approximation.approximate(scalar, X, weights, lam))
    return approximated


def _resolved(approximation: Approximation | None, bound: Any, X: Array) -> Approximation | None:
    """Return the approximation with the actual number of features of the bound kernel."""
    if approximation is None:
        return None
    return clone(approximation).set_params(n_components=max(int(features_of(scalar, X)) for scalar, _ in bound.terms))
