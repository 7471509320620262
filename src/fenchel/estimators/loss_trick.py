"""The loss trick: consistent structured prediction for any task loss."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags

from fenchel import decoders as decoder_room
from fenchel import task_losses as task_loss_room
from fenchel._array import Array, Outputs, as_index, as_like, device, host, is_host, is_numpy, namespace
from fenchel._check import check_memory
from fenchel._component import from_name
from fenchel.decoders import Decoder
from fenchel.estimators.decoder_choice import DecoderChoice
from fenchel.estimators.fitted_dual import FITTED, FittedDual, KernelExpansion, expose, fit_refined
from fenchel.estimators.kernel_choice import KernelChoice, is_auto
from fenchel.estimators.memory import check_fits
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.search import SEARCHED, Search, expose_best
from fenchel.estimators.training_set import TrainingSet, encode
from fenchel.estimators.validation import (
    DualSettings,
    all_or_nothing,
    new_inputs,
    part_of,
    training_inputs,
)
from fenchel.exceptions import IncompatibleError
from fenchel.kernel_search import search_kernel
from fenchel.kernels import Constant, as_operator_kernel, as_scalar_kernel
from fenchel.kernels.base import ScalarKernel
from fenchel.losses import Loss
from fenchel.losses.profile import Quadratic
from fenchel.representations import Euclidean, KernelOutputs, Representation
from fenchel.reweighted_ridge import double_expansion
from fenchel.solvers import Solver
from fenchel.task_losses import Delta, LossMatrix, TaskLoss, TaskSpace

__all__ = ["LossTrickPredictor"]

_FITTED = ("decoder_", "task_loss_")  # attributes of the best estimator besides the common ones
_LAM = 1e-3  # default for a given kernel
_PROFILE = 100  # number of training outputs whose costs are predicted in the kernel search


@dataclass(frozen=True)
class _Encoded:
    training_set: TrainingSet
    decoder: Decoder  # not fitted
    space: TaskSpace
    is_expanded: bool  # whether duals are in the feature space of the outputs and are expanded into weights
    is_single: bool  # outputs came in float32

    @property
    def outputs(self) -> Outputs:
        """The outputs with a positive weight."""
        index = self.training_set.index
        return self.space.outputs_[slice(None) if index is None else index]


class LossTrickPredictor(NamedPartsMixin, BaseEstimator):
    r"""Structured prediction for any task loss, through weights on the training outputs.

    .. math:: \hat f(x) = \arg\min_y \sum_{i=1}^n \alpha_i(x) \, \Delta(y, y_i), \qquad
        \alpha(x) = (K + n \lambda I)^{-1} K_x .

    Parameters
    ----------
    kernel : "auto", str, kernel or callable, default="auto"
        Kernel of the inputs, as for ``OperatorKernelRegressor``. ``"auto"`` searches for a kernel on the columns of X,
        whose units do not matter: the one that best predicts, by leave-one-out, the costs of 100 training outputs.
    task_loss : TaskLoss, str, callable or array, default="least_squares"
        Cost of a prediction: a loss of ``fenchel.task_losses`` or its short name, a function ``delta(y, z)`` of a
        predicted and a true output, or the matrix of a ``LossMatrix``.
    lam : float or "auto", default="auto"
        Weight of the squared norm; ignored if ``lams`` is given. With ``kernel="auto"``, ``"auto"`` is chosen by
        cross-validation on the task loss, as in ``OperatorKernelRegressorCV``; with a given kernel it is 1e-3.
    surrogate : Loss or str, default="square"
        The loss with which the weights are learned. ``"square"`` gives the weights above for every output kernel.
        Another loss, such as ``Huber(0.5)``, is solved through its dual in the feature space of ``output_kernel``, and
        the double expansion of the duals gives the weights: :math:`K_x \Omega / (\lambda n)`. For losses of the norm
        these are the weights of a weighted ridge regression in which outliers weigh less.
    decoder : Decoder or str, default="auto"
        ``"auto"`` is the decoder of the task loss. ``"training_set"`` and ``"candidates"`` work with every task loss.
    output_kernel : str, kernel, callable or None, default=None
        Kernel of the outputs for a surrogate other than the square loss; ``None`` means the kernel of the task loss.
    lams : sequence of float or None, default=None
        Regularisation weights to choose from by cross-validation on the task loss; all share one factorisation.
    cv, aggregate
        As for ``OperatorKernelRegressorCV``, for the choice among ``lams``.
    solver, tol, max_iter
        As for ``OperatorKernelRegressor``.

    Attributes
    ----------
    dual_coef_, primal_objective_, dual_objective_, duality_gap_, n_iter_, status_, support_, sparsity_, outlier_score_
        As for ``OperatorKernelRegressor``, for the surrogate problem.
    lam_ : float
        The value of lam that was used.
    best_kernel_, search_ : kernel and dict
        As for ``OperatorKernelRegressorCV``, with ``kernel="auto"``.
    cv_errors_ : array of shape (1, n_lams)
        Mean task loss of held-out samples; only if lam is chosen by cross-validation.
    task_loss_, decoder_ : TaskLoss, Decoder
        The fitted task loss and decoder.

    Notes
    -----
    Weights are computed with the array library and on the device of X; decoding uses NumPy.

    The weights may be negative and need not sum to one. If the loss is a squared distance between features, the part
    that depends on the prediction alone is known and enters with weight one (see ``LeastSquares`` and
    ``KernelInduced``): the loss trick is then kernel ridge regression, or input-output kernel regression.

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
    >>> model = LossTrickPredictor(task_loss=Cauchy(0.1)).fit(X, y)
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.05)
    True
    """

    _expansion: KernelExpansion
    _is_single: bool

    def __init__(
        self,
        kernel: ScalarKernel | str = "auto",
        task_loss: TaskLoss | str = "least_squares",
        lam: float | str = "auto",
        surrogate: Loss | str = "square",
        decoder: Decoder | str | None = "auto",
        output_kernel: ScalarKernel | str | None = None,
        lams: Sequence[float] | None = None,
        cv: object = 5,
        aggregate: str = "mean",
        solver: Solver | str = "auto",
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
    def fit(self, X: Array, y: Outputs, sample_weight: Array | None = None) -> Self:
        """Learn the weights, after a search for the kernel and lam if these are not given.

        Parameters
        ----------
        X : array of shape (n, d)
            Inputs, or their Gram matrix with ``kernel="precomputed"``.
        y : array of shape (n, ...) or list
            Outputs, in a format that the task loss accepts.
        sample_weight : array of shape (n,) or None, default=None
            Sample weights; a sample of weight 2 counts twice.

        Returns
        -------
        self : LossTrickPredictor
            The fitted model.
        """
        for name in (*FITTED, *SEARCHED, *_FITTED):
            self.__dict__.pop(name, None)  # from an earlier fit, perhaps with other settings
        choice = self._kernel_choice(X, y, sample_weight) if is_auto(self.kernel) else None
        kernel = self.kernel if choice is None else choice.search.kernel
        if self.lams is not None or (choice is not None and is_auto(self.lam)):
            self._search(X, y, sample_weight, kernel, choice)
            self.lam_ = self.best_lam_
            return self
        settings = self._settings()
        encoding = partial(self._encode, X, y, sample_weight, settings, kernel=kernel)
        self.lam_ = settings.lam
        if choice is not None:
            self.best_kernel_, self.search_ = kernel, choice.trials
        return self._expose(*fit_refined(encoding, settings))

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
        X = new_inputs(self, X)
        return namespace(X).astype(self._expansion.predict_coordinates(X), X.dtype, copy=False)

    def predict(self, X: Array, candidates: Outputs = None) -> Outputs:
        """Predict objects.

        Parameters
        ----------
        X : array of shape (m, d)
            Inputs, or their Gram matrix with the training inputs.
        candidates : array, list of arrays or None, default=None
            Candidates shared by all samples, or a list with one set for each sample; ``None`` leaves the choice to the
            decoder.

        Returns
        -------
        y : array or list
            One object for each sample.
        """
        X = new_inputs(self, X)
        weights = host(self._expansion.predict_coordinates(X)).astype(np.float64)
        if candidates is None:
            decoded = self.decoder_.decode(weights)
        else:
            space = self.decoder_.representation_
            decoded = decoder_room.Candidates().fit(space.outputs_, space).decode(weights, candidates)
        return self._as_training_format(decoded, X)

    def score(self, X: Array, y: Outputs) -> float:
        """Return the negative mean task loss.

        Parameters
        ----------
        X, y
            A sample, as for ``fit``.

        Returns
        -------
        score : float
            Larger is better; 0 is perfect for losses that vanish at the true output.
        """
        truth, decoded = (part if is_host(part) else host(part) for part in (y, self.predict(X)))
        return 0.0 - float(np.mean(self.task_loss_(truth, decoded)))

    def _as_training_format(self, decoded: Outputs, X: Array) -> Outputs:
        """Return predictions in the array library and on the device of X; floats get the dtype of the outputs."""
        kind = getattr(decoded, "dtype", np.dtype(object)).kind
        if kind == "f" and self._is_single:
            decoded = decoded.astype(np.float32)
        if is_numpy(X) or kind not in "biuf":
            return decoded
        return namespace(X).asarray(decoded, device=device(X))

    def _settings(self) -> DualSettings:
        resolved = clone(self).set_params(lam=_LAM) if is_auto(self.lam) else self
        return DualSettings.of(resolved, self.surrogate, "surrogate")

    def _set_loss_and_lam(self, loss: Loss, lam: float) -> Self:
        return self.set_params(surrogate=clone(loss), lam=lam)

    def _kernel_choice(self, X: Array, y: Outputs, sample_weight: Array | None) -> KernelChoice:
        """Return the kernel that best predicts the costs of some of the training outputs.

        Costs are not centred, since the weights need not sum to one.
        """
        settings = self._settings()
        encoded = self._encode(X, y, sample_weight, settings, double=True, kernel=Constant())
        training_set, outputs = encoded.training_set, encoded.outputs
        some = np.random.default_rng(0).permutation(len(outputs))[:_PROFILE]
        costs = encoded.space.task_loss.matrix(outputs[some], outputs).T
        search = search_kernel(training_set.X, costs, training_set.weights)
        return KernelChoice.of(encoded, [settings.loss], False, {False: search})

    def _search(
        self, X: Array, y: Outputs, sample_weight: Array | None, kernel: Any, choice: KernelChoice | None
    ) -> None:
        """Choose lam by the task loss, and fit the best model."""
        search = Search.of(self, [self.surrogate])
        estimator: LossTrickPredictor = clone(self).set_params(lams=None, kernel=kernel)
        estimator._set_loss_and_lam(search.losses[0], search.lams[0])
        encoded = estimator._encode(X, y, sample_weight, estimator._settings().swept(), double=True)
        training_set, space = encoded.training_set, encoded.space
        folds = search.folds(training_set)

        def weights(predictions: np.ndarray) -> np.ndarray:
            return host(_spread(predictions, training_set)) if encoded.is_expanded else predictions

        measure = DecoderChoice.of(
            [encoded.decoder],
            space,
            encoded.outputs,
            folds,
            training_set.counts,
            weights,
            lambda truth, decoded, counts: space.task_loss(truth, decoded),
        )
        result = search(training_set, folds, measure, encoded.is_expanded)
        expose_best(self, estimator, encoded, result, _FITTED, choice)
        self._expansion, self._is_single = estimator._expansion, estimator._is_single

    def _encode(
        self,
        X: Array,
        y: Outputs,
        sample_weight: Array | None,
        settings: DualSettings,
        double: bool = False,
        kernel: Any = None,
    ) -> _Encoded:
        """Return checked data; targets are unit vectors for the square loss, else outputs in their feature space."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        kernel = as_operator_kernel(self.kernel if kernel is None else kernel, None).validate()
        X, kernel = training_inputs(self, X, kernel, double)
        task_loss = as_task_loss(self.task_loss).validate()
        outputs = task_loss.check(y if is_host(y) else host(y))
        if len(outputs) != X.shape[0]:
            raise ValueError(f"X and y must have the same number of samples. Got {X.shape[0]} and {len(outputs)}.")
        task_loss = task_loss.resolve(outputs)
        decoder = (
            task_loss.decoder() if is_auto(self.decoder) else part_of(self.decoder, decoder_room, "decoder", Decoder)
        ).validate()
        is_expanded = settings.loss.profile != Quadratic()
        check_fits(X, kernel, settings, 1 if is_expanded else X.shape[0])
        targets, representation = self._targets(X, outputs, task_loss, is_expanded)
        training_set = encode(X, targets, kernel, representation, settings, sample_weight)
        is_single = str(getattr(y, "dtype", "")).endswith("float32")
        return _Encoded(training_set, decoder, TaskSpace(task_loss, outputs), is_expanded, is_single)

    def _targets(
        self, X: Array, outputs: Outputs, task_loss: TaskLoss, is_expanded: bool
    ) -> tuple[Array, Representation]:
        """Return the targets of the dual problem: unit vectors, or the Gram matrix of the outputs."""
        n = X.shape[0]
        if not is_expanded:
            return namespace(X).eye(n, dtype=X.dtype, device=device(X)), Euclidean()
        # the Gram matrix of the outputs, its factor and a copy
        check_memory(24 * n**2, f"A fit of {n} samples", "Fit on a part of the sample")
        kernel = task_loss.output_kernel() if self.output_kernel is None else self.output_kernel
        return as_like(_gram(as_scalar_kernel(kernel).validate(), outputs), X), KernelOutputs("precomputed")

    def _expose(self, encoded: _Encoded, fitted: FittedDual) -> Self:
        """Set the fitted attributes; duals in a feature space are expanded into weights."""
        expose(self, fitted)
        self._is_single = encoded.is_single
        self.task_loss_, self.decoder_ = encoded.space.task_loss, encoded.decoder.fit(encoded.outputs, encoded.space)
        if encoded.is_expanded:
            problem = fitted.problem
            active, omega = double_expansion(problem, fitted.solution)
            if problem.root is not None:
                rows = as_index(active, omega)
                omega = omega * namespace(omega).take(problem.root, rows, axis=0) * problem.root.T
            coef = _spread(omega * problem.scale, encoded.training_set)
            self._expansion = fitted.with_coefficients(coef, active).expansion
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "decoder_")  # a failed fit may have set attributes of X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        with suppress(TypeError, ValueError):  # fit raises the error, with its message
            tags.input_tags.pairwise = as_operator_kernel(self.kernel, None).is_pairwise
        return tags


def as_task_loss(value: object) -> TaskLoss:
    """Return a new task loss from an instance, a short name, a function of two outputs, or a matrix."""
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


def _gram(kernel: ScalarKernel, outputs: Outputs) -> np.ndarray:
    """Return the Gram matrix of outputs."""
    if kernel.tags.is_pairwise:
        raise IncompatibleError("The output kernel of the loss trick needs the outputs, not their Gram matrix.")
    points = outputs[:, None] if outputs.ndim == 1 and outputs.dtype.kind in "biuf" else outputs
    try:
        return np.asarray(kernel.resolve(points)(points))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The kernel {kernel!r} does not accept these outputs: {error} Set output_kernel to one that does; "
            "surrogate='square' needs none."
        ) from error


def _spread(weights: Array, training_set: TrainingSet) -> Array:
    """Pad weights of the samples with a positive sample weight to weights of all given samples."""
    if training_set.index is None:
        return weights
    spread = np.zeros((weights.shape[0], training_set.n_given))
    spread[:, training_set.index] = host(weights)
    return as_like(spread, training_set.targets)
