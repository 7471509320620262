"""Proximal gradient descent, plain and accelerated."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fenchel._array import Array, namespace
from fenchel._check import free_memory
from fenchel.losses import Square
from fenchel.problem import DualProblem
from fenchel.solvers.closed_form import ClosedForm
from fenchel.solvers.costs import CALL, Cost, Known
from fenchel.solvers.loop import ProblemwiseSolver
from fenchel.solvers.splitting import shortening

__all__ = ["APGD", "PGD"]

_STEPS = 8.0  # times sqrt(1 + L) (to a gap of 1e-9, at 5, 45, 450, 4500: 30, 80, 290, 820 steps)


@dataclass(frozen=True)
class _Point:
    duals: Array
    predictions: Array
    step: float


class PGD(ProblemwiseSolver[_Point]):
    r"""Proximal gradient descent with the exact Lipschitz constant.

    .. math:: a \leftarrow \operatorname{prox}_{\gamma \ell^*}\bigl(a - \gamma (h_a(x) - y)\bigr),
        \qquad \gamma = 1 / L .

    Parameters
    ----------
    max_iter : int, default=20000
        Maximum number of iterations.
    check_every : int, default=20
        Number of iterations between two certificates.

    Notes
    -----
    Algorithm 1 of the paper prints the soft threshold without the step; the proximal step needs step × epsilon, as here
    (see ``test_soft_threshold_is_scaled_by_the_step``). The number of iterations grows with the condition number, that
    is, like 1 / lam: use it as a baseline for small problems.

    References
    ----------
    [Laforgue2020]_, Alg. 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.solvers import PGD
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(loss="huber", lam=1e-2, solver=PGD()).fit(X, np.sin(X))
    >>> bool(model.duality_gap_ <= 1e-6)
    True
    """

    gram_copies = 2.0

    def __init__(self, max_iter: int = 20000, check_every: int = 20) -> None:
        self.max_iter = max_iter
        self.check_every = check_every

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Return the cost of a number of products proportional to the condition number."""
        known = known or Known.of(problem)
        return _gradient_cost(known, 1 + known.norm)

    def first_state(self, problem: DualProblem, start: Array | None) -> _Point:
        """Start from zero, or from given duals made feasible."""
        return first_point(problem, start)

    def next_state(self, problem: DualProblem, state: _Point) -> _Point:
        """Take one gradient step and one prox."""
        duals = problem.prox(state.duals + state.step * (problem.targets - state.predictions), state.step)
        return _Point(duals, problem.predictions(duals), state.step)

    def points(self, problem: DualProblem, state: _Point) -> Iterator[tuple[Array, Array]]:
        """Yield the current point."""
        yield state.duals, state.predictions


@dataclass(frozen=True)
class _Momentum:
    current: _Point
    ahead: _Point
    age: float


class APGD(ProblemwiseSolver[_Momentum]):
    r"""Accelerated proximal gradient descent with adaptive restart and the exact Lipschitz constant.

    Parameters
    ----------
    max_iter : int, default=20000
        Maximum number of iterations.
    check_every : int, default=10
        Number of iterations between two certificates.

    Notes
    -----
    The step is 1 / L, as acceleration requires (2 / L works for the plain method only). Each iteration needs one Gram
    product: predictions are linear in the duals, so the extrapolated point needs none of its own. The momentum restarts
    when the step turns against it. Without a start the solver begins at the solution of the square loss, clipped into
    the domain of the conjugate, if a factorisation fits in memory and costs less than the iterations from zero. It
    stops when a thousand consecutive certificates have not reduced the gap by a tenth, or fewer if round-off explains
    it: the gap falls like one over the square of the iterations, or not at all.

    References
    ----------
    [OdonoghueCandes2015]_, gradient scheme; [Lambert2022]_, Alg. 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.solvers import APGD
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(loss="huber", lam=1e-2, solver=APGD()).fit(X, np.sin(X))
    >>> bool(model.duality_gap_ <= 1e-6)
    True
    """

    gram_copies = 2.0
    patience = 1000.0

    def __init__(self, max_iter: int = 20000, check_every: int = 10) -> None:
        self.max_iter = max_iter
        self.check_every = check_every

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Return the cost of a number of products proportional to the square root of the condition number.

        If every sample is at its bound in the zero model, the condition number matters less the smaller its gap is.
        """
        known = known or Known.of(problem)
        is_bound = known.shares.at_bound == 1
        power = min(1.0, known.shares.gap) if is_bound else 1.0
        return _gradient_cost(known, math.sqrt(1 + known.norm) ** power)

    def first_state(self, problem: DualProblem, start: Array | None) -> _Momentum:
        """Start from given duals or from the square-loss solution, made feasible, or from zero."""
        point = first_point(problem, self._square_solution(problem) if start is None else start)
        return _Momentum(point, point, 1.0)

    def _square_solution(self, problem: DualProblem) -> Array | None:
        """Return the best multiple of the square-loss solution, or ``None`` if iterations from zero cost less."""
        square, closed = problem.with_(loss=Square().bind(problem.targets, problem.point_scale)), ClosedForm()
        if problem.curvature == 0 or closed.why_not(square) is not None:
            return None
        known, free = Known.of(problem), free_memory(problem.targets)
        n, _, width = known.sizes
        if free is not None and 8 * n * width * closed.gram_copies > free:
            return None
        if closed.cost(square, known).seconds > self.cost(problem, known).seconds:
            return None
        solution = closed.solve(square)
        return solution.duals * shortening(problem, solution.duals, solution.predictions)

    def next_state(self, problem: DualProblem, state: _Momentum) -> _Momentum:
        """Take a proximal gradient step from the extrapolated point."""
        xp, before, ahead = namespace(problem.targets), state.current, state.ahead
        duals = problem.prox(ahead.duals + ahead.step * (problem.targets - ahead.predictions), ahead.step)
        point = _Point(duals, problem.predictions(duals), ahead.step)
        moved = duals - before.duals
        if bool(xp.sum((ahead.duals - duals) * moved) > 0):
            return _Momentum(point, point, 1.0)
        age = (1 + (1 + 4 * state.age**2) ** 0.5) / 2
        push = (state.age - 1) / age
        predictions = point.predictions + push * (point.predictions - before.predictions)
        return _Momentum(point, _Point(duals + push * moved, predictions, ahead.step), age)

    def points(self, problem: DualProblem, state: _Momentum) -> Iterator[tuple[Array, Array]]:
        """Yield the current point."""
        yield state.current.duals, state.current.predictions


def _gradient_cost(known: Known, growth: float) -> Cost:
    step = known.product + known.passes(5) + 30 * CALL
    return Cost(300 * CALL, step, _STEPS * growth * known.flatness)


def first_point(problem: DualProblem, start: Array | None) -> _Point:
    """Return a feasible point and the step 1 / L, which is capped at 1000."""
    step = 1 / max(problem.lipschitz, 1e-3)
    start = namespace(problem.targets).zeros_like(problem.targets) if start is None else start
    # take a gradient step first: a solution is a fixed point of the step, not of the prox alone
    duals = problem.prox(start + step * (problem.targets - problem.predictions(start)), step)
    return _Point(duals, problem.predictions(duals), step)
