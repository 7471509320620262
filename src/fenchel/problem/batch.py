"""Batches of dual problems that share one Gram operator, solved side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel._array import Array, as_index, as_like, host, namespace
from fenchel.losses.loss import Loss, rows_of
from fenchel.problem.dual_problem import Certificate, DualProblem, certificate_of_sums, has_gaps

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """Problems that share Gram operator, targets and weights, on arrays of shape (n, B, p).

    They may differ in the loss, in lam and in the held-out samples.
    """

    problems: tuple[DualProblem, ...]

    def __post_init__(self) -> None:
        if any(p.gram is not self.first.gram or p.targets is not self.first.targets for p in self.problems):
            raise ValueError("The problems of a batch must share their Gram operator and targets.")

    @property
    def first(self) -> DualProblem:
        """One of the problems, for what they share."""
        return self.problems[0]

    @cached_property
    def scales(self) -> Array:
        """The factor of the Gram operator in each problem, (1, B, 1)."""
        return self.column([problem.scale for problem in self.problems])

    @cached_property
    def curvatures(self) -> Array:
        """The curvature of each conjugate, (1, B, 1)."""
        return self.column([problem.curvature for problem in self.problems])

    def take(self, index: Sequence[int]) -> "Batch":
        """Return the selected problems."""
        return Batch(tuple(self.problems[k] for k in index))

    def prox_remainder(self, z: Array, rhos: np.ndarray) -> Array:
        """Return the prox of the conjugates minus their quadratic parts, with steps 1 / rho (B,)."""
        if len(self.problems) == 1:
            return self.first.prox_remainder(z[:, 0, :], 1 / float(rhos[0]))[:, None, :]
        xp, n = namespace(z), z.shape[0]
        z, parts = self._seen(z), []
        for loss, members in self._groups:
            steps = as_like(np.tile(1 / rhos[members], n)[:, None], z)
            found = loss.prox_remainder(self._rows(z, members), steps)
            parts.append(xp.reshape(found, (n, len(members), z.shape[2])))
        point = self._in_order(parts)
        point = point if self.first.root is None else point * self.first.root[:, :, None]
        return point if self._mask is None else point * self._mask

    def predictions(self, duals: Array) -> Array:
        """Return the predictions of each problem's duals, (n, B, p)."""
        return self.first.gram.matmul(duals) * self.scales

    def certificates(self, duals: Array, predictions: Array) -> list[Certificate]:
        """Return the certificate of each problem, with one transfer to the host."""
        if len(self.problems) == 1:
            return [self.first.certificate(duals[:, 0, :], predictions[:, 0, :])]
        xp = namespace(duals)
        residuals = self._seen(self.first.targets[:, None, :] - predictions)
        values, gains = [], []
        for loss, members in self._groups:
            r, a = self._rows(residuals, members), self._rows(duals, members)
            values.append(xp.reshape(loss.value(r), (-1, len(members))))
            gains.append(xp.reshape(xp.sum(a * r, axis=1) - loss.conjugate(a), (-1, len(members))))
        value, gain = self._in_order(values), self._in_order(gains)
        quadratic = xp.sum(xp.sum(duals * predictions, axis=2), axis=0)
        sums = [self._weighted_sums(value), self._weighted_sums(gain), self._weighted_sums(value - gain), quadratic]
        return [
            certificate_of_sums(problem.total, problem.value_at_zero, *(float(number) for number in column))
            for problem, column in zip(self.problems, host(xp.stack(sums)).T, strict=True)
        ]

    def _rows(self, array: Array, members: list[int]) -> Array:
        """Return the rows (sample by sample, problem by problem) of the selected problems, unscaled."""
        xp = namespace(array)
        if len(members) < array.shape[1]:
            array = xp.take(array, as_index(np.asarray(members), array), axis=1)
        if self.first.root is not None:
            array = array / self.first.root[:, :, None]
        return xp.reshape(array, (-1, array.shape[2]))

    def _in_order(self, parts: list[Array]) -> Array:
        """Reorder results computed group by group to the order of the problems."""
        if len(parts) == 1:
            return parts[0]
        xp = namespace(parts[0])
        order = np.argsort([k for _, members in self._groups for k in members])
        return xp.take(xp.concat(parts, axis=1), as_index(order, parts[0]), axis=1)

    def _weighted_sums(self, values: Array) -> Array:
        xp = namespace(values)
        values = values if self.first.root is None else values * self.first.root**2
        if self._mask is not None:
            values = xp.where(xp.max(self._mask, axis=2) > 0, values, xp.zeros_like(values))
        return xp.sum(values, axis=0)

    def _seen(self, rows: Array) -> Array:
        """Return rows (n, B, p) with zeros at missing coordinates."""
        return rows if self._mask is None or self._mask.shape[2] == 1 else rows * self._mask

    @cached_property
    def _groups(self) -> list[tuple[Loss, list[int]]]:
        """The distinct losses, each bound to the rows of all its problems, and the indices of these."""
        places: dict[int, list[int]] = {}
        for k, problem in enumerate(self.problems):
            places.setdefault(id(problem.loss), []).append(k)
        n = self.first.targets.shape[0]
        repeats = {len(members): np.repeat(np.arange(n), len(members)) for members in places.values()}
        return [
            (rows_of(self.problems[members[0]].loss, repeats[len(members)]), members) for members in places.values()
        ]

    @cached_property
    def _mask(self) -> Array | None:
        if all(problem.mask is None for problem in self.problems):
            return None
        xp, targets = namespace(self.first.targets), self.first.targets
        width = targets.shape[1] if any(has_gaps(problem) for problem in self.problems) else 1
        ones = xp.ones_like(targets[:, :width])
        return xp.stack([ones if problem.mask is None else problem.mask * ones for problem in self.problems], axis=1)

    def column(self, numbers: Sequence[float] | np.ndarray) -> Array:
        """Return one number per problem as an array of shape (1, B, 1)."""
        return as_like(np.asarray(numbers)[None, :, None], self.first.targets)
