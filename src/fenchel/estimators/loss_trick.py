"""The loss trick: consistent structured prediction for any task loss."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel import decoders as decoder_room
from fenchel import task_losses as task_loss_room
from fenchel._array import Array, as_like, host, is_numpy, namespace
from fenchel._component import from_name
from fenchel.decoders import Decoder
from fenchel.estimators.base import part_of
from fenchel.estimators.core import KernelRegressorMixin, Sample, checked_inputs, is_host, new_inputs, sample_weights
from fenchel.estimators.cross_validation import CrossValidatedMixin
from fenchel.estimators.structured_selection import fold_measure
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import as_operator_kernel, as_scalar_kernel
from fenchel.losses import Loss, Square
from fenchel.representations import Euclidean, KernelOutputs
from fenchel.task_losses import Delta, LossMatrix, TaskLoss, TaskSpace

__all__ = ["LossTrickPredictor"]


class LossTrickPredictor(KernelRegressorMixin, CrossValidatedMixin, BaseEstimator):
    r"""Structured prediction for any task loss, through weights on the training outputs.

    .. math:: \hat f(x) = \arg\min_y \sum_{i=1}^n \alpha_i(x) \, \Delta(y, y_i), \qquad
        \alpha(x) = (K + n \lambda I)^{-1} K_x .

    Parameters
    ----------
    kernel : str, kernel or callable, default="gaussian"
        Kernel of the inputs, as for ``OperatorKernelRegressor``.
    task_loss : TaskLoss, str, callable or array, default="least_squares"
        What a prediction costs: a loss of ``fenchel.task_losses`` or its short name, a function ``delta(y, z)`` of a
        predicted and a true output, or the matrix of a ``LossMatrix``.
    lam : float, default=1e-3
        Weight of the squared norm; not used where ``lams`` are given.
    surrogate : Loss or str, default="square"
        The loss with which the weights are learnt. ``"square"`` gives the weights above for every kernel of outputs.
        Any other loss of the norm, such as ``Huber(0.5)``, is solved through its dual in the feature space of
        ``output_kernel``, and its double expansion gives the weights.
    decoder : Decoder or str, default="auto"
        ``"auto"`` is the task loss's own. ``"training_set"`` and ``"candidates"`` serve every task loss.
    output_kernel : str, kernel, callable or None, default=None
        Kernel of outputs for a surrogate other than the square loss; ``None`` is the task loss's own.
    lams : sequence of float or None, default=None
        Regularisation weights to choose from by cross-validation on the task loss, on one factorisation.
    cv, aggregate
        As for ``OperatorKernelRegressorCV``, for the choice among ``lams``.
    solver, tol, max_iter
        As for ``OperatorKernelRegressor``.

    Attributes
    ----------
    dual_coef_, primal_objective_, dual_objective_, duality_gap_, n_iter_, status_, support_, sparsity_, outlier_score_
        As for ``OperatorKernelRegressor``, of the surrogate problem.
    lam_ : float
        The weight of the squared norm that was used.
    cv_errors_ : array of shape (1, n_lams)
        Mean task loss of held-out samples, where ``lams`` are given.
    task_loss_, decoder_ : TaskLoss, Decoder
        The parts, fitted.

    Notes
    -----
    Weights are computed in the array library and on the device of X; decoding is done by NumPy.

    The weights may be negative and need not sum to one. Where a loss is a squared distance of features the part that
    depends on the prediction alone is known and counts once (see ``LeastSquares`` and ``KernelInduced``): the loss
    trick is then kernel ridge regression, and input-output kernel regression.

    References
    ----------
    [Ciliberto2016]_, Alg. 1; [Laforgue2020]_, section 4.4, for surrogates other than the square loss.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LossTrickPredictor
    >>> from fenchel.task_losses import Cauchy
    >>> X = np.linspace(0, 3, 60)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[::7] = -3.0  # outliers
    >>> model = LossTrickPredictor(task_loss=Cauchy(0.1), lams=[1e-4, 1e-3, 1e-2]).fit(X, y)
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.05)
    True
    """

    _loss_parameter: ClassVar[str] = "surrogate"

    def __init__(
        self,
        kernel: Any = "gaussian",
        task_loss: Any = "least_squares",
        lam: float = 1e-3,
        surrogate: Any = "square",
        decoder: Any = "auto",
        output_kernel: Any = None,
        lams: Sequence[float] | None = None,
        cv: Any = 5,
        aggregate: str = "mean",
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.task_loss = task_loss
        self.lam = lam
        self.surrogate = surrogate
        self.decoder = decoder
        self.output_kernel = output_kernel
        self.lams = lams
        self.cv = cv
        self.aggregate = aggregate
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Array, y: Any, sample_weight: Array | None = None) -> Self:
        """Learn the weights; with ``lams``, choose among them first.

        Parameters
        ----------
        X : array of shape (n, d)
            Inputs, or their Gram matrix with ``kernel="precomputed"``.
        y : array of shape (n, ...) or list
            Outputs, as the task loss takes them.
        sample_weight : array of shape (n,) or None, default=None
            How often each sample counts.

        Returns
        -------
        self : LossTrickPredictor
            The fitted model.
        """
        for name in ("best_estimator_", "cv_errors_", "fold_errors_", "cv_gaps_"):
            if hasattr(self, name):  # of an earlier fit
                delattr(self, name)
        if self.lams is None:
            self.lam_ = self.lam
            return self._fit(X, y, sample_weight)
        self._choose(X, y, sample_weight)
        self.lam_ = self.best_lam_
        return self

    def weights(self, X: Array) -> Array:
        r"""Return the weights :math:`\alpha_i(x)` of the training outputs.

        Parameters
        ----------
        X : array of shape (m, d)
            Inputs, or their Gram matrix with the training inputs.

        Returns
        -------
        weights : array of shape (m, n)
            One row for each input.
        """
        check_is_fitted(self)
        chosen = self._chosen()
        return chosen._as_weights(chosen._coordinates(new_inputs(chosen, X)), chosen.representation_)

    def predict(self, X: Array, candidates: Any = None) -> Any:
        """Predict objects.

        Parameters
        ----------
        X : array of shape (m, d)
            Inputs, or their Gram matrix with the training inputs.
        candidates : array, list of arrays or None, default=None
            Candidates for all samples, or a list with a set for each; ``None`` leaves it to the decoder.

        Returns
        -------
        y : array or list
            One object for each sample.
        """
        weights = self.weights(X)
        chosen, on_host = self._chosen(), host(weights).astype(np.float64)
        if candidates is None:
            found = chosen.decoder_.decode(on_host)
        else:
            space = chosen.decoder_.representation_
            found = decoder_room.Candidates().fit(space.outputs_, space).decode(on_host, candidates)
        is_plain = is_numpy(weights) or getattr(found, "dtype", np.dtype(object)).kind not in "biuf"
        return found if is_plain else as_like(found, weights)

    def score(self, X: Array, y: Any) -> float:
        """Return minus the mean task loss.

        Parameters
        ----------
        X, y
            A sample, as for ``fit``.

        Returns
        -------
        score : float
            Greatest is best; 0 for losses that are null at the truth.
        """
        found = self.predict(X)
        loss = self._chosen().task_loss_
        return 0.0 - float(np.mean(loss(y if is_host(y) else host(y), found if is_host(found) else host(found))))

    def _chosen(self) -> "LossTrickPredictor":
        """Return the model of the chosen lam."""
        found: LossTrickPredictor = vars(self).get("best_estimator_", self)
        return found

    def _as_weights(self, coordinates: Array, representation: Any) -> Array:
        """Return predictions in coordinates as weights of the training outputs, with zeros for samples left out."""
        if isinstance(representation, Euclidean):
            return coordinates
        found = representation.weights(coordinates)
        if self._kept is None:
            return found
        spread = np.zeros((len(found), self._n_outputs), dtype=host(found).dtype)
        spread[:, self._kept] = host(found)
        return as_like(spread, coordinates)

    def _sample(
        self,
        X: Any,
        y: Any,
        loss: Loss,
        double: bool = False,
        sample_weight: Array | None = None,
        grid: Array | None = None,
    ) -> Sample:
        """Return the dual problem of the surrogate: of unit vectors for the square loss, else in the feature space."""
        if grid is not None:
            raise TypeError("LossTrickPredictor has no grid. Use FunctionalRegressor for curves.")
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X, kernel = checked_inputs(self, X, as_operator_kernel(self.kernel, None).validate(), double)
        task_loss = as_task_loss(self.task_loss).validate()
        outputs = task_loss.check(y if is_host(y) else host(y))
        if len(outputs) != X.shape[0]:
            raise ValueError(f"X and y must have as many samples. Got {X.shape[0]} and {len(outputs)}.")
        task_loss = task_loss.resolve(outputs)
        decoder = (
            task_loss.decoder() if _is_auto(self.decoder) else part_of(self.decoder, decoder_room, "decoder", Decoder)
        )
        self._kept, self._n_outputs = sample_weights(sample_weight, X)[1], len(outputs)
        if isinstance(loss, Square):
            targets, representation = namespace(X).eye(X.shape[0], dtype=X.dtype), Euclidean()
        else:
            output_kernel = as_scalar_kernel(self.output_kernel or task_loss.output_kernel())
            targets, representation = as_like(_gram(output_kernel, outputs), X), KernelOutputs("precomputed")
        space = TaskSpace(task_loss, outputs)
        return self._prepared(
            X, targets, sample_weight, loss, kernel, representation, extra=(decoder.validate(), space)
        )

    def _finish(self, sample: Sample) -> None:
        decoder, space = sample.extra
        seen = slice(None) if sample.kept is None else sample.kept
        self.task_loss_, self.decoder_ = space.task_loss, decoder.fit(space.outputs_[seen], space)

    def _measure(self, sample: Sample, folds: list[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        decoder, space = sample.extra
        kept = np.arange(sample.n) if sample.kept is None else sample.kept
        representation, like = sample.representation, sample.problem.targets

        def weights(coordinates: np.ndarray) -> np.ndarray:
            return host(self._as_weights(as_like(coordinates, like), representation)).astype(np.float64)

        self._kept, self._n_outputs = sample.kept, sample.n
        return fold_measure(decoder, space, space.outputs_[kept], folds, weights, space.task_loss)

    @property
    def losses(self) -> Sequence[Loss | str]:  # type: ignore[override]
        """Return the one surrogate, for the cross-validation of lam."""
        return (self.surrogate,)

    def _estimator(self, loss: Loss | str, lam: float) -> "LossTrickPredictor":
        found: LossTrickPredictor = clone(self).set_params(surrogate=loss, lam=lam, lams=None)
        found.lam_ = lam
        return found

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        with suppress(TypeError, ValueError):  # fit raises the error, with its message
            tags.input_tags.pairwise = as_operator_kernel(self.kernel, None).is_pairwise
        return tags


def as_task_loss(value: Any) -> TaskLoss:
    """Return a task loss of its own: from an instance, a short name, a function of two outputs, or a matrix."""
    value = from_name(value, task_loss_room, "task_loss")
    if isinstance(value, TaskLoss):
        return clone(value)
    if callable(value):
        return Delta(value)
    if isinstance(value, list | tuple | np.ndarray):
        return LossMatrix(value)
    raise TypeError(
        "The 'task_loss' parameter must be a TaskLoss, a short name, a function delta(y, z) or a matrix of losses. "
        f"Got {value!r} instead."
    )


def _gram(kernel: Any, outputs: Any) -> np.ndarray:
    """Return the Gram matrix of outputs."""
    if kernel.is_pairwise:
        raise IncompatibleError("The output kernel of the loss trick takes outputs, not their Gram matrix.")
    points = outputs[:, None] if outputs.ndim == 1 and outputs.dtype.kind in "biuf" else outputs
    return np.asarray(kernel.resolve(points)(points))


def _is_auto(decoder: Any) -> bool:
    return isinstance(decoder, str) and decoder == "auto"
