"""The narrow waist: the dual problem, and the certificate that every solver stops on."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fenchel._array import Array, as_index, as_like, eps, few_threads, host, namespace, row_norms
from fenchel.kernels.gram import OperatorGram, Rotation
from fenchel.kernels.spectrum import Spectrum
from fenchel.losses.base import Loss

__all__ = ["Certificate", "DualProblem"]


@dataclass(frozen=True)
class Certificate:
    r"""Primal value, dual value and the gap between them.

    ``gap`` is the sum of the Fenchel–Young gaps of the samples, which loses no digit to the subtraction of two nearly
    equal objectives; ``relative_gap`` is :math:`gap / \max(|P|, 10^{-10} P(0))`.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float


@dataclass(frozen=True)
class DualProblem:
    r"""The dual of a regularised fit, in orthonormal output coordinates.

    .. math:: \min_a \sum_i s_i \ell^*(a_i) - s_i \langle a_i, y_i \rangle
        + \frac{1}{2 \lambda S} \sum_{ij} s_i s_j \langle a_i, \mathcal K(x_i, x_j) a_j \rangle,
        \qquad S = \sum_i s_i .

    Sample weights :math:`s_i` are carried by the variables :math:`b_i = \sqrt{s_i} a_i`, which solvers call ``duals``:
    they never meet the weights. ``DualProblem.build`` makes the change, ``unscale`` undoes it.

    Samples can be held out without touching the Gram matrix: ``kept`` is 0 for them, their duals are zero, and their
    predictions are out of sample. So every fold of a cross-validation shares one eigendecomposition. In the same way
    single coordinates of a sample can be absent: the points at which a curve was not observed. Their duals are zero and
    the loss does not see them.
    """

    gram: OperatorGram
    targets: Array
    loss: Loss
    lam: float
    root: Array | None = None
    total: float = 1.0
    kept: Array | None = None  # 1 or 0: (n, 1) for whole samples, (n, p) for single coordinates
    point_scale: Array | None = None  # what the loss is bound to beside the targets

    @classmethod
    def build(
        cls,
        gram: OperatorGram,
        targets: Array,
        loss: Loss,
        lam: float,
        weights: Array | None = None,
        point_scale: Array | None = None,
        observed: Array | None = None,
    ) -> "DualProblem":
        """Return the problem of a sample.

        ``weights`` (n,) are positive, ``None`` counts every sample once; ``observed`` (n, p) is 0 for coordinates that
        are absent, where targets must be zero.
        """
        bound = loss.bind(targets, point_scale)
        if weights is None:
            return cls(gram, targets, bound, lam, None, float(targets.shape[0]), observed, point_scale)
        xp = namespace(targets)
        root = xp.sqrt(weights)[:, None]
        total = float(xp.sum(weights))
        return cls(gram.scaled(root), targets * root, bound, lam, root, total, observed, point_scale)

    def bind(self, loss: Loss) -> Loss:
        """Return a loss bound as the one of this problem is."""
        return loss.bind(self.unscale(self.targets), self.point_scale)

    def with_(self, loss: Loss | None = None, lam: float | None = None) -> "DualProblem":
        """Return the problem with another loss (bound as this one is) or another lam, on the same Gram operator."""
        other = replace(self, loss=self.loss if loss is None else loss, lam=self.lam if lam is None else lam)
        return other._sharing(self)

    def holding_out(self, index: np.ndarray) -> "DualProblem":
        """Return the problem without some samples, on the same Gram operator."""
        kept = np.ones((self.targets.shape[0], 1))
        kept[index] = 0
        mask = as_like(kept, self.targets)
        xp = namespace(mask)
        weights = mask if self.root is None else mask * self.root**2
        both = mask * self.kept if self.has_gaps else mask
        return replace(self, kept=both, total=float(xp.sum(weights)))._sharing(self)

    def part(self, index: np.ndarray) -> "DualProblem | None":
        """Return the problem of some samples alone, on their Gram matrix, or ``None`` if that cannot be cut."""
        rows = as_index(index, self.targets)
        gram = self.gram.part(rows, rows)
        if gram is None:
            return None
        xp = namespace(self.targets)

        def cut(array: Array | None) -> Array | None:
            return array if array is None or array.ndim == 1 else xp.take(array, rows, axis=0)

        root = cut(self.root)
        return replace(
            self,
            gram=gram,
            targets=cut(self.targets),
            loss=self.loss.rows(index),
            root=root,
            total=float(len(index)) if root is None else float(xp.sum(root**2)),
            kept=cut(self.kept),
            point_scale=cut(self.point_scale),
        )

    @property
    def has_gaps(self) -> bool:
        """Whether single coordinates are absent, which leaves no freedom to turn the coordinates."""
        return self.kept is not None and self.kept.shape[1] > 1

    def _sharing(self, other: "DualProblem") -> "DualProblem":
        """Take over what a problem with the same Gram operator and targets has computed already."""
        for name in ("spectrum", "_rotation"):
            if name in other.__dict__:
                self.__dict__[name] = other.__dict__[name]
        return self

    def prepare(self) -> None:
        """Compute what problems with the same Gram operator and targets share, for those that are made of this one."""
        self.spectrum, self._rotation  # noqa: B018

    @cached_property
    def _rotation(self) -> "tuple[Rotation, DualProblem] | None":
        """Return turned coordinates of the outputs, and one problem in them that holds the eigenbasis."""
        rotation = self.gram.rotated(self.targets)
        return None if rotation is None else (rotation, replace(self, gram=rotation.gram, targets=rotation.targets))

    def rotated(self) -> "DualProblem":
        """Return the problem in coordinates in which the operator is diagonal, if the loss allows that, else itself."""
        if self.rotation is None:
            return self
        rotation, first = self._rotation  # type: ignore[misc]  # there is one
        first.spectrum  # noqa: B018 - shared by all
        return replace(self, gram=rotation.gram, targets=rotation.targets)._sharing(first)

    @property
    def rotation(self) -> Rotation | None:
        """Return the change between the coordinates of this problem and those of the rotated one."""
        if self.loss.profile() is None or self.has_gaps or self._rotation is None:
            return None
        return self._rotation[0]

    @contextmanager
    def arithmetic(self) -> Iterator[None]:
        """Return a context for solving this problem: small products take one thread, and NumPy does not warn.

        Overflow is no accident at extreme scales: a point without a finite certificate is never the best one.
        """
        with few_threads(self.targets, max(self.targets.shape)), np.errstate(all="ignore"):
            yield

    @property
    def scale(self) -> float:
        """Return 1 / (lam S), the factor of the Gram operator."""
        return 1 / (self.lam * self.total)

    @property
    def curvature(self) -> float:
        """Return the weight of the squared norm in the conjugate of the loss."""
        return self.loss.curvature

    @cached_property
    def lipschitz(self) -> float:
        """Return the norm of the quadratic term, the exact Lipschitz constant of its gradient (rounded up)."""
        return self.gram.norm(self.targets) * self.scale

    @property
    def has_spectrum(self) -> bool:
        """Whether the eigenbasis is there already."""
        return "spectrum" in self.__dict__

    @cached_property
    def spectrum(self) -> Spectrum:
        """Return the eigenbasis of the Gram operator, computed once."""
        return self.gram.spectrum(self.targets)

    @cached_property
    def value_at_zero(self) -> float:
        """Return P(0), the objective of the zero model."""
        return float(self._weighted_sum(self.loss.value(self.unscale(self.targets)))) / self.total

    def predictions(self, duals: Array) -> Array:
        """Return h_a(x_i), times the root of the weight."""
        return self.gram.matmul(duals) * self.scale

    def smooth_gradient(self, predictions: Array) -> Array:
        """Return the gradient of the linear and quadratic part at duals that have these predictions."""
        return predictions - self.targets

    def prox(self, duals: Array, step: float) -> Array:
        """Return the prox of step times the conjugate of the loss."""
        return self._rescaled(self.loss.prox_conjugate, duals, step)

    def prox_remainder(self, duals: Array, step: float) -> Array:
        """Return the prox of step times the conjugate less its quadratic part."""
        return self._rescaled(self.loss.prox_remainder, duals, step)

    def prox_row(self, index: int, row: Array, step: float) -> Array:
        """Return the prox at one sample; ``row`` has shape (1, p)."""
        part = slice(index, index + 1)
        one = replace(
            self,
            loss=self.loss.rows(part),
            root=None if self.root is None else self.root[part, :],
            kept=None if self.kept is None else self.kept[part, :],
        )
        return one.prox(row, step)

    def unscale(self, rows: Array) -> Array:
        """Return rows divided by the root of the weights: the duals of the samples from those of the solver."""
        return rows if self.root is None else rows / self.root

    def certificate(self, duals: Array, predictions: Array) -> Certificate:
        """Return the certificate of the pair (h_a, a); one transfer to the host."""
        xp = namespace(duals)
        residuals, a = self.unscale(self._seen(self.targets - predictions)), self.unscale(duals)
        values = self.loss.value(residuals)
        gains = xp.sum(a * residuals, axis=1) - self.loss.conjugate(a)
        sums = [*map(self._weighted_sum, (values, gains, values - gains)), xp.sum(duals * predictions)]
        return self.certified(*(float(number) for number in host(xp.stack(sums))))

    def certified(self, value: float, gain: float, gap: float, quadratic: float) -> Certificate:
        """Return the certificate from four sums over the samples."""
        primal, dual = (value + quadratic / 2) / self.total, (gain + quadratic / 2) / self.total
        return Certificate(primal, dual, gap / self.total, self._relative(gap / self.total, primal))

    @property
    def loss_radius(self) -> float:
        """The norm of a residual beyond which the loss is infinite, ``inf`` for a loss that is finite everywhere."""
        profile = self.loss.profile()
        return math.inf if profile is None else float(profile.radius)

    def round_off(self, duals: Array, predictions: Array) -> float:
        """Return how much the objective may change by round-off in the predictions of the duals."""
        xp = namespace(duals)
        roots, sizes = xp.sqrt(self.gram.block_norms())[:, None], row_norms(duals)
        errors = self.unscale(eps(duals) * self.scale * float(xp.sum(roots * sizes)) * roots)
        residuals = self.unscale(self._seen(self.targets - predictions))
        norms = row_norms(residuals)
        units = xp.where(norms > 0, residuals / xp.where(norms > 0, norms, 1.0), residuals.shape[1] ** -0.5)
        before, after = self.loss.value(residuals), self.loss.value(residuals + errors * units)
        is_finite = xp.isfinite(before)
        rises = xp.where(is_finite, after, xp.zeros_like(after)) - xp.where(is_finite, before, xp.zeros_like(before))
        return float(self._weighted_sum(rises + (self.unscale(sizes) * errors)[:, 0])) / self.total

    def conjugate_sum(self, duals: Array) -> Array:
        """Return the weighted sum of the conjugates."""
        return self._weighted_sum(self.loss.conjugate(self.unscale(duals)))

    def pulled_inside(self, duals: Array, predictions: Array, margin: float = 1e-2) -> tuple[Array, Array]:
        """Return a pair whose residuals lie in the domain of a loss that is infinite outside a ball.

        Mixing with the interpolant, whose residuals are zero, shrinks every residual by the same factor. Losses that
        are finite everywhere return the pair as it is. ``margin``, in units of the root of eps, is how far inside: then
        predictions that are computed in another order are inside too.
        """
        radius = self.loss_radius
        if math.isinf(radius) or self.kept is not None:
            return duals, predictions
        xp = namespace(duals)
        worst = float(xp.max(row_norms(self.unscale(self.targets - predictions)))) / radius
        if worst <= 1:
            return duals, predictions
        share = 1 - (1 - margin * eps(duals) ** 0.5) / worst
        other, exact = self._interpolant
        return duals + share * (other - duals), predictions + share * (exact - predictions)

    @cached_property
    def _interpolant(self) -> tuple[Array, Array]:
        """Return the least-squares duals that give back the targets, and their predictions."""
        xp, basis = namespace(self.targets), self.spectrum
        values = basis.values * self.scale
        cut = float(xp.max(values)) * eps(self.targets) * self.targets.shape[0]
        inverse = xp.where(values > cut, 1 / xp.where(values > cut, values, xp.ones_like(values)), 0 * values)
        duals = basis.apply(inverse, 0.0, self.targets)
        return duals, self.predictions(duals)

    def _rescaled(self, prox: Any, duals: Array, step: float) -> Array:
        # the prox of s l*(b / sqrt(s)) at b is sqrt(s) prox(b / sqrt(s)): the step does not change
        duals = self._seen(duals)
        point = prox(duals, step) if self.root is None else prox(duals / self.root, step) * self.root
        return point if self.kept is None else point * self.kept

    def _weighted_sum(self, values: Array) -> Array:
        xp = namespace(values)
        values = values if self.root is None else values * self.root[:, 0] ** 2
        if self.kept is not None:  # not a product: the value of a sample that is held out may be infinite
            values = xp.where(xp.max(self.kept, axis=1) > 0, values, xp.zeros_like(values))
        return xp.sum(values)

    def _seen(self, rows: Array) -> Array:
        """Return rows with zeros where coordinates are absent."""
        return rows * self.kept if self.has_gaps else rows

    def _relative(self, gap: float, primal: float) -> float:
        zero = self.value_at_zero
        size = max(abs(primal), 1e-10 * abs(zero) if math.isfinite(zero) else 0.0)
        if size > 0 and math.isfinite(size):
            return gap / size
        return 0.0 if gap == 0 else math.inf
