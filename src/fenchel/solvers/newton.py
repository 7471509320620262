"""Semismooth Newton method on the rows, for losses of the row norm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, device, namespace, row_norms
from fenchel._check import Interval, Options
from fenchel.operators import is_thin
from fenchel.operators.output import columns_of, in_order
from fenchel.problem import DualProblem
from fenchel.problem.derived import rotated
from fenchel.problem.dual_problem import has_gaps
from fenchel.solvers.costs import BANDWIDTH, CALL, FLOPS, Cost, Known
from fenchel.solvers.smoothed import NewtonState, SmoothedNewton, sparse_predictions

__all__ = ["RowNewton"]

_STEP = 1e-6  # relative step of the finite difference for the radial slope
_MOST_STORED = 4000  # largest number of samples for which the Gram matrix of a thin kernel is formed
_MOST_GROUPS = 32  # largest number of distinct eigenvalues of the operator
_MOVING = 13.0  # steps if the proximal term must move (at L = 48, 4.8e3, 4.8e5: 7 to 28, 11 to 30, 18 to 48)
_FREE = 0.15  # share of the duals outside the zone that are not at their bound (one output, lam 1e-2 to 1e-4: to .2)
_FLAT = 1e-14  # rows with slopes below this do not move


class RowNewton(SmoothedNewton):
    r"""Semismooth Newton method with one multiplier per sample, for losses of the row norm.

    With :math:`\mathcal H = K / (\lambda n)` and the gradient :math:`g` of the loss, the equation
    :math:`C = g(Y - \mathcal H C)` is solved by Newton steps. The Jacobian of :math:`g` at a row is a multiple of the
    identity plus a rank-one term, so a step takes the Cholesky factor of :math:`\mathcal H + \mathrm{diag}(m)` and
    one more system, the Hadamard product of its inverse with the cosines between rows, but never an
    :math:`nr \times nr` matrix. An output operator is diagonalised first; each of its distinct eigenvalues then needs
    its own factorisation.

    Parameters
    ----------
    max_iter : int, default=200
        Maximum number of Newton steps.
    check_every : int, default=1
        Number of steps between two certificates.
    tau : float or None, default=None
        Initial weight of the proximal term for a loss whose conjugate has no curvature; ``None`` sets it from the size
        of the kernel.
    patience : int, default=60
        Number of consecutive certificates without progress after which the solver gives up.
    most_active : float, default=1.0
        Largest share of samples with a non-zero dual; beyond it the solver gives up, since the systems become large.

    Notes
    -----
    Rows with a zero dual leave the system, which shrinks with sparsity. The step is found by backtracking on the primal
    objective; rows at the bound of the dual domain are damped until full steps are taken. A loss whose conjugate has no
    curvature (``Norm``, ``EpsilonSVR``) gets some from a proximal term around the last solution, which is then moved
    and weakened: this works well for the last digits near a solution, but is slow from far away when lam is small.
    Without a start the solver begins at the zero model, so that the samples which it fits are not in the first system.

    References
    ----------
    [QiSun1993]_ for Newton's method on semismooth equations; [Rockafellar1976]_ for the proximal term.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.solvers import RowNewton
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(loss="epsilon_ridge", lam=1e-2, solver=RowNewton()).fit(X, np.sin(X))
    >>> bool(model.duality_gap_ <= 1e-6)
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        **SmoothedNewton._limits,
        "most_active": Interval(0, 1, "right"),
    }

    def __init__(
        self,
        max_iter: int = 200,
        check_every: int = 1,
        tau: float | None = None,
        patience: int = 60,
        most_active: float = 1.0,
    ) -> None:
        self.max_iter = max_iter
        self.patience = patience
        self.check_every = check_every
        self.tau = tau
        self.most_active = most_active

    def why_not(self, problem: DualProblem) -> str | None:
        """Return why not: the loss is not a function of the row norm, or the operator couples the columns."""
        if problem.loss.profile is None:
            return f"{problem.loss!r} is not a loss of the Euclidean norm. Use DouglasRachford() or Auto()."
        if has_gaps(problem):
            return "some coordinates of the outputs are missing. Use DouglasRachford() or Auto()."
        if is_thin(problem.gram) and problem.targets.shape[0] > _MOST_STORED:
            return (
                f"the Gram matrix of more than {_MOST_STORED} samples is not stored. Use DouglasRachford() or Auto()."
            )
        if len(problem.gram.terms) != 1:
            return "the kernel is not separable. Use DouglasRachford() or Auto()."
        if len(rotated(problem).gram.terms[0][1].groups) > _MOST_GROUPS:
            return (
                f"the operator has more than {_MOST_GROUPS} distinct eigenvalues, each of which needs its own "
                "factorisation in every step. Use DouglasRachford() or Auto()."
            )
        return None

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Return the cost of a few factorisations of the size of the active set, estimated from the zero model.

        A loss without curvature takes more steps if more samples are active.
        """
        known = known or Known.of(problem)
        _, p, _ = known.sizes
        n_steps = self._steps * (1 + known.norm) ** (1 / 6)
        if problem.curvature == 0:
            n_steps = _MOVING * (1 + known.norm) ** (1 / 12) * (1 + known.shares.outside) / 2
        share = known.shares.outside if problem.loss.sparse else 1.0
        others = 2.5 * known.product + (130 if p == 1 else 200) * CALL
        return Cost(150 * CALL, self._systems(problem, known, share) + others, n_steps)

    def _systems(self, problem: DualProblem, known: Known, share: float) -> float:
        """Return the seconds for the systems of one step if this share of the samples is active."""
        n, p, _ = known.sizes
        active = (_FREE if p == 1 and problem.curvature == 0 else 1.0) * share * n
        bent = 0.0 if p == 1 else active if problem.loss.sparse else known.shares.at_bound * n
        factors = 1 if known.has_identity else p
        flops = factors * (active**3 / 3 + 2 * active**2 * bent) + 2 * bent**3 / 3
        return flops / FLOPS + 5 * 8 * active**2 / BANDWIDTH

    def within(self, problem: DualProblem, known: Known, price: float, patience: float) -> Self:
        """Return the solver with a limit on its steps, and on the active set if it can grow.

        With a larger active set the estimate would exceed the price.
        """
        limited = super().within(problem, known, price, patience)
        if not problem.loss.sparse:
            return limited
        cost = self.cost(problem, known)
        others = cost.step - self._systems(problem, known, known.shares.outside)
        spare = max(0.0, (price - cost.setup) / cost.n_steps - others)
        share = (spare / self._systems(problem, known, 1.0)) ** (1 / 3)
        return limited if share >= 1 else limited.with_settings(most_active=max(share, 1 / known.sizes[0]))

    def turned(self, problems: Sequence[DualProblem]) -> list[DualProblem]:
        """Return the problems in coordinates in which the operator is diagonal."""
        return [rotated(problem) for problem in problems]

    def is_hopeless(self, state: tuple[NewtonState, ...], place: int) -> bool:
        """Whether the active set exceeds ``most_active``."""
        if self.most_active >= 1:
            return False
        duals = state[place].duals
        xp = namespace(duals)
        return int(xp.sum(xp.any(duals != 0, axis=1))) > self.most_active * duals.shape[0]

    def _direction(self, problem: DualProblem, state: NewtonState) -> Array:
        """Solve (I + D H) X = B - C for the Jacobian D of the gradient map."""
        xp = namespace(state.coef)
        tangential, radial, unit = self._jacobian(problem, state)
        right = state.duals - state.coef
        is_active = xp.maximum(tangential, radial) > _FLAT
        active = xp.nonzero(is_active)[0]
        change = xp.where(is_active[:, None], xp.zeros_like(right), right)
        if active.shape[0] == 0:
            return change
        scalar, output = problem.gram.terms[0]
        is_whole = active.shape[0] == right.shape[0]
        t, q = xp.take(tangential, active), xp.take(radial, active)
        e, g = xp.take(unit, active, axis=0), xp.take(right, active, axis=0)
        q = xp.maximum(q, state.damping * t)
        t = q if right.shape[1] == 1 else xp.maximum(t, _FLAT)
        along = xp.sum(e * g, axis=1)[:, None]
        wanted = (g - along * e) / t[:, None] + along * e / q[:, None]  # D^-1 (B - C)
        if not is_whole:
            wanted = wanted - xp.take(sparse_predictions(problem, change), active, axis=0)
        part = scalar if is_whole else scalar.block(active)
        systems = _Systems([(columns, part.solver(problem.scale * value, 1 / t)) for value, columns in output.groups])
        found = systems.solve(wanted)
        excess = 1 / q - 1 / t
        bent = xp.nonzero(xp.abs(excess) > 1e-12 * (1 / t))[0]
        if bent.shape[0] > 0:
            found = systems.bent(found, e, excess, bent)
        place = xp.clip(xp.cumulative_sum(xp.astype(is_active, xp.int64)) - 1, min=0)
        return xp.where(is_active[:, None], xp.take(found, place, axis=0), change)

    def _jacobian(self, problem: DualProblem, state: NewtonState) -> tuple[Array, Array, Array]:
        """Return the tangential and radial slopes of the gradient map at each row, and the direction of the row."""
        xp = namespace(state.coef)
        curvature = problem.curvature + state.tau
        point = problem.unscale((problem.targets - state.fitted + state.tau * state.centre) / curvature)
        norms = row_norms(point)
        safe = xp.where(norms > 0, norms, xp.ones_like(norms))
        prox = problem.loss.profile.remainder().prox  # type: ignore[union-attr]  # checked by why_not
        sizes = prox(xp.concat([norms, norms * (1 + _STEP), norms * (1 - _STEP)], axis=1), 1 / curvature)
        sizes = xp.where(norms > 0, sizes / (curvature * safe), xp.zeros_like(sizes))
        tangential, radial = sizes[:, :1], (sizes[:, 1:2] - sizes[:, 2:]) / (2 * _STEP)
        if point.shape[1] == 1 and state.tau > 0:  # a number has no tangential direction, and no need of damping
            tangential = radial
        if problem.mask is not None:  # the duals of held-out samples do not move
            tangential, radial = tangential * problem.mask, radial * problem.mask
        return tangential[:, 0], xp.clip(radial[:, 0], min=0.0), point / safe


@dataclass(frozen=True)
class _Systems:
    """The factorised systems of the columns; columns with the same eigenvalue of the operator share one."""

    groups: list[tuple[np.ndarray | None, Callable[[Array], Array]]]

    def solve(self, right: Array) -> Array:
        """Return the solution of every column."""
        return self._joined([solve(columns_of(right, columns)) for columns, solve in self.groups])

    def bent(self, found: Array, units: Array, excess: Array, bent: Array) -> Array:
        """Add the rank-one terms excess_i e_i e_i' to solved systems, by the Hadamard system."""
        xp = namespace(found)
        places = xp.arange(found.shape[0], dtype=bent.dtype, device=device(found))
        chosen = xp.astype(places[:, None] == bent[None, :], found.dtype)
        e = xp.take(units, bent, axis=0)
        inverses = [solve(chosen) for _, solve in self.groups]  # S[:, bent] of each group
        system = xp.eye(bent.shape[0], dtype=found.dtype, device=device(found)) * (1 / xp.take(excess, bent))
        for (columns, _), inverse in zip(self.groups, inverses, strict=True):
            turned = columns_of(e, columns)
            system = system + xp.take(inverse, bent, axis=0) * (turned @ turned.T)
        along = xp.sum(e * xp.take(found, bent, axis=0), axis=1)
        forces = xp.linalg.solve(system, along[:, None]) * e
        moves = [
            inverse @ columns_of(forces, columns) for (columns, _), inverse in zip(self.groups, inverses, strict=True)
        ]
        return found - self._joined(moves)

    def _joined(self, parts: list[Array]) -> Array:
        return in_order(parts, [columns for columns, _ in self.groups])
