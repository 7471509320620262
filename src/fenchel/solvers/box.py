"""Newton's method on the duals strictly inside their box, for quantile and hinge losses to high accuracy."""

import math

from fenchel._array import Array, cholesky_solver, namespace
from fenchel.operators import entries
from fenchel.operators.dense import shifted
from fenchel.problem import DualProblem
from fenchel.solvers.costs import CALL, FLOPS, Cost, Known
from fenchel.solvers.smoothed import NewtonState, SmoothedNewton

__all__ = ["BoxNewton"]

_MOST_FREE = 4000  # largest system that is factorised
_CG_STEPS = 200  # limit on conjugate gradient iterations per step for larger systems


class BoxNewton(SmoothedNewton):
    r"""Proximal point and semismooth Newton method for losses whose duals lie in a box, such as ``Pinball``.

    .. math:: a^{k+1} = \arg\min_{l \le a \le u} \; \tfrac12 \langle a, \mathcal H a \rangle - \langle a, y \rangle
        + \tfrac\tau2 \|a - a^k\|^2 .

    Most duals lie at an end of their interval; the linear system of a step involves only the others, which are few.

    Parameters
    ----------
    max_iter : int, default=300
        Maximum number of Newton steps.
    check_every : int, default=1
        Number of steps between two certificates.
    tau : float or None, default=None
        Initial weight of the proximal term; it is divided by 3 whenever the smoothed problem is solved. ``None`` sets
        it from the size of the kernel.
    patience : int, default=60
        Number of consecutive certificates without progress after which the solver gives up.

    Notes
    -----
    The method is meant to start near the solution, for example from ``DouglasRachford``, as ``Auto`` does. A system
    with more than 4000 unknowns is solved by conjugate gradients, using only products with the Gram operator: no matrix
    of the size of all duals is ever formed.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.losses import Pinball
    >>> from fenchel.solvers import BoxNewton
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(loss=Pinball(0.5), lam=1e-2, solver=BoxNewton()).fit(X, np.sin(X))
    >>> bool(model.duality_gap_ <= 1e-6)
    True
    """

    start_gap = 1e-2

    def __init__(self, max_iter: int = 300, check_every: int = 1, tau: float | None = None, patience: int = 60) -> None:
        self.max_iter = max_iter
        self.check_every = check_every
        self.tau = tau
        self.patience = patience

    def why_not(self, problem: DualProblem) -> str | None:
        """Return why not: the duals do not lie in a box, or the kernel is not a sum of separable kernels."""
        if problem.loss.box is None:
            return f"the duals of {problem.loss!r} are not in a box. Use DouglasRachford() or Auto()."
        if not problem.gram.terms:
            return "the entries of this operator-valued kernel are not available. Use APGD() or Auto()."
        return None

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Return the cost from a close start, with a twentieth of the duals strictly inside their box."""
        known = known or Known.of(problem)
        n, p, _ = known.sizes
        free = min(n * p / 20, _MOST_FREE)
        step = free**3 / 3 / FLOPS + 3 * known.product + 220 * CALL
        return Cost(150 * CALL, step, self._steps * (1 + known.norm) ** (1 / 6) * math.sqrt(free))

    def _direction(self, problem: DualProblem, state: NewtonState) -> Array:
        """Solve (tau + H) on the free duals; set the others to their values under the gradient map."""
        xp, right = namespace(state.coef), state.duals - state.coef
        low, high, _ = problem.loss.box  # type: ignore[misc]  # checked by why_not
        if problem.root is not None:  # bounds computed as in the prox, so that the comparison is exact
            low, high = low * problem.root, high * problem.root
        is_free = (state.duals > low) & (state.duals < high)
        if problem.mask is not None:
            is_free = is_free & (problem.mask > 0)
        change = xp.where(is_free, xp.zeros_like(right), right)
        rows, columns = xp.nonzero(is_free)
        if rows.shape[0] == 0:
            return change
        wanted = xp.where(is_free, state.tau * right - problem.predictions(change), xp.zeros_like(right))
        if rows.shape[0] > _MOST_FREE:
            return change + _conjugate_gradients(problem, wanted, is_free, state.tau)
        flat = rows * right.shape[1] + columns
        system = shifted(entries(problem.gram, rows, columns), problem.scale, state.tau)
        found = cholesky_solver(system)(xp.take(xp.reshape(wanted, (-1,)), flat)[:, None])[:, 0]
        place = xp.clip(xp.cumulative_sum(xp.astype(xp.reshape(is_free, (-1,)), xp.int64)) - 1, min=0)
        return xp.where(is_free, xp.reshape(xp.take(found, place), right.shape), change)


def _conjugate_gradients(problem: DualProblem, right: Array, is_free: Array, tau: float) -> Array:
    """Return an approximate solution of (tau + H) x = b on the free entries."""
    xp = namespace(right)
    found, rest = xp.zeros_like(right), right
    move, size = rest, float(xp.sum(rest**2))
    first = size
    for _ in range(_CG_STEPS):
        if size <= 1e-16 * first:
            break
        image = xp.where(is_free, tau * move + problem.predictions(move), xp.zeros_like(move))
        length = size / float(xp.sum(move * image))
        found, rest = found + length * move, rest - length * image
        size, last = float(xp.sum(rest**2)), size
        move = rest + (size / last) * move
    return found
