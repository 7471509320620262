"""The solver that chooses a solver."""

from fenchel._array import Array, namespace
from fenchel.problem import DualProblem
from fenchel.solvers.base import Callback, Solution, Solver, Status
from fenchel.solvers.closed_form import ClosedForm
from fenchel.solvers.proximal import APGD
from fenchel.solvers.splitting import DouglasRachford

__all__ = ["Auto"]


class Auto(Solver):
    """Chooses by the problem: exact where there is a formula, else the method that depends least on lam.

    Parameters
    ----------
    max_iter : int or None, default=None
        Most iterations of the chosen solver; ``None`` is its own default.

    Notes
    -----
    ``choose`` returns the solver and the reason. A problem whose solution is zero (every target inside the insensitive
    zone) is answered at once.
    """

    def __init__(self, max_iter: int | None = None) -> None:
        self.max_iter = max_iter

    def why_not(self, problem: DualProblem) -> str | None:
        """Return ``None``: there is a solver for every problem."""
        return None

    def choose(self, problem: DualProblem) -> tuple[Solver, str]:
        """Return the solver for this problem, and why."""
        exact = ClosedForm()
        if exact.why_not(problem) is None:
            return exact, "the square loss has a closed form"
        splitting = self._limited(DouglasRachford())
        reason = splitting.why_not(problem)
        if reason is None:
            return splitting, "one eigendecomposition, then tens of iterations whatever lam"
        return self._limited(APGD()), reason

    def solve(
        self, problem: DualProblem, tol: float = 1e-6, start: Array | None = None, callback: Callback | None = None
    ) -> Solution:
        """Solve with the chosen solver, after a look whether the answer is zero."""
        if problem.value_at_zero == 0:
            zero = namespace(problem.targets).zeros_like(problem.targets)
            found = problem.certificate(zero, zero)
            if found.gap == 0:
                return Solution(zero, zero, found, 0, Status.CONVERGED, type(self).__name__, [(0, found)])
        return self.choose(problem)[0].solve(problem, tol, start, callback)

    def _limited(self, solver: Solver) -> Solver:
        return solver if self.max_iter is None else solver.set_params(max_iter=self.max_iter)
