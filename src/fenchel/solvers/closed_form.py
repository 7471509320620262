"""Closed-form solution for the square loss."""

import math
from collections.abc import Callable

from fenchel._array import Array
from fenchel.losses.loss import is_square
from fenchel.problem import DualProblem
from fenchel.solvers.costs import CALL, FLOPS, Cost, Known, Shares
from fenchel.solvers.solver import Callback, Solution, Solver, Status

__all__ = ["ClosedForm"]


class ClosedForm(Solver):
    r"""Exact solution of the linear systems of the square loss.

    .. math:: a + \frac{1}{\lambda n} \mathcal K a = y .

    Notes
    -----
    A separable kernel with the identity operator needs one Cholesky factorisation, as kernel ridge regression does. A
    general operator needs one eigendecomposition for each side; a sum of separable terms that cannot be merged needs
    one of the whole :math:`np \times np` operator, if that is small enough.

    References
    ----------
    [Laforgue2020]_, section 2; [Laforgue2019]_, App. B.2.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.solvers import ClosedForm
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(loss="square", lam=1e-2, solver=ClosedForm()).fit(X, np.sin(X))
    >>> bool(model.duality_gap_ <= 1e-6)
    True
    """

    def why_not(self, problem: DualProblem) -> str | None:
        """Return why not: the loss is not the square loss, or the kernel is too large to factorise."""
        if not is_square(problem.loss):
            return f"{problem.loss!r} is not the square loss. Use APGD() or Auto()."
        if problem.mask is not None:
            return "samples are held out or partly observed. Use DouglasRachford() or Auto()."
        return problem.gram.why_not_factorize

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Return the cost of a Cholesky factorisation, or of an eigendecomposition if the operator needs one."""
        known = known or Known(Shares(problem), 0.0)
        n, _, width = known.sizes
        return Cost(0.0, (1 / 3 if problem.gram.n_outputs is None else 9) * n * width**2 / FLOPS + 50 * CALL, 1)

    def solve(
        self, problem: DualProblem, tol: float = 1e-6, start: object = None, callback: Callback | None = None
    ) -> Solution:
        """Solve the linear systems, with iterative refinement if the gap requires it; starts are ignored."""
        self.require(problem)
        solve = problem.gram.solver(problem.scale, 1.0)
        return self.polished(problem, solve(problem.targets), tol, solve, callback)

    def polished(
        self,
        problem: DualProblem,
        duals: Array,
        tol: float = math.inf,
        solve: Callable[[Array], Array] | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return duals with their certificate, refined by ``solve`` while the gap requires it."""
        predictions = problem.predictions(duals)
        certificate = problem.certificate(duals, predictions)
        history = [(1, certificate)]
        while certificate.distance > tol and len(history) < 4 and solve is not None:
            refined = duals + solve(problem.targets - predictions - duals)
            trial = problem.predictions(refined)
            history.append((len(history) + 1, problem.certificate(refined, trial)))
            if not history[-1][1].distance < certificate.distance:
                break
            duals, predictions, certificate = refined, trial, history[-1][1]
        if callback is not None:
            callback(len(history), certificate)
        status = Status.CONVERGED if certificate.distance <= tol else Status.STALLED
        return Solution(duals, predictions, certificate, len(history), status, type(self).__name__, history)
