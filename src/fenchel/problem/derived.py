"""Problems derived from another: with samples held out, restricted to samples or values, or in rotated coordinates."""

import math
from dataclasses import dataclass, replace

import numpy as np

from fenchel._array import Array, as_index, as_like, host, is_numpy, namespace
from fenchel.losses.loss import Loss, is_square, rows_of
from fenchel.operators import Blocks, Dense, Rotation, entries, is_thin
from fenchel.operators.coupled import DENSE_LIMIT
from fenchel.problem.dual_problem import DualProblem, has_gaps

__all__ = ["Compact", "bound_loss", "compact", "holding_out", "restricted", "rotated", "rotation"]

_MOST_VALUES = 2000  # for which a Cholesky factor for each lam is faster than the iterations that it replaces


def bound_loss(problem: DualProblem, loss: Loss) -> Loss:
    """Bind a loss in the same way as the loss of a problem."""
    return loss.bind(problem.unscale(problem.targets), problem.point_scale)


def holding_out(problem: DualProblem, index: np.ndarray) -> DualProblem:
    """Return the problem with some samples held out, on the same Gram operator."""
    ones = np.ones((problem.targets.shape[0], 1))
    ones[index] = 0
    mask = as_like(ones, problem.targets)
    weights = mask if problem.root is None else mask * problem.root**2
    both = mask * problem.mask if has_gaps(problem) else mask
    return replace(problem, mask=both, total=float(namespace(mask).sum(weights)))


def restricted(problem: DualProblem, index: np.ndarray) -> DualProblem:
    """Return the problem restricted to some samples, on their block of the Gram operator."""
    xp, rows = namespace(problem.targets), as_index(index, problem.targets)

    def cut(array: Array | None) -> Array | None:
        return array if array is None or array.ndim == 1 else xp.take(array, rows, axis=0)

    root = cut(problem.root)
    return replace(
        problem,
        gram=problem.gram.block(rows),
        targets=cut(problem.targets),
        loss=rows_of(problem.loss, index),
        root=root,
        total=float(len(index)) if root is None else float(xp.sum(root**2)),
        mask=cut(problem.mask),
        point_scale=cut(problem.point_scale),
    )


def rotation(problem: DualProblem) -> Rotation | None:
    """Return the rotation to coordinates in which the operator is diagonal, ``None`` if the loss does not allow it."""
    if problem.loss.profile is None or has_gaps(problem) or problem.shared.rotated is None:
        return None
    return problem.shared.rotated[0]


def rotated(problem: DualProblem) -> DualProblem:
    """Return the problem in the coordinates of its rotation, or unchanged if there is none."""
    if rotation(problem) is None or problem.shared.rotated is None:
        return problem
    shared = problem.shared.rotated[1]
    return replace(problem, gram=shared.gram, targets=shared.targets, shared=shared)


@dataclass(frozen=True)
class Compact:
    """A problem of observed values alone, and the places of these values in the original one."""

    problem: DualProblem
    places: tuple[np.ndarray, np.ndarray]  # sample and column of each value; both have the shape of the rows
    shape: tuple[int, int]

    def forward(self, rows: Array) -> Array:
        """Return rows in these coordinates."""
        xp, flat = namespace(rows), np.ravel_multi_index(self.places, self.shape)
        return xp.reshape(xp.take(xp.reshape(rows, (-1,)), as_index(flat.ravel(), rows)), flat.shape)

    def back(self, rows: Array) -> Array:
        """Return rows in the original coordinates, zero where nothing was observed."""
        xp, flat = namespace(rows), np.ravel_multi_index(self.places, self.shape).ravel()
        source = np.full(math.prod(self.shape), len(flat))  # the last one is a zero
        source[flat] = np.arange(len(flat))
        padded = xp.concat([xp.reshape(rows, (-1,)), xp.zeros_like(xp.reshape(rows, (-1,))[:1])])
        return xp.reshape(xp.take(padded, as_index(source, rows)), self.shape)


def compact(problem: DualProblem) -> Compact | None:
    """Return the problem of the observed values, ``None`` if that gains nothing or the loss acts on points.

    Curves that share no points have few values each, on a long union of points. The Gram matrix of all values, whose
    product takes (n q)^2 operations for at most q values in a sample, then replaces the products with both sides of a
    Kronecker product, which take n p (n + p). The square loss is the sum of those of single values: each becomes a
    sample of its own, so that the problem has no gaps, and a closed form.
    """
    gram, targets = problem.gram, problem.targets
    if not has_gaps(problem) or problem.loss.profile is None:
        return None
    if not gram.terms or is_thin(gram) or gram.why_not_factorize is not None:
        return None
    is_there, (n, p) = host(problem.mask) > 0, targets.shape
    if is_square(problem.loss) and np.sum(is_there) <= _MOST_VALUES:
        return _value_by_value(problem, is_there)
    q = int(np.max(np.sum(is_there, axis=1)))
    if not is_numpy(targets) or n * q > DENSE_LIMIT or n * q**2 > p * (n + p):
        return None
    columns = np.argsort(~is_there, axis=1, kind="stable")[:, :q]
    places = np.repeat(np.arange(n), q).reshape(n, q), columns
    is_there = is_there[places]
    matrix = entries(gram, places[0].ravel(), columns.ravel())
    inner = replace(
        problem,
        gram=Blocks(np.transpose(matrix.reshape(n, q, n, q), (0, 2, 1, 3))),
        targets=targets[places] * is_there,
        mask=None if is_there.all() else is_there.astype(targets.dtype),
        point_scale=None,
    )
    return Compact(inner, places, (int(n), int(p)))


def _value_by_value(problem: DualProblem, is_there: np.ndarray) -> Compact:
    """Return the problem of the square loss in which each observed value is a sample."""
    rows, columns = np.nonzero(is_there)
    places, like, root = (rows[:, None], columns[:, None]), problem.targets, problem.root
    small = Compact(problem, places, (int(like.shape[0]), int(like.shape[1])))
    inner = replace(
        problem,
        gram=Dense(entries(problem.gram, as_index(rows, like), as_index(columns, like))),
        targets=small.forward(like),
        root=None if root is None else namespace(root).take(root, as_index(rows, root), axis=0),
        mask=None,
        point_scale=None,
    )
    return replace(small, problem=inner)
