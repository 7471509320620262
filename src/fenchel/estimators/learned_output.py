"""Regression with an output operator that is learned together with the model."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array
from fenchel._check import Interval, check_parameter
from fenchel.estimators.output_blocks import OperatorFit, OperatorSet, held_out_errors, learn_operator
from fenchel.estimators.regression import OperatorKernelRegressor
from fenchel.estimators.regression_cv import OperatorKernelRegressorCV
from fenchel.estimators.scoring import R2ScoreMixin
from fenchel.estimators.search import Search
from fenchel.estimators.training_set import TrainingSet
from fenchel.estimators.validation import all_or_nothing, warn_user
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Matrix
from fenchel.problem import DualProblem
from fenchel.solvers import Auto

__all__ = ["LearnedOutputRegressor"]

_STEPS = 10.0 ** np.array([0.0, 0.5, 1.0])  # lam over that of the identity, which spreads its trace over all directions
_FOLD_TOL = 1e-3  # gap of the joint problem to which folds are solved
_NULL = 1e-10  # eigenvalues of the learned part below this share of the largest are round-off


class LearnedOutputRegressor(MultiOutputMixin, R2ScoreMixin, BaseEstimator):
    r"""Multi-output regression with an output operator that is learned together with the model.

    .. math:: \min_{h, A} \; \frac1n \sum_i \ell(y_i - h(x_i)) + \frac\lambda2 \|h\|^2_{k A}, \qquad
        A = \delta I + U U^\top, \quad \mathrm{tr}(A) = p .

    The share :math:`\delta` of the identity models what is specific to each output, and U what the outputs have in
    common; the constraint on the trace makes U of low rank. The objective is minimised alternately over the model,
    through its dual problem, and over the operator, in closed form. The joint problem is convex, and its duality gap
    bounds the distance to the minimum.

    Parameters
    ----------
    estimator : OperatorKernelRegressor, OperatorKernelRegressorCV or None, default=None
        The regressor with the identity operator, which determines the kernel, the loss, lam and the scaling of the
        outputs; ``None`` means ``OperatorKernelRegressorCV()``.
    shares : sequence of float, default=(1.0, 0.5, 0.2, 0.05)
        Shares to choose from, in (0, 1]; 1 is the identity.
    rank : int or None, default=None
        Maximum rank of :math:`U U^\top`; ``None`` leaves it to the constraint on the trace. With a maximum rank the
        problem is not convex, and the gap may not reach zero.
    cv : int or splitter, default=5
        Folds used to choose the share and, for ``OperatorKernelRegressorCV``, lam. Each fold learns its own operator.
        With one share and one lam there is no cross-validation.
    tol : float, default=1e-3
        Relative duality gap of the joint problem at which the descent stops.
    max_iter : int, default=100
        Maximum number of fits of the model.

    Attributes
    ----------
    best_estimator_ : OperatorKernelRegressor
        The fitted regressor with the learned operator, or with the identity if that was chosen.
    output_operator_ : array of shape (p, p)
        The operator A, for outputs in the units of ``best_estimator_.scale_``.
    factor_ : array of shape (p, r)
        The factor U; its columns are orthogonal and sorted by decreasing norm.
    share_, lam_ : float
        The chosen share and lam.
    objectives_ : list of float
        The objective after each block update: a model first, then operators and models alternately. It never increases.
    gaps_ : list of float
        Relative duality gap of each fit of the model.
    operator_gap_ : float
        Relative duality gap of the joint problem over model and operator.
    n_iter_ : int
        Number of fits of the model on the whole sample.
    cv_errors_ : array of shape (n_shares, n_lams)
        Mean squared held-out error, in the units in which the regressor is fitted.
    shares_, lams_ : list of float
        The grid of these errors.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    The chosen share is the largest one whose held-out error exceeds the minimum by at most one standard error of the
    difference. With a robust loss, held-out errors are clipped at four robust deviations.

    For curves, ``FunctionalRegressorCV`` chooses the length of the output kernel instead.

    References
    ----------
    [Dinuzzo2011]_; [Ciliberto2015]_, where the trace is penalised.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LearnedOutputRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (60, 2))
    >>> Y = np.sin(3 * X[:, :1]) * np.array([1.0, -1.0, 2.0]) + 0.3 * rng.normal(size=(60, 3))
    >>> model = LearnedOutputRegressor().fit(X, Y)
    >>> np.sign(model.output_operator_[0]).tolist()
    [1.0, -1.0, 1.0]
    """

    best_estimator_: Any
    _limits: ClassVar[dict[str, Interval]] = {
        "rank": Interval(1, np.inf, "left", integer=True, also=(None,)),
        "tol": Interval(0, np.inf),
        "max_iter": Interval(1, np.inf, "left", integer=True),
    }

    def __init__(
        self,
        estimator: Any = None,
        shares: Sequence[float] = (1.0, 0.5, 0.2, 0.05),
        rank: int | None = None,
        cv: Any = 5,
        tol: float = 1e-3,
        max_iter: int = 100,
    ) -> None:
        self.estimator = estimator
        self.shares = shares
        self.rank = rank
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter

    @all_or_nothing
    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit the regressor with the identity, then learn the operator together with the model.

        Parameters
        ----------
        X, y, sample_weight : array
            As for ``OperatorKernelRegressor.fit``.

        Returns
        -------
        self : LearnedOutputRegressor
            The fitted model.
        """
        self._check_parameters()
        given = OperatorKernelRegressorCV() if self.estimator is None else clone(self.estimator)
        regression = given.fit(X, y, sample_weight=sample_weight)
        base: Any = getattr(regression, "best_estimator_", regression)
        training_set = _training_set(base, X, y, sample_weight)
        problem = training_set.problem(base.loss_, base.lam)
        self._choose(training_set, problem, _lams(regression), hasattr(base, "outlier_score_"))
        fit = self._learned(problem.with_(lam=self.lam_), base)
        self.best_estimator_ = base
        if self.share_ < 1:
            parts = {"operator": Matrix(fit.operator), "loss": clone(base.loss_), "lam": self.lam_}
            self.best_estimator_ = clone(base).set_params(**parts).fit(X, y, sample_weight)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(base, name):
                setattr(self, name, getattr(base, name))
        return self

    def predict(self, X: Array) -> Array:
        """Predict with the learned operator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def gradient(self, X: Array, almost_everywhere: bool = False) -> Array:
        """Return the derivatives of the predictions with respect to X; see ``OperatorKernelRegressor.gradient``."""
        check_is_fitted(self)
        return self.best_estimator_.gradient(X, almost_everywhere)

    def _check_parameters(self) -> None:
        name = type(self).__name__
        for parameter, limits in self._limits.items():
            check_parameter(name, parameter, getattr(self, parameter), limits)
        if not len(self.shares):
            raise ValueError(f"The 'shares' parameter of {name} must hold at least one number. Got none.")
        for share in self.shares:
            check_parameter(name, "shares", share, Interval(0, 1, "right"))

    def _choose(self, training_set: TrainingSet, problem: DualProblem, lams: list[float], is_robust: bool) -> None:
        """Choose the share and lam by held-out errors."""
        self.shares_ = sorted({float(share) for share in self.shares}, reverse=True)
        if training_set.targets.shape[1] == 1:
            self.shares_ = [1.0]  # with one output there is only the identity
        self.lams_, self.share_, self.lam_ = lams, self.shares_[0], problem.lam
        self.__dict__.pop("cv_errors_", None)
        if self.shares_ == [1.0] or len(self.shares_) == len(lams) == 1:
            return
        folds = Search(type(self).__name__, [], [], self.cv, "mean", _FOLD_TOL).folds(training_set)
        sets = [OperatorSet(share, self.rank) for share in self.shares_]
        errors, counts = held_out_errors(problem, folds, sets, lams, Auto(), _FOLD_TOL, self.max_iter, is_robust)
        self.cv_errors_ = np.average(errors, axis=2, weights=counts)
        places = np.argmin(self.cv_errors_, axis=1)
        best = _largest_share(errors[np.arange(len(places)), places], counts)
        self.share_ = self.shares_[best]
        if self.share_ < 1:  # else the regressor is kept unchanged
            self.lam_ = lams[int(places[best])]

    def _learned(self, problem: DualProblem, base: Any) -> OperatorFit:
        """Learn the operator on the whole sample, and set the fitted attributes that describe it."""
        operators, settings = OperatorSet(self.share_, self.rank), base._settings()
        fit = learn_operator(problem, operators, settings.solver, settings.tol, self.tol, self.max_iter)
        if not fit.is_done:
            text = (
                f"The descent ended after {len(fit.gaps)} fits of the model with gap {fit.gap:.1e} > tol {self.tol:g}."
            )
            warn_user(f"{text} Raise max_iter or tol.", ConvergenceWarning, "not-converged")
        self.output_operator_, self.objectives_, self.gaps_ = fit.operator, fit.objectives, fit.gaps
        self.operator_gap_, self.n_iter_ = fit.gap, len(fit.gaps)
        values, vectors = np.linalg.eigh(fit.operator)
        excess = values[::-1] - self.share_
        kept = excess > _NULL * values[-1]
        self.factor_ = vectors[:, ::-1][:, kept] * np.sqrt(excess[kept])
        return fit

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = (OperatorKernelRegressorCV() if self.estimator is None else self.estimator).__sklearn_tags__()
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags


def _training_set(base: Any, X: Any, y: Any, sample_weight: Array | None) -> TrainingSet:
    """Return the data of a fitted regressor, whose operator must be the identity."""
    if not isinstance(base, OperatorKernelRegressor):
        raise IncompatibleError(
            "The 'estimator' parameter must be an OperatorKernelRegressor or an OperatorKernelRegressorCV. "
            f"Got {base!r}."
        )
    encoded = base._encode(X, y, sample_weight, base._settings().swept(), double=True)
    training_set: TrainingSet = encoded.training_set
    terms = training_set.ridge.gram.terms
    if len(terms) != 1 or terms[0][1].matrix is not None or base.representation is not None:
        raise IncompatibleError(
            "An output operator can be learned only for a scalar kernel and vector outputs. Got "
            f"kernel={base.kernel!r}, operator={base.operator!r}, representation={base.representation!r}."
        )
    return training_set


def _lams(regression: Any) -> list[float]:
    """Return the candidates for lam: around the result of a search, or those that were given."""
    if not hasattr(regression, "best_lam_"):
        return [regression.lam]
    if regression.lams is None:
        return [float(regression.best_lam_ * step) for step in _STEPS]
    return list(regression.lams_)


def _largest_share(errors: np.ndarray, counts: np.ndarray) -> int:
    """Return the first row of the errors (shares, n) whose mean is within one standard error of the minimum."""
    shares = counts / np.sum(counts)
    means = errors @ shares
    excess = errors - errors[np.argmin(means)]
    spreads = np.sqrt(((excess - (excess @ shares)[:, None]) ** 2) @ shares**2)
    return int(np.argmax(excess @ shares <= spreads))
