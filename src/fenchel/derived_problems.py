"""Problems derived from another: with samples held out, restricted to samples or values, or in rotated coordinates."""

from dataclasses import dataclass, replace

import numpy as np

from fenchel._array import Array, as_index, as_like, is_numpy, namespace
from fenchel.losses.base import Loss, rows_of
from fenchel.operators import Blocks, Rotation, entries, is_thin
from fenchel.operators.coupled import DENSE_LIMIT
from fenchel.problem import DualProblem, has_gaps

__all__ = ["Compact", "bound_loss", "compact", "holding_out", "restricted", "rotated", "rotation"]


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
    """A problem whose rows hold only observed coordinates, (n, q), where q is the largest number in a sample."""

    problem: DualProblem
    columns: np.ndarray  # (n, q), original column of each coordinate
    n_columns: int

    def forward(self, rows: Array) -> Array:
        """Return rows in these coordinates."""
        return np.take_along_axis(rows, self.columns, axis=1)

    def back(self, rows: Array) -> Array:
        """Return rows in the original coordinates, zero where nothing was observed."""
        original = np.zeros((len(rows), self.n_columns), dtype=rows.dtype)
        np.put_along_axis(original, self.columns, rows, axis=1)
        return original


def compact(problem: DualProblem) -> Compact | None:
    """Return the problem of the observed values, ``None`` if that gains nothing or the loss acts on points.

    Curves that share no points have few values each, on a long union of points. The Gram matrix of all values, whose
    product takes (n q)^2 operations, then replaces the products with both sides of a Kronecker product, which take n p
    (n + p).
    """
    gram, targets = problem.gram, problem.targets
    if not has_gaps(problem) or problem.loss.profile is None or not is_numpy(targets):
        return None
    is_there, (n, p) = problem.mask > 0, targets.shape  # type: ignore[operator]  # there is a mask
    q = int(np.max(np.sum(is_there, axis=1)))
    if n * q > DENSE_LIMIT or n * q**2 > p * (n + p):
        return None
    if not gram.terms or is_thin(gram) or gram.why_not_factorize is not None:
        return None
    columns = np.argsort(~is_there, axis=1, kind="stable")[:, :q]
    is_there = np.take_along_axis(is_there, columns, axis=1)
    matrix = entries(gram, np.repeat(np.arange(n), q), columns.ravel())
    inner = replace(
        problem,
        gram=Blocks(np.transpose(matrix.reshape(n, q, n, q), (0, 2, 1, 3))),
        targets=np.take_along_axis(targets, columns, axis=1) * is_there,
        mask=None if is_there.all() else is_there.astype(targets.dtype),
        point_scale=None,
    )
    return Compact(inner, columns, p)
