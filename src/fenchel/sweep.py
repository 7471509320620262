"""Many problems on one factorisation: surfaces over (loss, lam), folds, leave-one-out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fenchel._array import Array, as_index, host, namespace, row_norms
from fenchel.losses.base import Loss
from fenchel.problem import DualProblem
from fenchel.solvers import Auto, ClosedForm, DouglasRachford, Solution, Solver

__all__ = ["HeldOut", "approximate_loo", "held_out", "solve_grid"]

_BATCH_NUMBERS = 2_000_000  # numbers in one (n, B, p) array
_SIDE_BY_SIDE = 4  # with at most so many output columns, problems are solved side by side, else one after the other


def solve_grid(
    problem: DualProblem, losses: Sequence[Loss], lams: Sequence[float], tol: float = 1e-6, solver: Solver | None = None
) -> Iterator[tuple[int, int, Solution]]:
    """Yield (loss index, lam index, solution) for every pair, from one eigendecomposition.

    Each loss goes through lam from large to small, every solve starting where the last one stood. Problems with few
    output columns are solved side by side instead, where the matrix products are larger.
    """
    order = np.argsort(-np.asarray(lams, dtype=float), kind="stable")
    bound = [problem.bind(loss) for loss in losses]
    splitting = solver if isinstance(solver, DouglasRachford) else DouglasRachford()
    sweepable = splitting.why_not(problem) is None and (solver is None or isinstance(solver, Auto | DouglasRachford))
    if sweepable:
        problem.spectrum  # noqa: B018 - shared by all
    first = None
    for i, loss in enumerate(bound):
        row = [(int(j), problem.with_(loss=loss, lam=float(lams[j]))) for j in order]
        if not sweepable:
            chosen = solver or Auto()
            yield from ((i, j, chosen.solve(one, tol)) for j, one in row)
        elif ClosedForm().why_not(row[0][1]) is None:
            yield from ((i, j, _ridge(one)) for j, one in row)
        elif problem.targets.shape[1] <= _SIDE_BY_SIDE:
            for part in _parts(row, problem):
                solutions = splitting.solve_all([one for _, one in part], tol)
                yield from ((i, j, solution) for (j, _), solution in zip(part, solutions, strict=True))
        else:
            state = first
            for k, (j, one) in enumerate(row):
                solution = splitting.solve(one, tol, start=state)
                state = solution.state
                first = state if k == 0 else first  # where the next loss begins
                yield i, j, solution


@dataclass(frozen=True)
class HeldOut:
    """Out-of-sample predictions of one (loss, lam) pair: each sample predicted by the model that did not see it."""

    loss: int
    lam: int
    predictions: Array  # (n, p), NaN for samples that no fold holds out
    gap: float  # largest relative gap of the folds
    sparsity: float


def held_out(
    problem: DualProblem,
    losses: Sequence[Loss],
    lams: Sequence[float],
    folds: Sequence[np.ndarray],
    tol: float = 1e-6,
) -> Iterator[HeldOut]:
    """Yield the out-of-sample predictions of every (loss, lam) pair, from one eigendecomposition for all folds.

    A fold is solved on the Gram matrix of the whole sample with the duals of its test part set to zero, so all folds
    share the factorisation and are solved side by side, warm-started along lam. The square loss takes no solve at all.
    """
    order = np.argsort(-np.asarray(lams, dtype=float), kind="stable")
    bound = [problem.bind(loss) for loss in losses]
    problem.spectrum  # noqa: B018 - shared by all
    cut = [problem.holding_out(fold) for fold in folds]
    begin: list[object] = [None] * len(folds)  # where the next loss begins
    ridge = _RidgeHeldOut(problem, folds)
    for i, loss in enumerate(bound):
        states = begin
        is_square = ClosedForm().why_not(problem.with_(loss=loss)) is None
        for k, j in enumerate(order):
            ones = [replace(one, loss=loss, lam=float(lams[j]))._sharing(problem) for one in cut]
            if is_square:
                yield HeldOut(i, int(j), ridge(ones), 0.0, 0.0)
                continue
            solutions: list[Solution] = []
            for part in _parts(list(range(len(folds))), problem):
                solutions += DouglasRachford().solve_all([ones[f] for f in part], tol, [states[f] for f in part])
            states = [solution.state for solution in solutions]
            begin = states if k == 0 else begin
            xp = namespace(problem.targets)
            predictions = np.full(tuple(problem.targets.shape), np.nan)
            for solution, fold in zip(solutions, folds, strict=True):
                predictions[fold] = host(problem.unscale(solution.predictions))[fold]
            gap = max(solution.certificate.relative_gap for solution in solutions)
            nulls = [float(xp.mean(xp.astype(xp.all(s.duals == 0, axis=1), s.duals.dtype))) for s in solutions]
            yield HeldOut(i, int(j), predictions, gap, float(np.mean(nulls)))


def approximate_loo(problem: DualProblem, solution: Solution) -> Array:
    r"""Return approximate leave-one-out predictions of a radial loss, from one linear system at the solution.

    Each row is taken to keep its multiplier :math:`m_i = \|r_i\| / \|a_i\|`: the residual without sample i is then
    :math:`a_i / S_{ii}` with :math:`S = (K / (\lambda n) + \mathrm{diag}(m))^{-1}`, as for a weighted ridge regression.
    This is exact for the square loss up to the change of n, and an approximation where leaving a sample out moves
    others across a kink of the loss.
    """
    K = problem.gram.identity_factor()
    if K is None or problem.loss.profile() is None:
        raise ValueError("approximate_loo needs a loss of the Euclidean norm and the identity operator.")
    xp = namespace(K)
    residuals = problem.targets - solution.predictions
    sizes, duals = row_norms(residuals)[:, 0], row_norms(solution.duals)[:, 0]
    active = np.flatnonzero(host(duals) > 0)
    out = host(problem.unscale(problem.targets - residuals)).copy()
    if len(active) == 0:
        return out
    H = host(K)[np.ix_(active, active)] * problem.scale
    m = host(sizes)[active] / host(duals)[active]
    inverse = np.linalg.inv(H + np.diag(m))
    left = host(solution.duals)[active] / np.diag(inverse)[:, None]
    root = 1.0 if problem.root is None else host(problem.root)[active]
    out[active] = (host(problem.targets)[active] - left) / root
    return xp.asarray(out) if not isinstance(K, np.ndarray) else out


def _ridge(problem: DualProblem) -> Solution:
    """Return the solution for the square loss from the eigenbasis."""
    basis = problem.spectrum
    duals = basis.backward(basis.forward(problem.targets) / (1 + problem.scale * basis.values))
    return ClosedForm().polished(problem, duals)


class _RidgeHeldOut:
    """Exact out-of-sample predictions for the square loss.

    With G = I + H on the whole sample (H scaled for the samples kept) and a = G^-1 y, the residual of a sample that is
    left out alone is a_i / (G^-1)_ii, from the one eigenbasis of all. A larger fold has one of its own, for every lam.
    """

    def __init__(self, problem: DualProblem, folds: Sequence[np.ndarray]) -> None:
        self.problem = problem
        self.folds = folds
        self._predictors: list[Any] = []

    def __call__(self, problems: list[DualProblem]) -> np.ndarray:
        """Return the predictions of the problems, one for each fold, all with the same lam."""
        single = all(len(fold) == 1 for fold in self.folds)
        found = self._alone(problems) if single else self._cut(problems)
        return found if self.problem.root is None else found / host(self.problem.root)

    def _cut(self, problems: list[DualProblem]) -> np.ndarray:
        """Return predictions from the eigenbasis of each fold's training part."""
        targets = self.problem.targets
        if not self._predictors:
            everyone = np.arange(targets.shape[0])
            for fold in self.folds:
                train = as_index(np.setdiff1d(everyone, fold), targets)
                self._predictors.append(self.problem.gram.ridge_predictor(train, as_index(fold, targets), targets))
        found = np.full(tuple(targets.shape), np.nan)
        for problem, fold, predict in zip(problems, self.folds, self._predictors, strict=True):
            found[fold] = host(predict(problem.scale))
        return found

    def _alone(self, problems: list[DualProblem]) -> np.ndarray:
        """Return predictions of samples that are left out one by one, from the eigenbasis of the whole sample."""
        basis, targets = self.problem.spectrum, self.problem.targets
        forward = basis.forward(targets)
        found = np.full(tuple(targets.shape), np.nan)
        seen: dict[float, np.ndarray] = {}
        for problem, fold in zip(problems, self.folds, strict=True):
            if problem.scale not in seen:
                weights = 1 / (1 + problem.scale * basis.values)
                residuals = basis.left_out(weights, basis.backward(forward * weights))
                seen[problem.scale] = host(targets) - host(residuals)
            found[fold] = seen[problem.scale][fold]
        return found


def _parts(items: list[Any], problem: DualProblem) -> Iterator[list[Any]]:
    """Yield the items in lists whose (n, B, p) arrays stay small."""
    step = max(1, _BATCH_NUMBERS // max(1, problem.targets.shape[0] * problem.targets.shape[1]))
    for start in range(0, len(items), step):
        yield items[start : start + step]
