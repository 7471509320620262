"""Whole surfaces over (loss, lam), and model selection on them, from one factorisation."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel import losses as loss_room
from fenchel._array import Array, host, namespace
from fenchel._check import Interval, check_parameter
from fenchel._component import from_name
from fenchel.derived_problems import bound_loss
from fenchel.estimators.core import KernelRegressorMixin, Sample
from fenchel.losses import Loss
from fenchel.problem import arithmetic
from fenchel.solvers import Solution
from fenchel.surfaces import solve_grid

__all__ = ["RegularizationPath", "path"]

Progress = Callable[[int, int], None]  # pairs done, of how many


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
    _estimator: Any = field(repr=False)
    _sample: Sample = field(repr=False)
    _solutions: dict[tuple[int, int], Solution] = field(repr=False)

    def model(self, loss: int, lam: int) -> Any:
        """Return the fitted estimator of one pair, by its indices in the grid."""
        solution = self._solutions[loss, lam]
        chosen = clone(self._estimator)._settled(self.losses[loss], self.lams[lam])
        own = chosen.get_params(deep=False)
        for name, value in vars(self._estimator).items():  # what checking the inputs has noted
            if name not in own:
                setattr(chosen, name, value)
        base = self._sample.problem
        problem = base.with_(loss=bound_loss(base, self.losses[loss]), lam=self.lams[lam])
        solution = replace(solution, stages=(solution.stage("one pair of a path"),))
        chosen._certify(problem, solution)
        sample = replace(self._sample, problem=problem)
        return chosen._fitted(sample, chosen._certified_by_predict(sample, solution))

    def predict(self, X: Array) -> Array:
        """Return the predictions of every pair, shape (losses, lams, m) or (losses, lams, m, p)."""
        xp = namespace(self._sample.X)
        rows = [xp.stack([self.model(i, j).predict(X) for j in range(len(self.lams))]) for i in range(len(self.losses))]
        return xp.stack(rows)


def path(
    estimator: KernelRegressorMixin,
    X: Any,
    y: Any,
    lams: Sequence[float],
    losses: Sequence[Loss | str] | None = None,
    sample_weight: Array | None = None,
    grid: Array | None = None,
    progress: Progress | None = None,
) -> RegularizationPath:
    """Solve every (loss, lam) pair of a grid from one factorisation: few outputs side by side, others warm-started.

    Parameters
    ----------
    estimator : OperatorKernelRegressor or FunctionalRegressor
        Gives kernel, operator, representation and ``tol``; its ``loss`` and ``lam`` are replaced by those of the grid.
    X, y : array
        The sample, as for ``fit``.
    lams : sequence of float
        Regularisation weights.
    losses : sequence of Loss or None, default=None
        Losses, such as ``[Huber(kappa) for kappa in kappas]``; ``None`` is the estimator's own.
    sample_weight : array of shape (n,) or None, default=None
        How often each sample counts.
    grid : array of shape (m,) or None, default=None
        Points of the curves, as for ``FunctionalRegressor.fit``.
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
    wanted = as_losses([chosen._wanted_loss()] if losses is None else losses)
    lams = as_lams(lams)
    loss, solver = chosen._parts()
    sample = chosen._sample(X, y, loss, True, sample_weight, grid)
    shape = (len(wanted), len(lams))
    arrays = {name: np.full(shape, np.nan) for name in ("gaps", "primal", "dual", "sparsity")}
    n_iter = np.zeros(shape, dtype=int)
    solutions: dict[tuple[int, int], Solution] = {}
    with arithmetic(sample.problem):
        for i, j, solution in solve_grid(sample.problem, wanted, lams, chosen.tol, solver):
            found = solution.certificate
            arrays["gaps"][i, j], arrays["primal"][i, j] = found.relative_gap, found.primal
            arrays["dual"][i, j], n_iter[i, j] = found.dual, solution.n_iter
            arrays["sparsity"][i, j] = float(np.mean(np.all(host(solution.duals) == 0, axis=1)))
            solutions[i, j] = solution
            if progress is not None:
                progress(len(solutions), len(wanted) * len(lams))
    warn_gaps(arrays["gaps"], chosen.tol)
    return RegularizationPath(
        losses=wanted,
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


def as_losses(losses: Sequence[Loss | str]) -> list[Loss]:
    if isinstance(losses, str | Loss):
        losses = [losses]
    parts = [from_name(loss, loss_room, "loss") for loss in losses]
    if not parts:
        raise ValueError("The 'losses' parameter must hold at least one loss. Got none.")
    for part in parts:
        if not isinstance(part, Loss):
            raise TypeError(f"The 'losses' parameter must hold Loss instances or short names. Got {part!r} instead.")
    return [clone(part).validate() for part in parts]


def as_lams(lams: Any) -> list[float]:
    try:
        grid = np.atleast_1d(np.asarray(lams, dtype=float))
    except (TypeError, ValueError):
        grid = np.empty((0, 0))
    if grid.ndim != 1:
        raise ValueError(f"The 'lams' parameter must be a sequence of numbers. Got {lams!r}.")
    values = grid.tolist()
    if not values:
        raise ValueError("The 'lams' parameter must hold at least one number. Got none.")
    for value in values:
        check_parameter("the grid", "lams", value, Interval(0, float("inf")))
    return values


def warn_gaps(gaps: np.ndarray, tol: float) -> None:
    over = int(np.sum(~(gaps <= tol)))
    if over:
        warnings.warn(
            f"{over} of {gaps.size} pairs of the grid have a gap above tol {tol:g}, {np.nanmax(gaps):.1e} at most.",
            ConvergenceWarning,
            stacklevel=3,
        )
