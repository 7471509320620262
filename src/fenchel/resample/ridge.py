"""Ridge regression with the sample weights of a robust solution: expansions and leave-one-out."""

import numpy as np

from fenchel._array import Array, as_index, as_like, host, is_numpy, namespace, row_norms
from fenchel._check import check_memory
from fenchel.exceptions import IncompatibleError
from fenchel.problem import DualProblem
from fenchel.solvers import Solution

__all__ = ["approximate_loo", "double_expansion"]

_LEAST_MULTIPLIER = 1e-10  # of an interpolated sample, relative to the largest scaled kernel value
_OFF = 1e-4  # allowed deviation of a dual from a line, relative to its size; enough for float32


def double_expansion(problem: DualProblem, solution: Solution) -> tuple[np.ndarray, Array]:
    r"""Return the samples S with a non-zero dual, and :math:`\Omega` of shape (\|S\|, n) that expresses their duals.

    .. math:: a_i = \sum_j \omega_{ij} y_j, \qquad i \in S.

    If the outputs are linearly dependent there are many such matrices. For a loss of the norm each dual is a multiple
    of its residual: :math:`\Omega` is then that of the ridge regression with these multiples as sample weights, for any
    kernel of the outputs. For the maximum margin each dual is a multiple of its output.

    References
    ----------
    [Laforgue2020]_, Thm 3 and section 4.4.
    """
    xp, n = namespace(problem.targets), problem.targets.shape[0]
    if problem.loss.profile is not None:
        active, inverse = _reweighted(problem, solution)
        return active, inverse @ as_like(np.eye(n)[active], problem.targets)
    active = np.flatnonzero(host(row_norms(solution.duals)[:, 0]) > 0)
    targets, duals = (xp.take(part, as_index(active, part), axis=0) for part in (problem.targets, solution.duals))
    multiples = xp.sum(duals * targets, axis=1, keepdims=True) / row_norms(targets) ** 2
    if len(active) and float(xp.max(row_norms(duals - multiples * targets) / row_norms(duals))) > _OFF:
        raise IncompatibleError(
            f"The duals of {problem.loss!r} are multiples of neither the residuals nor the outputs."
        )
    return active, multiples * as_like(np.eye(n)[active], targets)


def approximate_loo(problem: DualProblem, solution: Solution) -> Array:
    r"""Return approximate leave-one-out predictions of a radial loss, from one linear system at the solution.

    Each row is assumed to keep its multiplier :math:`m_i = \|r_i\| / \|a_i\|`: the residual without sample i is then
    :math:`a_i / S_{ii}` with :math:`S = (K / (\lambda n) + \mathrm{diag}(m))^{-1}`, as for a weighted ridge regression.
    This is exact for the square loss up to the change of n, and an approximation if leaving out a sample moves others
    across a kink of the loss. Compared with refits, for the Huber loss with 15 % of outliers and n = 40, the median
    error is below 0.3 % of the spread of the outputs, and the largest is 0.5, 2.1 and 13 % at lam 1e-1, 1e-2 and 1e-3.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Huber
    >>> from fenchel.operators import Dense
    >>> from fenchel.problem import DualProblem
    >>> from fenchel.solvers import Auto
    >>> x = np.linspace(0, 1, 30)
    >>> K, Y = np.exp(-30 * (x[:, None] - x) ** 2), np.sin(6 * x)[:, None]
    >>> problem = DualProblem.build(Dense(K), Y, Huber(0.1), 1e-3)
    >>> left_out = approximate_loo(problem, Auto().solve(problem))
    >>> bool(np.max(np.abs(left_out - Y)) < 0.2)
    True
    """
    has_identity = problem.gram.n_outputs is None
    if not has_identity or problem.loss.profile is None:
        raise IncompatibleError(
            "Approximate leave-one-out needs a loss of the Euclidean norm and the identity operator. Got "
            f"{problem.loss!r}{'' if has_identity else ' with an operator'}. Use cv='loo'."
        )
    active, inverse = _reweighted(problem, solution)
    out = host(problem.unscale(solution.predictions)).copy()
    left = host(solution.duals)[active] / np.diag(host(inverse))[:, None]
    root = 1.0 if problem.root is None else host(problem.root)[active]
    out[active] = (host(problem.targets)[active] - left) / root
    return out if is_numpy(problem.targets) else namespace(problem.targets).asarray(out)


def _reweighted(problem: DualProblem, solution: Solution) -> tuple[np.ndarray, Array]:
    """Return the samples S with a non-zero dual, and (scale K_SS + diag(m))^-1 with m = |residual| / |dual|."""
    xp = namespace(problem.targets)
    sizes, duals = row_norms(problem.targets - solution.predictions)[:, 0], row_norms(solution.duals)[:, 0]
    active = np.flatnonzero(host(duals) > 0)
    check_memory(32 * len(active) ** 2, f"An inverse of {len(active)} rows", "Use fewer samples")
    rows = as_index(active, problem.targets)
    m = xp.take(sizes, rows) / xp.take(duals, rows)
    if len(active) == 0:
        return active, m[:, None] * m
    part = problem.gram.block(rows)
    m = xp.clip(m, min=_LEAST_MULTIPLIER * problem.scale * float(xp.max(part.diag())))
    return active, part.solver(problem.scale, m)(as_like(np.eye(len(active)), m))
