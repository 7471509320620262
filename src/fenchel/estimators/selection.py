"""Whole surfaces over (loss, lam), and model selection on them, from one factorisation."""

import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel import losses as loss_room
from fenchel._array import Array, host, namespace
from fenchel._check import Interval, Options, check_parameter
from fenchel._component import from_name
from fenchel.estimators.regression import OperatorKernelRegressor, Sample
from fenchel.losses import Loss
from fenchel.solvers import Solution
from fenchel.sweep import held_out, solve_grid

__all__ = ["OperatorKernelRegressorCV", "RegularizationPath", "path"]

Progress = Callable[[int, int], None]  # pairs done, of how many

_FITTED = (
    "dual_coef_", "primal_objective_", "dual_objective_", "duality_gap_", "n_iter_", "status_", "support_", "sparsity_",
    "outlier_score_", "solver_info_", "history_", "n_features_in_", "feature_names_in_",
)  # fmt: skip


@dataclass(frozen=True)
class RegularizationPath:
    """All solutions of a (loss, lam) grid with their certificates; arrays have shape (losses, lams).

    Attributes
    ----------
    losses, lams : list
        The grid.
    gaps, primal_objectives, dual_objectives, sparsity : array of shape (n_losses, n_lams)
        Relative duality gap, primal and dual value, share of null duals.
    n_iter : array of shape (n_losses, n_lams)
        Iterations of each solve.
    """

    losses: list[Loss]
    lams: list[float]
    gaps: np.ndarray
    primal_objectives: np.ndarray
    dual_objectives: np.ndarray
    sparsity: np.ndarray
    n_iter: np.ndarray
    _estimator: OperatorKernelRegressor = field(repr=False)
    _sample: Sample = field(repr=False)
    _solutions: dict[tuple[int, int], Solution] = field(repr=False)

    def model(self, loss: int, lam: int) -> OperatorKernelRegressor:
        """Return the fitted estimator of one pair, by its indices in the grid."""
        solution = self._solutions[loss, lam]
        chosen = clone(self._estimator).set_params(loss=clone(self.losses[loss]), lam=self.lams[lam])
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self._estimator, name):
                setattr(chosen, name, getattr(self._estimator, name))
        base = self._sample.problem
        problem = base.with_(loss=base.bind(self.losses[loss]), lam=self.lams[lam])
        chosen._certify(problem, solution, {"solver": solution.solver, "reason": "one pair of a path"})
        return chosen._fitted(self._sample, solution)

    def predict(self, X: Array) -> Array:
        """Return the predictions of every pair, shape (losses, lams, m) or (losses, lams, m, p)."""
        xp = namespace(self._sample.X)
        rows = [xp.stack([self.model(i, j).predict(X) for j in range(len(self.lams))]) for i in range(len(self.losses))]
        return xp.stack(rows)


def path(
    estimator: OperatorKernelRegressor,
    X: Array,
    y: Array,
    lams: Sequence[float],
    losses: Sequence[Loss | str] | None = None,
    sample_weight: Array | None = None,
    progress: Progress | None = None,
) -> RegularizationPath:
    """Solve every (loss, lam) pair of a grid from one factorisation, with warm starts.

    Parameters
    ----------
    estimator : OperatorKernelRegressor
        Gives kernel, operator, representation and ``tol``; its ``loss`` and ``lam`` are replaced by those of the grid.
    X, y : array
        The sample, as for ``fit``.
    lams : sequence of float
        Regularisation weights.
    losses : sequence of Loss or None, default=None
        Losses, such as ``[Huber(kappa) for kappa in kappas]``; ``None`` is the estimator's own.
    sample_weight : array of shape (n,) or None, default=None
        How often each sample counts.
    progress : callable or None, default=None
        Called as ``progress(done, total)`` after each pair.

    Returns
    -------
    path : RegularizationPath
        The solutions with their gaps; a pair that is not within ``tol`` is warned about and kept.

    Examples
    --------
    >>> import numpy as np
    >>> import fenchel
    >>> from fenchel.losses import Huber
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = np.hstack([np.sin(X), np.cos(X)])
    >>> found = fenchel.path(fenchel.OperatorKernelRegressor(), X, Y, [1e-3, 1e-1], [Huber(0.1), Huber(1.0)])
    >>> found.gaps.shape, bool(found.gaps.max() <= 1e-6)
    ((2, 2), True)
    """
    chosen = clone(estimator)
    grid = _losses([chosen.loss] if losses is None else losses)
    lams = _lams(lams)
    loss, solver = chosen._parts()
    sample = chosen._sample(X, y, sample_weight, loss)
    shape = (len(grid), len(lams))
    arrays = {name: np.full(shape, np.nan) for name in ("gaps", "primal", "dual", "sparsity")}
    n_iter = np.zeros(shape, dtype=int)
    solutions: dict[tuple[int, int], Solution] = {}
    for i, j, solution in solve_grid(sample.problem, grid, lams, chosen.tol, solver):
        found = solution.certificate
        arrays["gaps"][i, j], arrays["primal"][i, j] = found.relative_gap, found.primal
        arrays["dual"][i, j], n_iter[i, j] = found.dual, solution.n_iter
        arrays["sparsity"][i, j] = float(np.mean(np.all(host(solution.duals) == 0, axis=1)))
        solutions[i, j] = solution
        if progress is not None:
            progress(len(solutions), len(grid) * len(lams))
    _warn_gaps(arrays["gaps"], chosen.tol)
    return RegularizationPath(
        losses=grid,
        lams=lams,
        gaps=arrays["gaps"],
        primal_objectives=arrays["primal"],
        dual_objectives=arrays["dual"],
        sparsity=arrays["sparsity"],
        n_iter=n_iter,
        _estimator=chosen,
        _sample=sample,
        _solutions=solutions,
    )


class OperatorKernelRegressorCV(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """``OperatorKernelRegressor`` with loss and lam chosen by cross-validation on one factorisation.

    Every fold is solved on the Gram matrix of the whole sample with its test samples held out, all folds side by side,
    warm-started along lam; the square loss takes a closed form. The chosen pair is then fitted on the whole sample.

    Parameters
    ----------
    kernel, operator, representation, tol
        As for ``OperatorKernelRegressor``. What a kernel or operator takes from the sample (a median bandwidth, the
        covariance of the outputs) is taken from the whole sample, once.
    lams : sequence of float or None, default=None
        Regularisation weights; ``None`` is 13 values from 1e-6 to 1.
    losses : sequence of Loss or str, default=("square",)
        Losses to choose from, such as ``[Huber(kappa) for kappa in kappas]``.
    cv : int, splitter or "loo", default=5
        Folds; ``"loo"`` is leave-one-out, exact.
    aggregate : {"mean", "median", "fold_median"}, default="mean"
        How held-out errors become one number: mean of the folds' means, median over all held-out samples, which a
        minority of outliers does not move, or median of the folds' means.
    n_jobs : int or None, default=None
        Threads over the losses.
    checkpoint : path or None, default=None
        A file that keeps the errors of finished losses; a fit with the same data and grid goes on from there.
    progress : callable or None, default=None
        Called as ``progress(done, total)`` after each (loss, lam) pair.

    Attributes
    ----------
    best_loss_, best_lam_ : Loss, float
        The chosen pair.
    cv_errors_ : array of shape (n_losses, n_lams)
        Mean squared distance between held-out outputs and predictions, aggregated over folds.
    fold_errors_ : array of shape (n_losses, n_lams, n_folds)
        The same for each fold.
    cv_gaps_ : array of shape (n_losses, n_lams)
        Largest relative duality gap over the folds.
    best_estimator_ : OperatorKernelRegressor
        The model fitted on the whole sample; its fitted attributes are attributes of this one too.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressorCV
    >>> from fenchel.losses import Huber
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> Y = np.hstack([np.sin(X), np.cos(X)])
    >>> model = OperatorKernelRegressorCV(lams=[1e-4, 1e-2, 1.0], losses=[Huber(0.1), Huber(1.0)]).fit(X, Y)
    >>> model.best_lam_
    0.0001
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        operator: Any = None,
        lams: Sequence[float] | None = None,
        losses: Sequence[Loss | str] = ("square",),
        cv: Any = 5,
        aggregate: str = "mean",
        tol: float = 1e-6,
        representation: Any = None,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        progress: Progress | None = None,
    ) -> None:
        self.kernel = kernel
        self.operator = operator
        self.lams = lams
        self.losses = losses
        self.cv = cv
        self.aggregate = aggregate
        self.tol = tol
        self.representation = representation
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.progress = progress

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Choose loss and lam, then fit on the whole sample.

        Parameters
        ----------
        X, y, sample_weight : array
            As for ``OperatorKernelRegressor.fit``.

        Returns
        -------
        self : OperatorKernelRegressorCV
            The fitted model.
        """
        check_parameter(type(self).__name__, "aggregate", self.aggregate, Options(("mean", "median", "fold_median")))
        losses, lams = _losses(self.losses), _lams(np.logspace(-6, 0, 13) if self.lams is None else self.lams)
        estimator = OperatorKernelRegressor(
            self.kernel, self.operator, losses[0], lams[0], tol=self.tol, representation=self.representation
        )
        sample = estimator._sample(X, y, sample_weight, estimator._parts()[0])
        folds = self._folds(sample)
        self._cross_validate(sample, losses, lams, folds)
        i, j = divmod(int(np.argmin(self.cv_errors_)), len(lams))
        self.best_loss_, self.best_lam_ = clone(losses[i]), lams[j]
        self.best_estimator_ = estimator.set_params(loss=clone(losses[i]), lam=lams[j])
        problem = sample.problem.with_(loss=sample.problem.bind(losses[i]), lam=lams[j])
        self.best_estimator_._fitted(sample, estimator._solve(problem, estimator._parts()[1]))
        for name in _FITTED:
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def predict(self, X: Array) -> Array:
        """Predict with the chosen model."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def _folds(self, sample: Sample) -> list[np.ndarray]:
        """Return the test parts, as places among the samples with a positive weight."""
        if isinstance(self.cv, str):
            check_parameter(type(self).__name__, "cv", self.cv, Options(("loo",)))
            tests = [np.array([k]) for k in range(sample.n)]
        else:
            if isinstance(self.cv, int):
                check_parameter(type(self).__name__, "cv", self.cv, Interval(2, float("inf"), "left", integer=True))
                if sample.n < self.cv:
                    raise ValueError(f"cv={self.cv} needs at least {self.cv} samples. Got n_samples = {sample.n}.")
            tests = [np.asarray(test) for _, test in check_cv(self.cv).split(np.zeros((sample.n, 1)))]
        if sample.kept is not None:
            tests = [np.flatnonzero(np.isin(sample.kept, test)) for test in tests]
        tests = [test for test in tests if len(test)]
        if sample.n < 2 or any(len(test) == sample.problem.targets.shape[0] for test in tests):
            raise ValueError(f"Each fold must leave samples to fit on. Got n_samples = {sample.n}.")
        return tests

    def _cross_validate(self, sample: Sample, losses: list[Loss], lams: list[float], folds: list[np.ndarray]) -> None:
        """Fill ``fold_errors_``, ``cv_errors_`` and ``cv_gaps_``; finished losses come from the checkpoint."""
        shape = (len(losses), len(lams), len(folds))
        store = _Checkpoint(self.checkpoint, _key(sample, losses, lams, folds, self.tol), shape)
        todo = [i for i in range(len(losses)) if np.isnan(store.errors[i]).any()]
        targets = host(sample.problem.unscale(sample.problem.targets))
        weights = np.ones(len(targets)) if sample.weights is None else host(sample.weights)
        counter = {"done": (len(losses) - len(todo)) * len(lams)}

        def row(i: int) -> None:
            for found in held_out(sample.problem, [losses[i]], lams, folds, self.tol):
                squares = np.sum((targets - host(found.predictions)) ** 2, axis=1)
                store.errors[i, found.lam] = [np.average(squares[fold], weights=weights[fold]) for fold in folds]
                store.gaps[i, found.lam] = found.gap
                store.medians[i, found.lam] = _weighted_median(squares, weights)
                counter["done"] += 1
                if self.progress is not None:
                    self.progress(counter["done"], len(losses) * len(lams))
            store.save()

        sample.problem.spectrum  # noqa: B018 - computed once, before the threads
        Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(row)(i) for i in todo)
        self.fold_errors_, self.cv_gaps_ = store.errors, store.gaps
        if self.aggregate == "median":
            self.cv_errors_ = store.medians
        else:
            self.cv_errors_ = (np.mean if self.aggregate == "mean" else np.median)(store.errors, axis=2)
        _warn_gaps(store.gaps, self.tol)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = OperatorKernelRegressor(self.kernel, self.operator).__sklearn_tags__()
        tags.input_tags.pairwise = inner.input_tags.pairwise
        return tags


class _Checkpoint:
    """Errors of finished losses, in a file that is replaced as a whole and belongs to one set of data and grid."""

    def __init__(self, file: Any, key: str, shape: tuple[int, int, int]) -> None:
        self.file = None if file is None else Path(file)
        self.key = key
        self.errors, self.gaps, self.medians = (np.full(s, np.nan) for s in (shape, shape[:2], shape[:2]))
        if self.file is not None and self.file.exists():
            with np.load(self.file, allow_pickle=False) as stored:
                if str(stored["key"]) != key:
                    raise ValueError(
                        f"The checkpoint {self.file} belongs to other data or another grid. Remove it or name another."
                    )
                self.errors, self.gaps, self.medians = (stored[name] for name in ("errors", "gaps", "medians"))

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self.file is None:
            return
        partial = self.file.with_name(f"{self.file.name}.{os.getpid()}.part")
        with open(partial, "wb") as stream:
            np.savez(stream, key=self.key, errors=self.errors, gaps=self.gaps, medians=self.medians)
        os.replace(partial, self.file)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the median of values that count so many times; samples that no fold holds out are NaN and do not count."""
    seen = ~np.isnan(values)
    order = np.argsort(values[seen], kind="stable")
    ordered, mass = values[seen][order], np.cumsum(weights[seen][order])
    low, high = np.searchsorted(mass, mass[-1] / 2, "left"), np.searchsorted(mass, mass[-1] / 2, "right")
    return float((ordered[low] + ordered[min(high, len(ordered) - 1)]) / 2)


def _key(sample: Sample, losses: list[Loss], lams: list[float], folds: list[np.ndarray], tol: float) -> str:
    digest = hashlib.sha256(repr(([repr(loss) for loss in losses], lams, [f.tolist() for f in folds], tol)).encode())
    for array in (sample.X, sample.problem.targets):
        digest.update(np.ascontiguousarray(host(array)).tobytes())
    digest.update(repr(sample.bound).encode())
    return digest.hexdigest()


def _losses(losses: Sequence[Loss | str]) -> list[Loss]:
    if isinstance(losses, str | Loss):
        losses = [losses]
    parts = [from_name(loss, loss_room, "loss") for loss in losses]
    if not parts:
        raise ValueError("The 'losses' parameter must hold at least one loss. Got none.")
    for part in parts:
        if not isinstance(part, Loss):
            raise TypeError(f"The 'losses' parameter must hold Loss instances or short names. Got {part!r} instead.")
    return [clone(part).validate() for part in parts]


def _lams(lams: Any) -> list[float]:
    values = [float(lam) for lam in np.atleast_1d(np.asarray(lams, dtype=float))]
    if not values:
        raise ValueError("The 'lams' parameter must hold at least one number. Got none.")
    for value in values:
        check_parameter("the grid", "lams", value, Interval(0, float("inf")))
    return values


def _warn_gaps(gaps: np.ndarray, tol: float) -> None:
    over = int(np.sum(~(gaps <= tol)))
    if over:
        warnings.warn(
            f"{over} of {gaps.size} pairs of the grid have a gap above tol {tol:g}, {np.nanmax(gaps):.1e} at most.",
            ConvergenceWarning,
            stacklevel=3,
        )
