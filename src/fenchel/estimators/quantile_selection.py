"""Quantile functions with lam and the kernels chosen by cross-validation."""

import warnings
from itertools import product
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, as_index, host, namespace
from fenchel._check import Interval, check_parameter
from fenchel.estimators.base import all_or_nothing
from fenchel.estimators.core import Sample
from fenchel.estimators.errors import AGGREGATES
from fenchel.estimators.quantile import QuantileFunctionRegressor
from fenchel.estimators.search import CrossValidatedMixin
from fenchel.estimators.selection import path, warn_gaps
from fenchel.losses import Loss
from fenchel.problem import arithmetic

__all__ = ["QuantileFunctionRegressorCV"]

_SEARCH = ("cv_errors_", "fold_errors_", "cv_gaps_", "lams_", "losses_")


class QuantileFunctionRegressorCV(CrossValidatedMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """``QuantileFunctionRegressor`` with lam, and if asked for the kernels, chosen by cross-validation.

    The error of a held-out sample is its pinball loss, integrated over the levels. Each fold is a path of its own: one
    factorisation serves every lam. So the marginal quantiles are those of the training part: taken from all samples
    they would favour models that are nothing else.

    Parameters
    ----------
    kernel : kernel, str, callable, or list of these, default="gaussian"
        Kernel of the inputs; of a list the best one is taken.
    level_kernel : kernel, str, callable, None, or list of these, default=None
        Kernel of the levels; of a list the best one is taken.
    levels, quadrature, intercept, coupling, non_crossing, tol
        As for ``QuantileFunctionRegressor``.
    lams : sequence of float or None, default=None
        Regularisation weights; ``None`` is 13 values from 1e-6 to 1.
    cv, aggregate
        As for ``OperatorKernelRegressorCV``.
    cv_tol : float, default=1e-3
        The relative duality gap to which the folds are solved: enough to compare. The chosen model is solved to
        ``tol``.
    n_jobs : int or None, default=None
        Threads over the folds.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` replaces the kernel of the inputs by one with 500 features.

    Attributes
    ----------
    best_lam_ : float
        The chosen lam.
    best_kernel_, best_level_kernel_ : kernel, str or callable
        The chosen kernels.
    lams_ : list
        The grid.
    cv_errors_ : array of shape (1, n_lams)
        Integrated pinball losses of held-out samples for the chosen kernels, aggregated over folds.
    fold_errors_ : array of shape (1, n_lams, n_folds)
        The same for each fold.
    cv_gaps_ : array of shape (1, n_lams)
        Largest relative duality gap over the folds.
    kernel_errors_ : array of shape (n_kernels × n_level_kernels, n_lams)
        ``cv_errors_`` of every pair, the kernel of the levels running fastest.
    best_estimator_ : QuantileFunctionRegressor
        The model fitted on the whole sample; its fitted attributes are attributes of this one too.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import QuantileFunctionRegressorCV
    >>> from fenchel.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (80, 1))
    >>> y = X[:, 0] + 0.2 * rng.standard_normal(80)
    >>> model = QuantileFunctionRegressorCV([Gaussian(0.3), Gaussian(300.0)], lams=[1e-4, 1e-2]).fit(X, y)
    >>> model.best_kernel_, model.kernel_errors_.shape
    (Gaussian(gamma=0.3), (2, 2))
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        level_kernel: Any = None,
        lams: Any = None,
        levels: Any = 20,
        quadrature: str = "gauss_legendre",
        intercept: float = 1.0,
        coupling: Array | None = None,
        non_crossing: bool = False,
        cv: Any = 5,
        aggregate: str = "mean",
        tol: float = 1e-6,
        cv_tol: float = 1e-3,
        n_jobs: int | None = None,
        approximation: Any = None,
    ) -> None:
        self.kernel = kernel
        self.level_kernel = level_kernel
        self.lams = lams
        self.levels = levels
        self.quadrature = quadrature
        self.intercept = intercept
        self.coupling = coupling
        self.non_crossing = non_crossing
        self.cv = cv
        self.aggregate = aggregate
        self.tol = tol
        self.cv_tol = cv_tol
        self.n_jobs = n_jobs
        self.approximation = approximation

    @all_or_nothing
    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Choose lam and the kernel, then fit on the whole sample.

        Parameters
        ----------
        X, y, sample_weight : array
            As for ``QuantileFunctionRegressor.fit``.

        Returns
        -------
        self : QuantileFunctionRegressorCV
            The fitted model.
        """
        check_parameter(type(self).__name__, "cv_tol", self.cv_tol, Interval(0, float("inf")))
        errors, best = [], None
        for pair in self._kernels():
            self.best_kernel_, self.best_level_kernel_ = pair
            found = self._searched(X, y, sample_weight)
            errors.append(self.cv_errors_[0])
            if best is None or np.min(errors[-1]) < best[0]:
                best = (np.min(errors[-1]), pair, found, {name: getattr(self, name) for name in _SEARCH})
        assert best is not None  # _kernels has looked
        _, (self.best_kernel_, self.best_level_kernel_), found, searched = best
        for name, value in searched.items():
            setattr(self, name, value)
        self.kernel_errors_ = np.stack(errors)
        return self._refitted(*found)

    def predict(self, X: Array, quantiles: Any = 0.5) -> Array:
        """Predict quantiles with the chosen model, as ``QuantileFunctionRegressor.predict`` does."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, quantiles)

    def predict_interval(self, X: Array, coverage: float = 0.9) -> Array:
        """Return central prediction intervals of the chosen model."""
        check_is_fitted(self)
        return self.best_estimator_.predict_interval(X, coverage)

    def sample(self, X: Array, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw outputs from the distributions that the chosen model predicts."""
        check_is_fitted(self)
        return self.best_estimator_.sample(X, n_samples, random_state)

    def score(self, X: Array, y: Array, sample_weight: Array | None = None) -> float:
        """Return the score of the chosen model."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, sample_weight))

    @property
    def losses(self) -> list[Loss]:  # type: ignore[override]
        """The one loss that there is to choose from."""
        return [self._estimator("pinball", 1.0)._wanted_loss()]

    def _kernels(self) -> list[tuple[Any, Any]]:
        """Return the pairs of kernels to choose from."""
        lists = []
        for name in ("kernel", "level_kernel"):
            value = getattr(self, name)
            lists.append(list(value) if isinstance(value, list | tuple) else [value])
            if not lists[-1]:
                raise ValueError(f"The {name!r} parameter must hold at least one kernel. Got none.")
        return list(product(*lists))

    def _fold_tol(self) -> float:
        return float(max(self.tol, self.cv_tol))

    def _cross_validate(self, sample: Sample, losses: list[Loss], lams: list[float], folds: list[np.ndarray]) -> None:
        """Fill ``fold_errors_``, ``cv_errors_`` and ``cv_gaps_``: a path on the training part of each fold."""
        n = sample.problem.targets.shape[0]
        weights = np.ones(n) if sample.weights is None else host(sample.weights)
        errors, gaps = np.full((len(lams), n), np.nan), np.zeros((len(folds), len(lams)))

        def one(place: int, test: np.ndarray) -> None:
            train = np.setdiff1d(np.arange(n), test)
            model = self._estimator(losses[0], lams[0]).set_params(tol=self._fold_tol())
            X, y = _rows(sample, train, train)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # one warning for all folds, below
                found = path(model, X, y, lams, sample_weight=weights[train])
            gaps[place] = found.gaps[0]
            X, y = _rows(sample, test, train)
            for k in range(len(lams)):
                errors[k, test] = found.model(0, k)._losses(X, y)

        with arithmetic(sample.problem):
            Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(one)(k, fold) for k, fold in enumerate(folds))
        means = np.stack([np.average(errors[:, fold], axis=1, weights=weights[fold]) for fold in folds], axis=1)
        aggregate = AGGREGATES[self.aggregate]
        self.fold_errors_, self.cv_gaps_ = means[None], gaps.max(axis=0)[None]
        self.cv_errors_ = np.array([[aggregate(errors[k], weights, means[k]) for k in range(len(lams))]])
        warn_gaps(self.cv_gaps_, self._fold_tol())

    def _estimator(self, loss: Loss | str, lam: float) -> QuantileFunctionRegressor:
        first = self._kernels()[0]
        kernel, level_kernel = getattr(self, "best_kernel_", first[0]), getattr(self, "best_level_kernel_", first[1])
        return QuantileFunctionRegressor(
            clone(kernel, safe=False),
            clone(level_kernel, safe=False),
            lam,
            self.levels,
            self.quadrature,
            self.intercept,
            self.coupling,
            self.non_crossing,
            tol=self.tol,
            approximation=self.approximation,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = QuantileFunctionRegressor(self._kernels()[0][0]).__sklearn_tags__()
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags


def _rows(sample: Sample, rows: np.ndarray, columns: np.ndarray) -> tuple[Array, Array]:
    """Return inputs and outputs of some samples; of a Gram matrix, its entries with others."""
    xp, outputs = namespace(sample.X), sample.extra.rest.outputs
    X, y = (xp.take(part, as_index(rows, sample.X), axis=0) for part in (sample.X, outputs))
    return (xp.take(X, as_index(columns, X), axis=1) if sample.is_pairwise else X), y
