"""Block coordinate descent, one sample at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fenchel._array import Array, host, namespace
from fenchel.losses.loss import rows_of
from fenchel.problem import DualProblem
from fenchel.solvers.costs import CALL, Cost, Known
from fenchel.solvers.loop import ProblemwiseSolver
from fenchel.solvers.proximal import first_point

__all__ = ["BCD"]


@dataclass(frozen=True)
class _Sweep:
    duals: Array
    predictions: Array
    steps: list[float]


class BCD(ProblemwiseSolver[_Sweep]):
    r"""Block coordinate descent: each step minimises over the dual variable of one sample.

    .. math:: a_i \leftarrow \operatorname{prox}_{\ell^* / L_i}
        \Bigl(a_i + \tfrac{1}{L_i} \bigl(y_i - h_a(x_i)\bigr)\Bigr), \qquad
        L_i = \tfrac{1}{\lambda n} \|\mathcal K(x_i, x_i)\| .

    Parameters
    ----------
    max_iter : int, default=2000
        Maximum number of sweeps over the sample.
    check_every : int, default=1
        Number of sweeps between two certificates.

    Notes
    -----
    This is the papers' solver for the epsilon losses, included as a baseline. With the identity operator a step is an
    exact minimisation; samples whose dual stays zero cost little.

    References
    ----------
    [Laforgue2019]_, Alg. 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.solvers import BCD
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(loss="huber", lam=1e-2, solver=BCD()).fit(X, np.sin(X))
    >>> bool(model.duality_gap_ <= 1e-6)
    True
    """

    gram_copies = 2.0

    def __init__(self, max_iter: int = 2000, check_every: int = 1) -> None:
        self.max_iter = max_iter
        self.check_every = check_every

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Return the cost of the sweeps, each as expensive as a product with one column per sample."""
        known = known or Known.of(problem)
        n, _, _ = known.sizes
        return Cost(0.0, n * 30 * CALL + known.product, (1 + known.norm) * known.flatness)

    def first_state(self, problem: DualProblem, start: Array | None) -> _Sweep:
        """Start from zero, or from given duals made feasible."""
        first = first_point(problem, start)
        norms = host(problem.gram.diag()) * problem.scale
        return _Sweep(first.duals, first.predictions, [1 / max(float(norm), 1e-3) for norm in norms])

    def next_state(self, problem: DualProblem, state: _Sweep) -> _Sweep:
        """Sweep once over the samples; predictions are recomputed at the end, so that errors do not accumulate."""
        xp = namespace(state.duals)
        duals, predictions = xp.asarray(state.duals, copy=True), xp.asarray(state.predictions, copy=True)
        for i, step in enumerate(state.steps):
            row = duals[i : i + 1, :]
            residual = problem.targets[i : i + 1, :] - predictions[i : i + 1, :]
            moved = _row(problem, i).prox(row + step * residual, step)
            change = moved - row
            if bool(xp.any(change != 0)):
                duals[i, :] = moved[0, :]
                predictions += problem.scale * problem.gram.block(slice(None), slice(i, i + 1)).matmul(change)
        return _Sweep(duals, problem.predictions(duals), state.steps)

    def points(self, problem: DualProblem, state: _Sweep) -> Iterator[tuple[Array, Array]]:
        """Yield the current point."""
        yield state.duals, state.predictions


def _row(problem: DualProblem, index: int) -> DualProblem:
    """Return the problem with the loss of one sample, for its prox."""
    part = slice(index, index + 1)
    return replace(
        problem,
        loss=rows_of(problem.loss, part),
        root=None if problem.root is None else problem.root[part, :],
        mask=None if problem.mask is None else problem.mask[part, :],
    )
