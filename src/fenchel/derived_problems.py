"""Problems derived from another: with samples held out, restricted to some samples, or in rotated coordinates."""

from dataclasses import replace

import numpy as np

from fenchel._array import Array, as_index, as_like, namespace
from fenchel.losses.base import Loss, rows_of
from fenchel.operators import Rotation
from fenchel.problem import DualProblem, has_gaps

__all__ = ["bound_loss", "holding_out", "restricted", "rotated", "rotation"]


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
