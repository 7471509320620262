"""Regularisation paths: the solutions for a grid of losses and lams, from one factorisation."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from inspect import signature

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel._array import Array, Outputs, host, namespace
from fenchel._progress import Progress, shown_progress
from fenchel.exceptions import warn_user
from fenchel.losses import Loss
from fenchel.model.fit import certified_fit
from fenchel.model.machine import KernelMachine, keep, set_pair, spec_of, task_of
from fenchel.model.spec import as_lams, as_losses
from fenchel.model.training_set import TrainingSet
from fenchel.problem.dual_problem import arithmetic
from fenchel.resample.surface import solve_grid
from fenchel.search.search import warn_gaps
from fenchel.solvers import Solution

__all__ = ["RegularizationPath", "path"]


@dataclass(frozen=True)
class RegularizationPath:
    """Solutions for a grid of losses and lams, with their certificates.

    Attributes
    ----------
    losses, lams : list
        The losses and the values of lam.
    gaps, primal_objectives, dual_objectives, sparsity : array of shape (n_losses, n_lams)
        Relative duality gap, primal and dual objective, and fraction of zero duals.
    n_iter : array of shape (n_losses, n_lams)
        Number of iterations of each solve.
    """

    losses: list[Loss]
    lams: list[float]
    gaps: np.ndarray
    primal_objectives: np.ndarray
    dual_objectives: np.ndarray
    sparsity: np.ndarray
    n_iter: np.ndarray
    _machine: KernelMachine = field(repr=False)  # not fitted, but with the attributes that describe X
    _training_set: TrainingSet = field(repr=False)
    _solutions: dict[tuple[int, int], Solution] = field(repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether every pair is solved, as it is unless the path was interrupted."""
        return len(self._solutions) == self.gaps.size

    def model(self, loss: int, lam: int) -> KernelMachine:
        """Return the fitted estimator of one pair, by its indices in the grid."""
        if (loss, lam) not in self._solutions:
            raise ValueError(
                f"The path has no solution for the pair ({loss}, {lam}): {len(self.losses)} losses, {len(self.lams)} "
                f"lams, {len(self._solutions)} pairs are solved."
            )
        solution = self._solutions[loss, lam]
        solution = replace(solution, stages=(solution.stage("one pair of a path"),))
        loss_, lam_ = self.losses[loss], self.lams[lam]
        machine = set_pair(copy(self._machine), loss_, lam_)
        problem = self._training_set.problem(loss_, lam_)
        return keep(machine, certified_fit(self._training_set, problem, solution, spec_of(machine)))

    def predict(self, X: Array) -> Array:
        """Return the predictions of every pair, shape (losses, lams, m) or (losses, lams, m, p)."""
        xp = namespace(self._training_set.X)
        rows = [xp.stack([self.model(i, j).predict(X) for j in range(len(self.lams))]) for i in range(len(self.losses))]
        return xp.stack(rows)


def path(
    estimator: KernelMachine,
    X: Array,
    y: Outputs,
    lams: Sequence[float],
    losses: Sequence[Loss | str] | None = None,
    sample_weight: Array | None = None,
    grid: Array | None = None,
    progress: Progress = None,
) -> RegularizationPath:
    """Solve every (loss, lam) pair of a grid from one factorisation.

    Parameters
    ----------
    estimator : OperatorKernelRegressor or FunctionalRegressor
        The model to fit; its ``loss`` and ``lam`` are replaced by those of the grid.
    X, y : array
        The sample, as for ``fit``.
    lams : sequence of float
        Regularisation weights.
    losses : sequence of Loss or None, default=None
        Losses, such as ``[Huber(kappa) for kappa in kappas]``; ``None`` means the loss of the estimator.
    sample_weight : array of shape (n,) or None, default=None
        Sample weights; a sample of weight 2 counts twice.
    grid : array of shape (m,) or None, default=None
        Points of the curves, as for ``FunctionalRegressor.fit``.
    progress : bool, callable or None, default=None
        As for ``OperatorKernelRegressorCV``.

    Returns
    -------
    path : RegularizationPath
        The solutions with their gaps. Pairs whose gap exceeds ``tol`` are kept, with a warning. After a
        ``KeyboardInterrupt`` the pairs solved so far are returned; the values of the others are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> import fenchel
    >>> from fenchel.losses import Huber
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = np.hstack([np.sin(X), np.cos(X)])
    >>> surface = fenchel.path(fenchel.OperatorKernelRegressor(), X, Y, [1e-3, 1e-1], [Huber(0.1), Huber(1.0)])
    >>> surface.gaps.shape, bool(surface.gaps.max() <= 1e-6)
    ((2, 2), True)
    """
    if grid is not None and "grid" not in signature(estimator.fit).parameters:
        raise TypeError(f"{type(estimator).__name__} does not take a grid. Use FunctionalRegressor for curves.")
    machine = clone(estimator)
    spec = spec_of(machine)
    checked, lams = as_losses([spec.loss] if losses is None else losses), as_lams(lams)
    spec = replace(spec.for_search(), lam=min(lams))  # the smallest lam needs the most features
    task = task_of(machine, **({} if grid is None else {"grid": grid}))
    training_set = TrainingSet.learn(task, task.sample(machine, X, y, sample_weight).double(), spec)
    shape = (len(checked), len(lams))
    gaps, primal, dual, sparsity = (np.full(shape, np.nan) for _ in range(4))
    n_iter = np.zeros(shape, dtype=int)
    solutions: dict[tuple[int, int], Solution] = {}
    problem = training_set.ridge
    try:
        with arithmetic(problem), shown_progress(progress, "path"):
            for i, j, solution in solve_grid(problem, checked, lams, spec.tol, spec.solver):
                certificate = solution.certificate
                gaps[i, j], primal[i, j], dual[i, j] = certificate.relative_gap, certificate.primal, certificate.dual
                sparsity[i, j] = float(np.mean(np.all(host(solution.duals) == 0, axis=1)))
                n_iter[i, j] = solution.n_iter
                solutions[i, j] = solution
    except KeyboardInterrupt:
        if not solutions:
            raise
        text = f"Interrupted: {len(solutions)} of {gaps.size} pairs of the path are solved, the others are NaN."
        warn_user(text, ConvergenceWarning, "not-converged")
    warn_gaps(gaps[~np.isnan(gaps)] if solutions else gaps, spec.tol)
    return RegularizationPath(checked, lams, gaps, primal, dual, sparsity, n_iter, machine, training_set, solutions)
