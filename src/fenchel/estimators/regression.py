"""Regression with operator-valued kernels."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from fenchel import representations as representation_room
from fenchel._array import Array, as_index, as_like, device, host, is_numpy, namespace
from fenchel._check import check_array, check_memory
from fenchel.estimators.base import CertifiedMixin, part_of
from fenchel.kernels import as_operator_kernel
from fenchel.losses import Loss
from fenchel.problem import DualProblem
from fenchel.representations import Representation
from fenchel.solvers import Solution

__all__ = ["OperatorKernelRegressor"]

_BLOCK_BYTES = 2**28  # Gram blocks of a prediction stay below 256 MiB


@dataclass(frozen=True)
class Sample:
    """A checked training sample: its dual problem, and what turns duals into predictions."""

    problem: DualProblem
    X: Array
    bound: Any
    representation: Representation
    is_pairwise: bool
    weights: Array | None
    kept: np.ndarray | None  # indices of the samples with a positive weight, None for all
    n: int
    is_flat: bool


class OperatorKernelRegressor(CertifiedMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
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
    status_ : str
        How the solve ended.
    support_ : array of int
        Indices of the samples with a non-zero dual variable; only these are kept for prediction.
    sparsity_ : float
        Share of samples with a null dual variable.
    outlier_score_ : array of shape (n,)
        Dual norm over its bound, in [0, 1]; 1 is a clipped sample. Only for losses with bounded duals.
    solver_info_ : dict
        Which solver ran, and why.
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
    ) -> None:
        self.kernel = kernel
        self.operator = operator
        self.loss = loss
        self.lam = lam
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.representation = representation

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
        loss, solver = self._parts()
        sample = self._sample(X, y, sample_weight, loss)
        solution = self._solve(sample.problem, solver)
        return self._fitted(sample, solution)

    def _sample(self, X: Array, y: Array, sample_weight: Array | None, loss: Loss) -> "Sample":
        """Return the dual problem of a sample, with what is needed to make a fitted model of its solution."""
        kernel = as_operator_kernel(self.kernel, self.operator).validate()
        X, y = self._checked(X, y)
        xp, n = namespace(X), X.shape[0]
        weights, kept = _sample_weights(sample_weight, X)
        wanted = "euclidean" if self.representation is None else self.representation
        representation = part_of(wanted, representation_room, "representation", Representation).validate()
        if kernel.is_pairwise and X.shape[1] != n:
            raise ValueError(f"X must be a square Gram matrix with a precomputed kernel. Got shape {tuple(X.shape)}.")
        if kept is not None:
            index = as_index(kept, X)
            X, y = xp.take(X, index, axis=0), representation.take(y, index)
            X = xp.take(X, index, axis=1) if kernel.is_pairwise else X
        size = 3 * X.shape[0] ** 2 * xp.finfo(X.dtype).bits // 8
        check_memory(size, f"The Gram matrix of {n} samples", "Fit on a part of the sample.")
        targets = representation.fit(y, weights).targets_
        bound = kernel.bind(X, representation)
        problem = DualProblem.build(bound.gram(X), targets, loss, self.lam, weights, representation.point_scale)
        return Sample(problem, X, bound, representation, kernel.is_pairwise, weights, kept, n, y.ndim == 1)

    def _fitted(self, sample: "Sample", solution: Solution) -> Self:
        """Keep of a certified solution what prediction needs: the support only."""
        xp, index = namespace(sample.X), as_index(self.support_, sample.X)
        duals = self.dual_coef_ if sample.weights is None else self.dual_coef_ * sample.weights[:, None]
        self._coef = xp.take(duals, index, axis=0) / (self.lam * sample.problem.total)
        self._bound, self._is_pairwise, self._is_flat = sample.bound, sample.is_pairwise, sample.is_flat
        self.X_fit_ = xp.take(sample.X, index, axis=0)
        self.representation_ = sample.representation
        if sample.kept is not None:
            self._restore(sample.n, sample.kept)
        if self._is_flat:
            self.dual_coef_ = self.dual_coef_[:, 0]
        return self

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
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32]) if _is_host(X) else check_array(X, "X")
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} features, but the model was fitted with {self.n_features_in_}.")
        xp = namespace(X)
        if self._is_pairwise:
            X = xp.take(X, as_index(self.support_, X), axis=1)
        rows = max(1, _BLOCK_BYTES // (8 * max(1, self._coef.shape[0])))
        blocks = [self._predict_block(X[k : min(k + rows, X.shape[0]), :]) for k in range(0, X.shape[0], rows)]
        coordinates = blocks[0] if len(blocks) == 1 else xp.concat(blocks)
        decoded = self.representation_.decode(coordinates)
        return decoded[:, 0] if self._is_flat else decoded

    def _predict_block(self, X: Array) -> Array:
        if self._coef.shape[0] == 0:
            xp = namespace(X)
            return xp.zeros((X.shape[0], self._coef.shape[1]), dtype=X.dtype, device=device(X))
        return self._bound.gram(X, self.X_fit_).matmul(as_like(self._coef, X))

    def _checked(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Return X and y as arrays of one floating dtype."""
        if _is_host(X):
            X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=[np.float64, np.float32])
            return X, np.asarray(y, dtype=X.dtype)
        X, y = check_array(X, "X"), check_array(as_like(y, X), "y", ndim=(1, 2))
        if X.shape[0] != y.shape[0]:
            raise ValueError(f"X and y must have as many samples. Got {X.shape[0]} and {y.shape[0]}.")
        self.n_features_in_ = X.shape[1]
        return X, y

    def _restore(self, n: int, kept: np.ndarray) -> None:
        """Put the samples of weight zero back: they have null duals."""
        place = np.full(n, len(kept))  # where each sample's row is; the last row is one of zeros
        place[kept] = np.arange(len(kept))
        self.dual_coef_ = _padded_take(self.dual_coef_, place)
        self.support_ = kept[self.support_]
        self.sparsity_ = 1 - len(self.support_) / n
        if hasattr(self, "outlier_score_"):
            self.outlier_score_ = _padded_take(self.outlier_score_, place)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            loss, _ = self._parts()
            tags.regressor_tags.poor_score = not loss.fits_targets
            tags.input_tags.pairwise = as_operator_kernel(self.kernel, self.operator).is_pairwise
        except (TypeError, ValueError):
            pass  # fit raises the error, with its message
        return tags


def _is_host(X: Any) -> bool:
    """Tell whether X is for scikit-learn's validation: NumPy, pandas, lists; not an array of another library."""
    try:
        return is_numpy(X)
    except TypeError:
        return True


def _padded_take(rows: Array, place: np.ndarray) -> Array:
    """Return the rows at the given places, the place past the last row being a row of zeros."""
    xp = namespace(rows)
    return xp.take(xp.concat([rows, 0 * rows[:1, ...]]), as_index(place, rows), axis=0)


def _sample_weights(weights: Array | None, X: Array) -> tuple[Array | None, np.ndarray | None]:
    """Return positive weights and the indices that they belong to (``None``: all)."""
    if weights is None:
        return None, None
    n = X.shape[0]
    values = np.asarray(weights if _is_host(weights) else host(weights), dtype=np.float64)
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},). Got {values.shape} instead.")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError("sample_weight must hold finite non-negative numbers. Got a negative, NaN or infinite one.")
    if not np.any(values > 0):
        raise ValueError("sample_weight must have at least one positive entry. Got zeros only.")
    kept = np.flatnonzero(values > 0)
    return as_like(values[kept], X), None if len(kept) == n else kept
