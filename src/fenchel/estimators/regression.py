"""Regression with operator-valued kernels."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel import representations as representation_room
from fenchel._array import Array, as_like, namespace
from fenchel._check import check_array
from fenchel.estimators.base import all_or_nothing, part_of
from fenchel.estimators.core import KernelRegressorMixin, Sample, is_host, new_inputs, validated
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import as_operator_kernel
from fenchel.losses import Loss
from fenchel.representations import Representation

__all__ = ["OperatorKernelRegressor"]


class OperatorKernelRegressor(KernelRegressorMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Regression in the space of an operator-valued kernel, with a convex loss and a certified duality gap.

    .. math:: \min_h \; \frac1n \sum_i \ell(y_i - h(x_i)) + \frac\lambda2 \|h\|^2, \qquad
        \hat h = \frac{1}{\lambda n} \sum_i \mathcal K(\cdot, x_i) \, a_i .

    Parameters
    ----------
    kernel : str, kernel or callable, default="gaussian"
        A scalar kernel (instance, short name, scikit-learn kernel object, pairwise name, callable or
        ``"precomputed"``), or an operator-valued kernel.
    operator : OutputOperator, str, array or None, default=None
        The output operator of a scalar kernel: ``None`` (identity), ``"covariance"``, a matrix, a vector (diagonal).
    loss : Loss or str, default="square"
        ``"square"``, ``"huber"``, ``"epsilon_ridge"``, ``"epsilon_svr"``, ... or an instance such as ``Huber(0.5)``.
    lam : float, default=1e-3
        Weight of the squared norm; with the square loss ``lam * n`` is the ``alpha`` of ``KernelRidge``.
    solver : Solver or str, default="auto"
        ``"auto"`` or a solver's name or instance.
    tol : float, default=1e-6
        The relative duality gap at which the fit is done.
    max_iter : int or None, default=None
        Most iterations; ``None`` is the solver's default.
    representation : Representation, str or None, default=None
        How outputs become coordinates; ``None`` is ``Euclidean()``. With ``GramFactor()``, ``y`` is the Gram matrix of
        the outputs and predictions are inner products with the training outputs.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` replaces the kernel by one with 500 features: no n × n matrix is made.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, p)
        Dual variables :math:`a_i`.
    primal_objective_, dual_objective_ : float
        Values of the primal and of the dual problem.
    duality_gap_ : float
        Their difference, relative: :math:`(P - D) / \max(|P|, 10^{-10} P(0))`.
    n_iter_ : int
        Iterations of the solver.
    certificate_ : {"exact", "approximate"}
        Whether the gap is that of the kernel or of its approximation.
    status_ : str
        How the solve ended.
    support_ : array of int
        Indices of the samples with a non-zero dual variable; only these are kept for prediction.
    sparsity_ : float
        Share of samples with a null dual variable.
    outlier_score_ : array of shape (n,)
        Dual norm over its bound, in [0, 1]; 1 is a clipped sample. Only for losses with bounded duals.
    solver_info_ : dict
        ``solver`` found the duals, for this ``reason``; ``stages`` lists every solver that ``"auto"`` ran: ``solver``,
        ``reason``, ``n_iter``, ``gap`` and ``status``.
    history_ : list of (int, float)
        Iteration and relative gap at each test.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    Sample weights :math:`s_i` count samples: the loss is :math:`\frac1S \sum_i s_i \ell(\cdot)` with
    :math:`S = \sum_i s_i`, so a weight of 2 is a sample that occurs twice and a weight of 0 one that is not there.

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

    @all_or_nothing
    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n, d)
            Inputs, or their Gram matrix with ``kernel="precomputed"``.
        y : array of shape (n,) or (n, p)
            Outputs.
        sample_weight : array of shape (n,) or None, default=None
            How often each sample counts.

        Returns
        -------
        self : OperatorKernelRegressor
            The fitted model.
        """
        return self._fit(X, y, sample_weight=sample_weight)

    def _sample(
        self,
        X: Any,
        y: Any,
        loss: Loss,
        double: bool = False,
        sample_weight: Array | None = None,
        grid: Array | None = None,
    ) -> Sample:
        """Return the dual problem of a sample, with what is needed to make a fitted model of its solution."""
        if grid is not None:
            raise TypeError("OperatorKernelRegressor has no grid: its outputs are vectors. Use FunctionalRegressor.")
        kernel = as_operator_kernel(self.kernel, self.operator).validate()
        X, y = self._checked(X, y)
        if double:
            xp = namespace(X)
            X, y = xp.astype(X, xp.float64), xp.astype(y, xp.float64)
        if hasattr(self, "feature_names_in_"):
            kernel = kernel.named(self.feature_names_in_)
        wanted = "euclidean" if self.representation is None else self.representation
        representation = part_of(wanted, representation_room, "representation", Representation).validate()
        if representation.is_functional:
            raise IncompatibleError(f"{representation!r} is for curves. Use FunctionalRegressor.")
        return self._prepared(X, y, sample_weight, loss, kernel, representation, extra=y.ndim == 1)

    def _finish(self, sample: Sample) -> None:
        self._is_flat = bool(sample.extra)
        if self._is_flat:
            self.dual_coef_ = self.dual_coef_[:, 0]

    def predict(self, X: Array) -> Array:
        """Predict.

        Parameters
        ----------
        X : array of shape (m, d)
            Inputs, or their Gram matrix with the training inputs, shape (m, n).

        Returns
        -------
        y : array of shape (m,) or (m, p)
            Predictions.
        """
        check_is_fitted(self)
        X = new_inputs(self, X)
        decoded = self.representation_.decode(self._coordinates(X))
        decoded = namespace(X).astype(decoded, X.dtype, copy=False)
        return decoded[:, 0] if self._is_flat else decoded

    def _checked(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Return X and y as arrays of one floating dtype."""
        if is_host(X):
            X, y = validated(self, X, y, multi_output=True, y_numeric=True)
            return X, np.asarray(y, dtype=X.dtype)
        X, y = check_array(X, "X"), check_array(as_like(y, X), "y", ndim=(1, 2))
        if X.shape[0] != y.shape[0]:
            raise ValueError(f"X and y must have as many samples. Got {X.shape[0]} and {y.shape[0]}.")
        self.n_features_in_ = X.shape[1]
        return X, y

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            loss, _ = self._parts()
            tags.regressor_tags.poor_score = not loss.fits_targets
            tags.input_tags.pairwise = as_operator_kernel(self.kernel, self.operator).is_pairwise
        except (TypeError, ValueError):
            pass  # fit raises the error, with its message
        return tags
