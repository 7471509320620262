"""Regression with operator-valued kernels."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel import losses as loss_room
from fenchel import representations as representation_room
from fenchel._array import Array, as_like, host, namespace
from fenchel._check import Options, check_parameter
from fenchel._component import from_name
from fenchel.estimators.dask_fit import fit_chunks
from fenchel.estimators.dask_predict import predict_chunks
from fenchel.estimators.dask_sample import is_chunked
from fenchel.estimators.fitted_dual import FittedDual, KernelExpansion, expose, fit_refined
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.prediction_gradient import expansion_gradient
from fenchel.estimators.scoring import R2ScoreMixin
from fenchel.estimators.training_set import TrainingSet, encode
from fenchel.estimators.validation import (
    DualSettings,
    all_or_nothing,
    new_inputs,
    part_of,
    sample_counts,
    training_vectors,
)
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import as_operator_kernel
from fenchel.losses import Loss
from fenchel.representations import Euclidean, Representation
from fenchel.target_scale import TargetScale, standardized_targets

__all__ = ["OperatorKernelRegressor"]


@dataclass(frozen=True)
class _Encoded:
    training_set: TrainingSet
    is_flat: bool  # outputs are numbers, not vectors
    target_scale: TargetScale | None  # the centre and scale of the outputs

    @property
    def units(self) -> Any:
        """Units of the coordinates."""
        return 1.0 if self.target_scale is None else self.target_scale.scale


class OperatorKernelRegressor(NamedPartsMixin, MultiOutputMixin, R2ScoreMixin, BaseEstimator):
    r"""Regression in the space of an operator-valued kernel, with a convex loss and a certified duality gap.

    .. math:: \min_h \; \frac1n \sum_i \ell(y_i - h(x_i)) + \frac\lambda2 \|h\|^2, \qquad
        \hat h = \frac{1}{\lambda n} \sum_i \mathcal K(\cdot, x_i) \, a_i .

    Parameters
    ----------
    kernel : str, kernel or callable, default="gaussian"
        A scalar kernel (instance, short name, scikit-learn kernel object, pairwise name, callable or
        ``"precomputed"``), or an operator-valued kernel. ``"auto"`` is a Gaussian kernel on standardised columns, with
        the median distance as bandwidth.
    operator : OutputOperator, str, array or None, default=None
        The output operator of a scalar kernel: ``None`` (identity), ``"covariance"``, a matrix, a vector (diagonal).
    loss : Loss or str, default="square"
        ``"square"``, ``"huber"``, ``"epsilon_ridge"``, ``"epsilon_svr"``, ... or an instance such as ``Huber(0.5)``.
    lam : float, default=1e-3
        Weight of the squared norm; with the square loss ``lam * n`` is the ``alpha`` of ``KernelRidge``.
    solver : Solver or str, default="auto"
        ``"auto"`` or a solver's name or instance.
    tol : float, default=1e-6
        The relative duality gap at which the solver stops.
    max_iter : int or None, default=None
        Maximum number of iterations; ``None`` means the solver's default.
    representation : Representation, str or None, default=None
        How outputs become coordinates; ``None`` means ``Euclidean()``. With ``GramFactor()``, ``y`` is the Gram matrix
        of the outputs and predictions are inner products with the training outputs.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` replaces the kernel by one with 500 features, without forming an n × n matrix.
    center : bool or "robust", default=False
        Whether to subtract the mean from the outputs; it is added back to predictions. ``"robust"`` uses the mean of
        the values that are at most three robust standard deviations from the median.
    scale : bool or "robust", default=False
        Whether to divide each output by its standard deviation; predictions are multiplied by it. Thresholds of the
        loss, ``dual_coef_`` and the objectives are then in these units. ``"robust"`` uses a quantile of the distances
        to the median instead.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        Which duality gap to report for a model with an approximation: that of the approximate kernel; that of the exact
        kernel, estimated from 2000 of its rows; or that of the exact kernel, computed in one pass over it. Without an
        approximation the gap is always exact.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, p)
        Dual variables :math:`a_i`.
    center_, scale_ : array of shape (p,) or None
        The centre and the scales of the outputs; ``None`` if they are neither centred nor scaled.
    loss_ : Loss
        The loss, with relative thresholds such as that of ``Huber("auto")`` resolved to numbers.
    primal_objective_, dual_objective_ : float
        Values of the primal and the dual objective.
    duality_gap_ : float
        Relative duality gap :math:`(P - D) / \max(|P|, 10^{-10} P(0))`.
    n_iter_ : int
        Number of iterations of the solver.
    certificate_ : {"exact", "sampled", "approximate"}
        Whether the gap is that of the exact kernel, an estimate of it, or that of the approximation.
    duality_gap_standard_error_ : float
        Standard error of the estimated gap, with ``certificate="sampled"``.
    status_ : str
        Why the solver stopped.
    support_ : array of int
        Indices of the samples with a non-zero dual variable; only these are kept for prediction.
    sparsity_ : float
        Fraction of samples with a zero dual variable.
    outlier_score_ : array of shape (n,)
        Norm of the dual variable divided by its bound, in [0, 1]; 1 is a clipped sample. Only for losses with bounded
        duals.
    solver_info_ : dict
        The ``solver`` that found the duals and the ``reason`` why it was chosen. ``stages`` lists every solver that
        ``"auto"`` ran, with ``solver``, ``reason``, ``n_iter``, ``gap`` and ``status``.
    history_ : list of (int, float)
        Iteration and relative gap at each convergence check.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    With sample weights :math:`s_i` the loss is :math:`\frac1S \sum_i s_i \ell(\cdot)` with :math:`S = \sum_i s_i`. A
    weight of 2 is equivalent to repeating the sample, and a weight of 0 to removing it.

    References
    ----------
    [Laforgue2020]_, Thm 3, 4 and 6.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.losses import Huber
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> Y = np.hstack([np.sin(X), np.cos(X)])
    >>> Y[5] += 10  # an outlier
    >>> model = OperatorKernelRegressor(loss=Huber(0.1), lam=1e-3).fit(X, Y)
    >>> bool(model.duality_gap_ <= 1e-6), int(np.argmax(model.outlier_score_))
    (True, 5)
    """

    _expansion: KernelExpansion
    center_: Any
    scale_: Any
    representation_: Representation

    def __init__(
        self,
        kernel: Any = "gaussian",
        operator: Any = None,
        loss: Any = "square",
        lam: float = 1e-3,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        representation: Representation | None = None,
        approximation: Any = None,
        center: bool | str = False,
        scale: bool | str = False,
        certificate: str = "approximate",
    ) -> None:
        self.kernel = kernel
        self.operator = operator
        self.loss = loss
        self.lam = lam
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.representation = representation
        self.approximation = approximation
        self.center = center
        self.scale = scale
        self.certificate = certificate

    @all_or_nothing
    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n, d)
            Inputs, or their Gram matrix with ``kernel="precomputed"``. Dask arrays are fitted on the workers of the
            current client.
        y : array of shape (n,) or (n, p)
            Outputs.
        sample_weight : array of shape (n,) or None, default=None
            Sample weights; a sample of weight 2 counts twice.

        Returns
        -------
        self : OperatorKernelRegressor
            The fitted model.
        """
        settings = self._settings()
        if is_chunked(X):
            kernel = as_operator_kernel(self.kernel, self.operator).validate()
            fit_chunks(self, X, y, sample_weight, kernel, settings)
            return self
        encoding = partial(self._encode, X, y, sample_weight, settings)
        return self._expose(*fit_refined(encoding, settings))

    def predict(self, X: Array) -> Array:
        """Predict outputs.

        Parameters
        ----------
        X : array of shape (m, d)
            Inputs, or their Gram matrix with the training inputs, shape (m, n).

        Returns
        -------
        y : array of shape (m,) or (m, p)
            Predictions.
        """
        if is_chunked(X):
            check_is_fitted(self)
            return predict_chunks(self, X)
        X = new_inputs(self, X)
        decoded = self.representation_.decode(self._expansion.predict_coordinates(X))
        if self.center_ is not None:
            decoded = TargetScale(self.center_, self.scale_).decode(decoded)
        decoded = namespace(X).astype(decoded, X.dtype, copy=False)
        return decoded[:, 0] if self._is_flat else decoded

    def gradient(self, X: Array, almost_everywhere: bool = False) -> Array:
        """Return the derivatives of the predictions with respect to the columns of X.

        Parameters
        ----------
        X : array of shape (m, d)
            Input vectors.
        almost_everywhere : bool, default=False
            Whether to accept ``Laplacian`` and ``Matern(nu=0.5)``, whose derivative jumps at training inputs; there,
            the mean of both sides is returned. By default such a kernel raises an error, as does any other kernel
            without a derivative.

        Returns
        -------
        gradient : array of shape (m, d) or (m, p, d)
            The derivatives, in units of the outputs per unit of the inputs.
        """
        X = new_inputs(self, X)
        xp = namespace(X)
        found = expansion_gradient(self._expansion, X, almost_everywhere=almost_everywhere)
        m, p, d = found.shape
        rows = self.representation_.decode(xp.reshape(xp.permute_dims(found, (0, 2, 1)), (m * d, p)))
        if self.scale_ is not None:
            rows = rows * as_like(self.scale_, rows)
        decoded = xp.permute_dims(xp.reshape(rows, (m, d, -1)), (0, 2, 1))
        decoded = xp.astype(decoded, X.dtype, copy=False)
        return decoded[:, 0, :] if self._is_flat else decoded

    def _settings(self) -> DualSettings:
        return DualSettings.of(self, self.loss)

    def _set_loss_and_lam(self, loss: Loss, lam: float) -> Self:
        return self.set_params(loss=clone(loss), lam=lam)

    def _encode(
        self, X: Any, y: Any, sample_weight: Array | None, settings: DualSettings, double: bool = False
    ) -> _Encoded:
        """Return checked data in coordinates."""
        kernel = as_operator_kernel(self.kernel, self.operator).validate()
        X, y = training_vectors(self, X, y, double, takes_sparse=True)
        if hasattr(self, "feature_names_in_"):
            kernel = kernel.named(self.feature_names_in_)
        given = "euclidean" if self.representation is None else self.representation
        representation: Representation = part_of(given, representation_room, "representation", Representation)
        if representation.validate().is_functional:
            raise IncompatibleError(f"{representation!r} is for curves. Use FunctionalRegressor.")
        target_scale = self._target_scale_of(y, sample_weight, representation)
        outputs = y if target_scale is None else target_scale.encode(y[:, None] if y.ndim == 1 else y)
        training_set = encode(X, outputs, kernel, representation, settings, sample_weight)
        return _Encoded(training_set, y.ndim == 1, target_scale)

    def _target_scale_of(self, y: Array, sample_weight: Array | None, representation: Any) -> TargetScale | None:
        """Return the centre and the scales of the outputs; ``None`` if neither is requested."""
        options = {"center": self.center, "scale": self.scale}
        for name, value in options.items():
            check_parameter(type(self).__name__, name, value, Options((False, True, "robust")))
        if not any(options.values()):
            return None
        if not isinstance(representation, Euclidean):
            raise IncompatibleError(
                f"center and scale are for vector outputs. Got {representation!r}. Use center=False and scale=False."
            )
        counts = sample_counts(sample_weight, y)
        Y = host(y[:, None] if y.ndim == 1 else y)[counts > 0]
        of = {name: standardized_targets(Y, counts[counts > 0], robust=options[name] == "robust") for name in options}
        zeros, ones = np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        center = of["center"].center if self.center else zeros
        return TargetScale(center, of["scale"].scale if self.scale else ones)

    def _expose(self, encoded: _Encoded, fitted: FittedDual) -> Self:
        """Set the fitted attributes."""
        expose(self, fitted)
        self._is_flat = encoded.is_flat
        self.center_ = None if encoded.target_scale is None else encoded.target_scale.center
        self.scale_ = None if encoded.target_scale is None else encoded.target_scale.scale
        if self._is_flat:
            self.dual_coef_ = fitted.duals.coef[:, 0]
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        try:
            loss = from_name(self.loss, loss_room, "loss")
            tags.regressor_tags.poor_score = isinstance(loss, Loss) and not loss.fits_targets
            tags.input_tags.pairwise = as_operator_kernel(self.kernel, self.operator).is_pairwise
        except (TypeError, ValueError):
            pass  # fit raises the error, with its message
        return tags
