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
from fenchel._array import Array, as_index, as_like, device, host, is_numpy, namespace
from fenchel._check import check_memory
from fenchel._component import from_name
from fenchel.decoders import Decoder
from fenchel.estimators.base import all_or_nothing, part_of
from fenchel.estimators.core import KernelRegressorMixin, Sample, checked_inputs, is_host, new_inputs
from fenchel.estimators.search import CrossValidatedMixin
from fenchel.estimators.structured_selection import fold_measure
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import as_operator_kernel, as_scalar_kernel
from fenchel.losses import Loss, Square
from fenchel.representations import Euclidean, KernelOutputs
from fenchel.reweighted_ridge import double_expansion
from fenchel.solvers import Solution
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
        Another loss, such as ``Huber(0.5)``, is solved through its dual in the feature space of ``output_kernel``, and
        the double expansion of the duals gives the weights: :math:`K_x \Omega / (\lambda n)`. For a loss of the norm
        they are those of a weighted ridge regression, with less weight on outliers.
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

    @all_or_nothing
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
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # of an earlier fit, perhaps with other parts
        fit = self._fit if self.lams is None else self._choose
        fit(X, y, sample_weight)
        self.lam_ = self.lam if self.lams is None else self.best_lam_
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
        X = new_inputs(self._chosen(), X)
        return namespace(X).astype(self._chosen()._coordinates(X), X.dtype, copy=False)

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
        check_is_fitted(self)
        chosen = self._chosen()
        X = new_inputs(chosen, X)
        weights = host(chosen._coordinates(X)).astype(np.float64)
        if candidates is None:
            found = chosen.decoder_.decode(weights)
        else:
            space = chosen.decoder_.representation_
            found = decoder_room.Candidates().fit(space.outputs_, space).decode(weights, candidates)
        return chosen._as_outputs(found, X)

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

    def _as_outputs(self, found: Any, X: Array) -> Any:
        """Return predictions in the array library and on the device of X; floats in the dtype of the outputs."""
        kind = getattr(found, "dtype", np.dtype(object)).kind
        if kind == "f" and self._single:
            found = found.astype(np.float32)
        if is_numpy(X) or kind not in "biuf":
            return found
        return namespace(X).asarray(found, device=device(X))

    def _is_expanded(self, sample: Sample) -> bool:
        return not isinstance(sample.representation, Euclidean)

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
        self._single = str(getattr(y, "dtype", "")).endswith("float32")
        if isinstance(loss, Square):
            self._check_fits(X, kernel, X.shape[0])
            targets, representation = namespace(X).eye(X.shape[0], dtype=X.dtype, device=device(X)), Euclidean()
        else:
            self._check_fits(X, kernel)
            n = X.shape[0]  # the Gram matrix of the outputs, its factor and a copy
            check_memory(24 * n**2, f"A fit of {n} samples", "Fit on a part of the sample")
            output_kernel = task_loss.output_kernel() if self.output_kernel is None else self.output_kernel
            targets = as_like(_gram(as_scalar_kernel(output_kernel).validate(), outputs), X)
            representation = KernelOutputs("precomputed")
        space = TaskSpace(task_loss, outputs)
        return self._prepared(
            X, targets, sample_weight, loss, kernel, representation, extra=(decoder.validate(), space)
        )

    def _fitted(self, sample: Sample, solution: Solution, warn: bool = False) -> Self:
        """Keep of a certified solution what makes weights: for the square loss its duals do, else their expansion."""
        super()._fitted(sample, solution, warn)
        if self._is_expanded(sample):
            problem = sample.problem.with_(lam=self.lam)
            active, omega = double_expansion(problem, solution)
            if problem.root is not None:
                rows = as_index(active, omega)
                omega = omega * namespace(omega).take(problem.root, rows, axis=0) * problem.root.T
            self._set_coefficients(self._spread(omega * problem.scale, sample), sample)
        return self

    def _spread(self, weights: Array, sample: Sample) -> Array:
        """Return weights of the samples that were kept as weights of all."""
        if sample.kept is None:
            return weights
        spread = np.zeros((weights.shape[0], sample.n))
        spread[:, sample.kept] = host(weights)
        return as_like(spread, sample.problem.targets)

    def _finish(self, sample: Sample) -> None:
        decoder, space = sample.extra
        seen = slice(None) if sample.kept is None else sample.kept
        self.task_loss_, self.decoder_ = space.task_loss, decoder.fit(space.outputs_[seen], space)

    def _measure(self, sample: Sample, folds: list[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        decoder, space = sample.extra
        seen = slice(None) if sample.kept is None else sample.kept

        def weights(predictions: np.ndarray) -> np.ndarray:
            return host(self._spread(predictions, sample)) if self._is_expanded(sample) else predictions

        return fold_measure(decoder, space, space.outputs_[seen], folds, weights, space.task_loss)

    @property
    def losses(self) -> Sequence[Loss | str]:  # type: ignore[override]
        """Return the one surrogate, for the cross-validation of lam."""
        return (self.surrogate,)

    def _estimator(self, loss: Loss | str, lam: float) -> "LossTrickPredictor":
        found: LossTrickPredictor = clone(self).set_params(surrogate=loss, lam=lam, lams=None)
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "decoder_")  # a fit that failed has looked at X

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
    try:
        return np.asarray(kernel.resolve(points)(points))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The kernel {kernel!r} does not take these outputs: {error} Give output_kernel, a kernel of such outputs; "
            "surrogate='square' needs none."
        ) from error


def _is_auto(decoder: Any) -> bool:
    return isinstance(decoder, str) and decoder == "auto"
