"""Structured prediction with loss and lam chosen by cross-validation."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, as_like
from fenchel.decoders import Decoder
from fenchel.estimators.kernel_choice import encoded_for_search, is_auto
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.search import (
    Measure,
    Progress,
    Search,
    decoded_task_loss,
    expose_best,
    squared_distance,
)
from fenchel.estimators.structured import StructuredPredictor
from fenchel.estimators.training_set import TrainingSet
from fenchel.estimators.validation import all_or_nothing
from fenchel.exceptions import IncompatibleError
from fenchel.losses import Loss
from fenchel.representations import KernelOutputs

__all__ = ["StructuredPredictorCV"]


class StructuredPredictorCV(NamedPartsMixin, BaseEstimator):
    """``StructuredPredictor`` with kernel, loss and lam chosen by cross-validation.

    Parameters
    ----------
    kernel : "auto", str, kernel or callable, default="auto"
        ``"auto"`` searches for a kernel of the columns of X, whose units do not matter, by leave-one-out errors in the
        output space; everything else is as for ``StructuredPredictor``.
    output_kernel, decoder, operator, tol
        As for ``StructuredPredictor``.
    lams, cv, aggregate, n_jobs, checkpoint, progress
        As for ``OperatorKernelRegressorCV``.
    losses : sequence of Loss or str, or "auto", default="auto"
        Losses to choose from; ``"auto"`` is the square loss, since rare objects are no errors.
    center : bool or "auto", default="auto"
        As for ``StructuredPredictor``; ``"auto"`` is on with ``kernel="auto"``.
    task_loss : callable or None, default=None
        ``task_loss(Y, decoded)`` gives the loss of each decoded output, (n,), such as ``hamming_losses``; ``None`` is
        the squared distance in the output space before decoding.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` replaces the kernel of the inputs by one with 500 features.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.

    Attributes
    ----------
    best_kernel_, best_loss_, best_lam_, search_, cv_errors_, fold_errors_, cv_gaps_, losses_, lams_
        As for ``OperatorKernelRegressorCV``.
    best_estimator_ : StructuredPredictor
        The model fitted on the whole sample; its fitted attributes are attributes of this one too.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import StructuredPredictorCV
    >>> from fenchel.losses import Huber
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = (np.hstack([X, 3 - X, X**2]) > 1.5).astype(float)
    >>> model = StructuredPredictorCV(lams=[1e-4, 1.0], losses=["square", Huber(0.5)], decoder="threshold").fit(X, Y)
    >>> model.best_lam_
    0.0001
    """

    def __init__(
        self,
        kernel: Any = "auto",
        output_kernel: Any = "linear",
        lams: Any = None,
        losses: Sequence[Loss | str] | str = "auto",
        decoder: Any = "training_set",
        operator: Any = None,
        center: bool | str = "auto",
        task_loss: Callable[[Any, Any], np.ndarray] | None = None,
        cv: Any = 5,
        aggregate: str = "auto",
        tol: float = 1e-6,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        progress: Progress | None = None,
        approximation: Any = None,
        certificate: str = "approximate",
    ) -> None:
        self.kernel = kernel
        self.output_kernel = output_kernel
        self.lams = lams
        self.losses = losses
        self.decoder = decoder
        self.operator = operator
        self.center = center
        self.task_loss = task_loss
        self.cv = cv
        self.aggregate = aggregate
        self.tol = tol
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.progress = progress
        self.approximation = approximation
        self.certificate = certificate

    @all_or_nothing
    def fit(self, X: Array, y: Any, sample_weight: Array | None = None) -> Self:
        """Choose loss and lam, then fit on the whole sample.

        Parameters
        ----------
        X, y, sample_weight
            As for ``StructuredPredictor.fit``.

        Returns
        -------
        self : StructuredPredictorCV
            The fitted model.
        """
        search = Search.of(self, ["square"] if is_auto(self.losses) else self.losses)
        estimators = {is_robust: self._estimator(search.losses[0], 1.0) for is_robust in (False, True)}
        estimator, encoded, choice = encoded_for_search(
            self, search.losses, estimators, search.folds, X, y, sample_weight
        )
        search = search if choice is None else search.chosen(choice, choice.resolved_losses(), self)
        folds = search.folds(encoded.training_set)
        measure = self._measure(encoded.training_set, encoded.representation, encoded.decoder, folds)
        name = "" if self.task_loss is None else getattr(self.task_loss, "__qualname__", repr(self.task_loss))
        result = search(encoded.training_set, folds, measure, settings=f"{self.decoder!r} {name}")
        expose_best(self, estimator, encoded, result, ("decoder_",), choice)
        return self

    def predict(self, X: Array, candidates: Any = None) -> Any:
        """Predict with the chosen model."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, candidates)

    def decision_scores(self, X: Array, candidates: Any = None) -> Any:
        """Return the squared distances to candidates, with the chosen model."""
        check_is_fitted(self)
        return self.best_estimator_.decision_scores(X, candidates)

    def top_k(self, X: Array, k: int, candidates: Any = None, indices: bool = False) -> Any:
        """Return the nearest candidates, with the chosen model."""
        check_is_fitted(self)
        return self.best_estimator_.top_k(X, k, candidates, indices)

    def embed(self, X: Array) -> Array:
        """Return the predictions of the chosen model in the coordinates of the output space."""
        check_is_fitted(self)
        return self.best_estimator_.embed(X)

    def score(self, X: Array, y: Any) -> float:
        """Return the score of the chosen model."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    def _measure(
        self, training_set: TrainingSet, representation: KernelOutputs, decoder: Decoder, folds: list[np.ndarray]
    ) -> Measure:
        """Return the task loss after decoding, or the squared distance before."""
        if self.task_loss is None:
            return squared_distance(training_set)
        if representation.is_pairwise:
            raise IncompatibleError(
                "A task loss compares outputs, and a Gram matrix has none. Use task_loss=None, or an output kernel."
            )

        def coordinates(predictions: np.ndarray) -> Array:
            return as_like(predictions, representation.targets_) + representation.mean_

        return decoded_task_loss(decoder, representation, representation.outputs_, folds, coordinates, self.task_loss)

    def _estimator(self, loss: Loss | str, lam: float) -> StructuredPredictor:
        return StructuredPredictor(
            self.kernel,
            self.output_kernel,
            loss,
            lam,
            self.decoder,
            self.operator,
            is_auto(self.kernel) if isinstance(self.center, str) else self.center,
            tol=self.tol,
            approximation=self.approximation,
            certificate=self.certificate,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self._estimator("square", 1.0).__sklearn_tags__()
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags
