"""Solution surfaces over (loss, lam) from a single factorisation."""

import math
from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from fenchel._progress import counted, here
from fenchel.losses.loss import Loss, is_square
from fenchel.problem import DualProblem
from fenchel.problem.derived import Compact, bound_loss, compact
from fenchel.problem.dual_problem import has_gaps
from fenchel.solvers import Auto, ClosedForm, DouglasRachford, Solution, Solver
from fenchel.solvers.loop import certified
from fenchel.solvers.splitting import Warm

__all__ = ["Trail", "batch_size", "descending", "factor_share", "solve_bound_grid", "solve_grid"]

_BATCH_NUMBERS = 2_000_000  # size limit of one (n, B, p) array
_COLUMNS = 128  # number of columns beyond which a matrix product gets no faster
_SOLVE = 30.0  # cost of a solve of about a hundred steps, in products; an eigendecomposition takes about n of them
_SIDE_BY_SIDE = 4  # largest number of output columns for which problems are solved side by side


def solve_grid(
    problem: DualProblem, losses: Sequence[Loss], lams: Sequence[float], tol: float = 1e-6, solver: Solver | None = None
) -> Iterator[tuple[int, int, Solution]]:
    """Yield (loss index, lam index, solution) for every pair, from one eigendecomposition.

    Each loss is solved from large to small lam, every solve starting from an extrapolation of the last two. Problems
    with few output columns are solved side by side instead, several losses together, which makes the matrix products
    larger.
    """
    return solve_bound_grid(problem, [bound_loss(problem, loss) for loss in losses], lams, tol, solver)


def solve_bound_grid(
    problem: DualProblem,
    bound: list[Loss],
    lams: Sequence[float],
    tol: float,
    solver: Solver | None = None,
    splitting: Solver | None = None,
) -> Iterator[tuple[int, int, Solution]]:
    """Yield the same as ``solve_grid``, for losses that are already bound to the problem.

    ``splitting`` shares a factorisation where the solver may choose.
    """
    solver, splitting = Auto() if solver is None else solver, splitting or DouglasRachford()
    if solver.chooses and bound and has_gaps(problem) and all(loss.profile is not None for loss in bound):
        squares = [i for i, loss in enumerate(bound) if is_square(loss)]
        others = [i for i, loss in enumerate(bound) if not is_square(loss)]
        parts = [(part, compact(problem.with_(loss=bound[part[0]]))) for part in (squares, others) if part]
        if any(small is not None for _, small in parts):
            left = len(bound)
            for part, small in parts:
                pairs = _observed(problem, small, [bound[i] for i in part], part, lams, tol, splitting)
                yield from counted(pairs, len(part) / left)
                left -= len(part)
            return
    n_pairs = len(bound) * len(lams)
    first = factor_share(problem, n_pairs)
    for k, pair in enumerate(_solved(problem, bound, lams, tol, solver, splitting), 1):
        here().reach(first + (1 - first) * k / n_pairs)
        yield pair


def factor_share(problem: DualProblem, n_solves: int) -> float:
    """Return the share of an eigendecomposition in the work of so many solves that use it."""
    n, p = problem.targets.shape
    return float(n / (n + _SOLVE * p * n_solves))


def _solved(
    problem: DualProblem, bound: list[Loss], lams: Sequence[float], tol: float, solver: Solver, splitting: Solver
) -> Iterator[tuple[int, int, Solution]]:
    """Yield the solutions of every pair, from large to small lam."""
    order = descending(lams)
    splitting = splitting if solver.chooses else solver
    is_shared = splitting.most_shared > 0 and splitting.why_not(problem) is None
    if is_shared:
        problem.shared.factorize()
        here().reach(factor_share(problem, len(bound) * len(lams)))
    p = problem.targets.shape[1]
    side = int(min(splitting.most_shared, max(1, min(_COLUMNS // max(1, p), batch_size(problem)))))
    waiting: list[tuple[int, int, DualProblem]] = []
    for i, loss in enumerate(bound):
        row = [(j, problem.with_(loss=loss, lam=float(lams[j]))) for j in order]
        if not is_shared:
            yield from _together(solver, [(i, j, member) for j, member in row], tol)
        elif ClosedForm().why_not(problem.with_(loss=loss)) is None:
            yield from _together(splitting, waiting, tol)
            yield from ((i, j, _ridge(member)) for j, member in row)
            waiting = []
        elif p <= _SIDE_BY_SIDE:
            waiting += [(i, j, member) for j, member in row]
            while len(waiting) >= side:
                yield from _together(splitting, waiting[:side], tol)
                waiting = waiting[side:]
        else:
            trail = Trail()
            for j, member in row:
                solution = splitting.solve(member, tol, trail.start(member.lam))
                trail.add(member.lam, solution.state)
                yield i, j, solution
    yield from _together(splitting, waiting, tol)


def _observed(
    problem: DualProblem,
    small: Compact | None,
    losses: list[Loss],
    places: list[int],
    lams: Sequence[float],
    tol: float,
    splitting: Solver,
) -> Iterator[tuple[int, int, Solution]]:
    """Yield the solutions for some losses, from the problem of the observed values if there is one."""
    if small is None:
        found = solve_bound_grid(problem, losses, lams, tol, splitting)
    elif is_square(small.problem.loss):  # a Cholesky factor for each of a few lam is faster than an eigenbasis
        members = ((j, small.problem.with_(lam=float(lams[j]))) for j in descending(lams))
        found = ((0, j, ClosedForm().solve(member, tol)) for j, member in members)
    else:
        found = solve_bound_grid(small.problem, losses, lams, tol, splitting=splitting)
    for i, j, solution in found:
        if small is not None:
            member = problem.with_(loss=losses[i], lam=float(lams[j]))
            solution = certified(solution, member, small.back(solution.duals), tol)
        yield places[i], j, solution


class Trail:
    """States of the solves of one problem at the last two lam, and their extrapolation."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, Warm]] = []

    def start(self, lam: float) -> Warm | None:
        """Return a start for another lam, by extrapolating the last change in log lam."""
        if len(self.steps) < 2:
            return self.steps[-1][1] if self.steps else None
        (first, before), (second, last) = self.steps
        made = math.log(second / first)
        return last.beyond(before, min(math.log(lam / second) / made, 1.0)) if made else last

    def add(self, lam: float, state: object) -> None:
        """Record the state of a solve."""
        self.steps = [*self.steps[-1:], (lam, cast(Warm, state))]


def _together(
    solver: Solver, queue: list[tuple[int, int, DualProblem]], tol: float
) -> Iterator[tuple[int, int, Solution]]:
    solutions = solver.solve_all([member for _, _, member in queue], tol) if queue else []
    return ((i, j, solution) for (i, j, _), solution in zip(queue, solutions, strict=True))


def _ridge(problem: DualProblem) -> Solution:
    """Return the solution for the square loss from the eigenbasis."""
    ridge = problem.shared.factorize().function(lambda values: 1 / (1 + problem.scale * values))
    return ClosedForm().polished(problem, ridge(problem.targets))


def descending(lams: Sequence[float]) -> list[int]:
    """Return the indices that sort lams in decreasing order."""
    return [int(j) for j in np.argsort(-np.asarray(lams, dtype=float), kind="stable")]


def batch_size(problem: DualProblem) -> int:
    """Return how many such problems may be solved side by side."""
    return max(1, _BATCH_NUMBERS // max(1, math.prod(problem.targets.shape)))
