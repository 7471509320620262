"""The dual problem, and the certificate on which every solver stops."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import RLock
from typing import TypeVar, cast

import numpy as np

from fenchel._array import Array, eps, few_threads, host, namespace
from fenchel.losses.loss import Loss
from fenchel.operators import Eigenbasis, Operator, Rotation, rotation_of, scaled

__all__ = ["Certificate", "DualProblem", "Shared"]

T = TypeVar("T")


@dataclass(frozen=True)
class Certificate:
    r"""Primal value, dual value and the gap between them.

    Attributes
    ----------
    primal, dual : float
        The two objectives.
    gap : float
        Sum of the Fenchel–Young gaps of the samples, which avoids the cancellation of two nearly equal objectives.
    relative_gap : float
        :math:`gap / \max(|P|, 10^{-10} P(0))`.

    Examples
    --------
    >>> from fenchel.problem.dual_problem import Certificate
    >>> Certificate(primal=1.0, dual=0.9, gap=0.1, relative_gap=0.1).distance
    0.1
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float

    @property
    def distance(self) -> float:
        """Size of the relative gap; a gap made negative by round-off certifies no more than a positive one."""
        return abs(self.relative_gap)


class Shared:
    """Factorisations shared by problems with the same Gram operator and targets, computed on first use.

    Parameters
    ----------
    gram : Operator
        The Gram operator.
    targets : array of shape (n, p)
        The targets.
    factorize : callable or None, default=None
        Returns the eigenbasis; ``None`` means ``gram.factorize``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense
    >>> from fenchel.problem.dual_problem import Shared
    >>> shared = Shared(Dense(np.eye(2)), np.ones((2, 1)))
    >>> shared.is_factorized, bool(shared.norm >= 1.0)
    (False, True)
    """

    def __init__(self, gram: Operator, targets: Array, factorize: Callable[[], Eigenbasis] | None = None) -> None:
        self.gram = gram
        self.targets = targets
        self._factorize = gram.factorize if factorize is None else factorize
        self._known: dict[str, object] = {}
        self._lock = RLock()  # folds may be solved in threads

    def __reduce__(self) -> "tuple[type[Shared], tuple[Operator, Array]]":
        return Shared, (self.gram, self.targets)  # cached results are recomputed

    @property
    def is_factorized(self) -> bool:
        """Whether the eigenbasis has been computed."""
        return "eigenbasis" in self._known

    def factorize(self) -> Eigenbasis:
        """Return the eigenbasis of the Gram operator."""
        return self._once("eigenbasis", self._factorize)

    @property
    def norm(self) -> float:
        """The norm of the Gram operator, rounded up."""
        return self._once("norm", self.gram.norm)

    @property
    def rotated(self) -> "tuple[Rotation, Shared] | None":
        """Coordinates of the outputs in which the operator is diagonal, and the factorisations shared in them."""
        return self._once("rotated", self._rotate)

    @property
    def interpolant(self) -> tuple[Array, Array]:
        """Least-squares coefficients A that reproduce the targets, and K A."""
        return self._once("interpolant", self._interpolate)

    def _once(self, name: str, compute: Callable[[], T]) -> T:
        with self._lock:
            if name not in self._known:
                self._known[name] = compute()
            return cast(T, self._known[name])

    def _rotate(self) -> "tuple[Rotation, Shared] | None":
        rotation = rotation_of(self.gram, self.targets)
        if rotation is None:
            return None
        return rotation, Shared(rotation.gram, rotation.targets, lambda: rotation.turned(self.factorize()))

    def _interpolate(self) -> tuple[Array, Array]:
        targets, basis = self.targets, self.factorize()
        xp = namespace(targets)
        cut = float(xp.max(basis.values)) * eps(targets) * targets.shape[0]

        def inverse(values: Array) -> Array:
            is_there = values > cut
            return xp.where(is_there, 1 / xp.where(is_there, values, xp.ones_like(values)), xp.zeros_like(values))

        coef = basis.function(inverse)(targets)
        return coef, self.gram.matmul(coef)


@dataclass(frozen=True)
class DualProblem:
    r"""The dual of a regularised fit, in orthonormal output coordinates.

    .. math:: \min_a \sum_i s_i \ell^*(a_i) - s_i \langle a_i, y_i \rangle
        + \frac{1}{2 \lambda S} \sum_{ij} s_i s_j \langle a_i, \mathcal K(x_i, x_j) a_j \rangle,
        \qquad S = \sum_i s_i .

    Sample weights :math:`s_i` are absorbed in the variables :math:`b_i = \sqrt{s_i} a_i`, which solvers call ``duals``,
    so that solvers never see the weights. ``DualProblem.build`` makes this change of variables, ``unscale`` undoes it.

    Samples can be held out without changing the Gram matrix: ``mask`` is 0 for them, their duals are zero, and their
    predictions are out of sample. All folds of a cross-validation thus share one eigendecomposition. In the same way
    single coordinates of a sample can be missing, such as the points at which a curve was not observed. Their duals are
    zero and the loss ignores them.

    Problems derived from one another by ``dataclasses.replace`` have ``shared`` in common as long as they have the same
    Gram operator and targets.

    Attributes
    ----------
    gram : Operator
        The Gram operator.
    targets : array of shape (n, p)
        Coordinates of the outputs.
    loss : Loss
        The loss, bound to the representation.
    lam : float
        Weight of the squared norm.
    root : array of shape (n, 1) or None
        Square roots of the sample weights.
    total : float
        Sum S of the sample weights.
    mask : array of shape (n, 1) or (n, p), or None
        1 for observed samples or coordinates, 0 for the others.
    point_scale : array or None
        Scale of the points, for losses of point values.
    shared : Shared
        Factorisations shared by problems with the same Gram operator and targets.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.losses import Huber
    >>> from fenchel.operators import Dense
    >>> from fenchel.problem.dual_problem import DualProblem
    >>> from fenchel.solvers import Auto
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> problem = DualProblem.build(Dense(Gaussian(1.0)(X)), np.sin(X), Huber(0.5), lam=1e-3)
    >>> solution = Auto().solve(problem)
    >>> bool(solution.certificate.relative_gap <= 1e-6)
    True
    """

    gram: Operator
    targets: Array
    loss: Loss
    lam: float
    root: Array | None = None
    total: float = 1.0
    mask: Array | None = None  # 1 or 0: (n, 1) for whole samples, (n, p) for single coordinates
    point_scale: Array | None = None  # bound to the loss, besides the targets
    shared: Shared = field(default=None, repr=False)  # type: ignore[assignment]  # __post_init__ sets it

    def __post_init__(self) -> None:
        shared = self.shared
        if shared is None or shared.gram is not self.gram or shared.targets is not self.targets:
            object.__setattr__(self, "shared", Shared(self.gram, self.targets))

    @classmethod
    def build(
        cls,
        gram: Operator,
        targets: Array,
        loss: Loss,
        lam: float,
        weights: Array | None = None,
        point_scale: Array | None = None,
        observed: Array | None = None,
    ) -> "DualProblem":
        """Return the problem for a sample.

        ``weights`` (n,) are positive; ``None`` weighs all samples equally. ``observed`` (n, p) is 0 for missing
        coordinates, where targets must be zero.
        """
        bound = loss.bind(targets, point_scale)
        if weights is None:
            return cls(gram, targets, bound, lam, None, float(targets.shape[0]), observed, point_scale)
        xp = namespace(targets)
        root = xp.sqrt(weights)[:, None]
        total = float(xp.sum(weights))
        with np.errstate(over="ignore"):  # a float32 fit that overflows is repeated in float64
            return cls(scaled(gram, root), targets * root, bound, lam, root, total, observed, point_scale)

    def with_(self, loss: Loss | None = None, lam: float | None = None) -> "DualProblem":
        """Return the problem with another loss (bound like this one) or another lam, on the same Gram operator."""
        return replace(self, loss=self.loss if loss is None else loss, lam=self.lam if lam is None else lam)

    @property
    def scale(self) -> float:
        """The factor 1 / (lam S) of the Gram operator."""
        return 1 / (self.lam * self.total)

    @property
    def curvature(self) -> float:
        """The weight of the squared norm in the conjugate of the loss."""
        return self.loss.curvature

    @property
    def lipschitz(self) -> float:
        """The norm of the quadratic term, the exact Lipschitz constant of its gradient (rounded up)."""
        return self.shared.norm * self.scale

    def least_lam(self, tol: float) -> float:
        r"""Return the lam from which on round-off allows a relative gap of ``tol``.

        Predictions :math:`K a / (\lambda S)` are known to :math:`\epsilon \|K\| \|a\| / (\lambda S)`. With the square
        loss the gap is half the square of that error, over S, and the objective at least half of :math:`\|a\|^2`,
        over S.
        """
        xp = namespace(self.targets)
        return eps(self.targets) / math.sqrt(tol) * float(xp.sum(self.gram.diag())) / self.total

    @cached_property
    def value_at_zero(self) -> float:
        """The objective P(0) of the zero model."""
        return float(weighted_sum(self, self.loss.value(self.unscale(self.targets)))) / self.total

    def predictions(self, duals: Array) -> Array:
        """Return h_a(x_i) times the square root of the sample weight."""
        return self.gram.matmul(duals) * self.scale

    def prox(self, duals: Array, step: float) -> Array:
        """Return the prox of step times the conjugate of the loss."""
        return self._rescaled(self.loss.prox_conjugate, duals, step)

    def prox_remainder(self, duals: Array, step: float) -> Array:
        """Return the prox of step times the conjugate minus its quadratic part."""
        return self._rescaled(self.loss.prox_remainder, duals, step)

    def unscale(self, rows: Array) -> Array:
        """Divide rows by the square roots of the weights, which maps the solver's duals to those of the samples."""
        return rows if self.root is None else rows / self.root

    def conjugate_sum(self, duals: Array) -> Array:
        """Return the weighted sum of the conjugates."""
        return weighted_sum(self, self.loss.conjugate(self.unscale(duals)))

    def certificate(self, duals: Array, predictions: Array) -> Certificate:
        """Return the certificate of the pair (h_a, a), with one transfer to the host."""
        return certificate_of_sums(self.total, self.value_at_zero, *certificate_sums(self, duals, predictions))

    def _rescaled(self, prox: Callable[[Array, float], Array], duals: Array, step: float) -> Array:
        # the prox of s l*(b / sqrt(s)) at b is sqrt(s) prox(b / sqrt(s)): the step does not change
        duals = observed_part(self, duals)
        point = prox(duals, step) if self.root is None else prox(duals / self.root, step) * self.root
        return point if self.mask is None else point * self.mask


def certificate_sums(problem: DualProblem, duals: Array, predictions: Array) -> list[float]:
    """Return the sums over the samples that make up a certificate: losses, gains, their gaps, the quadratic."""
    xp = namespace(duals)
    residuals, a = problem.unscale(observed_part(problem, problem.targets - predictions)), problem.unscale(duals)
    values = problem.loss.value(residuals)
    gains = xp.sum(a * residuals, axis=1) - problem.loss.conjugate(a)
    sums = [*(weighted_sum(problem, rows) for rows in (values, gains, values - gains)), xp.sum(duals * predictions)]
    return [float(number) for number in host(xp.stack(sums))]


def certificate_of_sums(
    total: float, zero: float, value: float, gain: float, gap: float, quadratic: float
) -> Certificate:
    """Return the certificate from the total weight, P(0) and the four sums over the samples."""
    primal, dual = (value + quadratic / 2) / total, (gain + quadratic / 2) / total
    gap = gap / total
    return Certificate(primal, dual, gap, relative_gap(zero, primal, gap))


def relative_gap(zero: float, primal: float, gap: float) -> float:
    """Return a gap relative to the primal value, or to a tiny share of that of the zero model."""
    size = max(abs(primal), 1e-10 * abs(zero) if math.isfinite(zero) else 0.0)
    if size > 0 and math.isfinite(size):
        return gap / size
    return 0.0 if gap == 0 else math.inf


def has_gaps(problem: DualProblem) -> bool:
    """Whether single coordinates are missing, so that the coordinates must not be rotated."""
    return problem.mask is not None and problem.mask.shape[1] > 1


def observed_part(problem: DualProblem, rows: Array) -> Array:
    """Return rows with zeros at missing coordinates."""
    return rows * problem.mask if has_gaps(problem) else rows


def weighted_sum(problem: DualProblem, values: Array) -> Array:
    """Return the weighted sum of values (n,) over the samples that are not held out."""
    xp = namespace(values)
    values = values if problem.root is None else values * problem.root[:, 0] ** 2
    if problem.mask is not None:  # not a product: the value of a held-out sample may be infinite
        values = xp.where(xp.max(problem.mask, axis=1) > 0, values, xp.zeros_like(values))
    return xp.sum(values)


@contextmanager
def arithmetic(problem: DualProblem) -> Iterator[None]:
    """Return a context for solving a problem, in which small products use one thread and NumPy does not warn.

    Overflow is expected at extreme scales: a point without a finite certificate is never the best one.
    """
    with few_threads(problem.targets, max(problem.targets.shape)), np.errstate(all="ignore"):
        yield
