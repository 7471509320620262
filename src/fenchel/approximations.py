"""Approximations of kernels by a few features, for samples whose Gram matrix is too large."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, as_index, as_like, eps, host, namespace
from fenchel._check import Interval, Options, check_no_overflow
from fenchel._component import Component
from fenchel.kernels import ScalarKernel
from fenchel.kernels._values import row_blocks

__all__ = ["Approximation", "Nystrom"]

_BLOCK_BYTES = 2**27  # of the kernel between a part of the sample and the landmarks
_ROUNDS = 10  # in which landmarks are drawn, each from what the earlier ones do not explain


class Approximation(Component, ABC):
    """Replaces a kernel by one that has few features."""

    n_components: int
    is_projection: ClassVar[bool] = False  # features span a part of the kernel's space: the exact gap can be computed

    @abstractmethod
    def approximate(self, kernel: ScalarKernel, X: Array, weights: Array | None = None) -> ScalarKernel:
        """Return a kernel with at most ``n_components`` features, from a resolved kernel and the training sample."""


class Nystrom(Approximation):
    r"""Projection of a kernel on the span of D landmarks of the training sample.

    .. math:: \hat k(x, z) = k(x, Z) \, k(Z, Z)^{+} \, k(Z, z).

    A fit takes :math:`O(n D^2 + n D p)` operations and :math:`O(n (D + p))` numbers instead of an n × n matrix, and a
    prediction the landmarks only. The certificate of the fit is that of the approximate kernel.

    Parameters
    ----------
    n_components : int, default=500
        Number D of landmarks; at most that of the samples.
    landmarks : {"rpcholesky", "uniform"}, default="rpcholesky"
        How they are drawn: by randomly pivoted Cholesky, with probabilities that follow what earlier landmarks leave
        unexplained, or with equal probabilities. Sample weights multiply both.
    random_state : int, default=0
        Seed of the draw.

    Notes
    -----
    Pivots are drawn in ten rounds, each from the diagonal that the earlier ones leave, instead of one by one.

    References
    ----------
    [Williams2001]_; [Chen2025]_ for randomly pivoted Cholesky.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.approximations import Nystrom
    >>> from fenchel.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(-3, 3, (20_000, 1))
    >>> model = OperatorKernelRegressor(Gaussian(1.0), loss="huber", lam=1e-6, approximation=Nystrom(30))
    >>> model = model.fit(X, np.sin(X[:, 0]))
    >>> model.certificate_, bool(model.duality_gap_ <= 1e-6), bool(model.score(X, np.sin(X[:, 0])) > 0.9999)
    ('approximate', True, True)
    """

    is_projection = True

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "n_components": Interval(1, math.inf, "left", integer=True),
        "landmarks": Options(("rpcholesky", "uniform")),
        "random_state": Interval(0, math.inf, "left", integer=True),
    }

    def __init__(self, n_components: int = 500, landmarks: str = "rpcholesky", random_state: int = 0) -> None:
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state

    def approximate(self, kernel: ScalarKernel, X: Array, weights: Array | None = None) -> "LandmarkFeatures":
        """Return the features of landmarks drawn from the sample."""
        self.validate()
        count, rng = min(int(self.n_components), X.shape[0]), np.random.default_rng(int(self.random_state))
        masses = np.ones(X.shape[0]) if weights is None else host(weights).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            check_no_overflow(kernel.diag(X), f"The Gram matrix of {kernel!r}")
        draw = _draw_uniform if self.landmarks == "uniform" else _draw_pivots
        return LandmarkFeatures.of(kernel, _rows(X, np.sort(draw(kernel, X, masses, count, rng))))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(4), cls(4, "uniform")]


class LandmarkFeatures(ScalarKernel):
    """The kernel of the features k(x, Z) T, with T such that they are orthonormal in the space of the kernel k."""

    def __init__(self, kernel: ScalarKernel, points: Array, transform: Array) -> None:
        self.kernel = kernel
        self.points = points
        self.transform = transform

    @classmethod
    def of(cls, kernel: ScalarKernel, points: Array) -> "LandmarkFeatures":
        """Return the features of landmarks; directions at the round-off of the kernel are left out."""
        xp = namespace(points)
        values, vectors = xp.linalg.eigh(kernel(points))
        least = max(float(values[-1]) * eps(values) * values.shape[0], float(xp.finfo(values.dtype).smallest_normal))
        first = min(int(xp.sum(xp.astype(values <= least, xp.int64))), values.shape[0] - 1)
        return cls(kernel, points, vectors[:, first:] / xp.sqrt(xp.clip(values[first:], min=least)))

    @property
    def has_features(self) -> bool:
        """Return True."""
        return True

    def features(self, X: Array) -> Array:
        """Return the features, (n, D), computed in blocks of rows."""
        xp, points, transform = namespace(X), as_like(self.points, X), as_like(self.transform, X)
        blocks = row_blocks((X.shape[0], points.shape[0]), 8, _BLOCK_BYTES)
        return xp.concat([self.kernel(X[rows, ...], points) @ transform for rows in blocks])

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the products of the features."""
        left = self.features(X)
        return left @ (left if Z is None else self.features(Z)).T

    def diag(self, X: Array) -> Array:
        """Return the squared norms of the features."""
        return namespace(X).sum(self.features(X) ** 2, axis=1)


def _draw_uniform(
    kernel: ScalarKernel, X: Array, masses: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    return rng.choice(len(masses), count, replace=False, p=masses / masses.sum())


def _draw_pivots(
    kernel: ScalarKernel, X: Array, masses: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw landmarks in rounds, with probabilities that follow the diagonal of what the earlier rounds leave."""
    diagonal = host(kernel.diag(X)).astype(np.float64)
    chosen, unexplained = np.zeros(0, dtype=np.int64), diagonal
    least = 1e-15 * float(np.max(masses * diagonal)) or 1.0  # samples that are explained, or null, come last
    for size in np.diff(np.linspace(0, count, min(_ROUNDS, count) + 1).astype(int)):
        is_new = ~np.isin(np.arange(len(masses)), chosen)
        odds = is_new * np.clip(masses * unexplained, least, None)
        chosen = np.append(chosen, rng.choice(len(masses), size, replace=False, p=odds / odds.sum()))
        if len(chosen) < count:
            unexplained = diagonal - host(LandmarkFeatures.of(kernel, _rows(X, chosen)).diag(X))
    return chosen


def _rows(X: Array, index: np.ndarray) -> Array:
    return namespace(X).take(X, as_index(index, X), axis=0)
