"""Random Fourier features of translation-invariant kernels."""

import math
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, as_like, namespace
from fenchel._check import Interval, Options, check_array
from fenchel.approximations.approximation import LAM, Approximation
from fenchel.kernels import ScalarKernel

__all__ = ["RandomFeatures"]


class RandomFeatures(Approximation):
    r"""Random Fourier features, whose expected inner products equal the kernel.

    .. math:: \hat k(x, z) = \frac2D \sum_{j \le D/2} \cos \langle \omega_j, x - z \rangle, \qquad
        \omega_j \sim \hat\mu,

    where :math:`\hat\mu` is the spectral density of the kernel. ``Gaussian``, ``Laplacian`` and ``Matern`` have one,
    also inside ``Scaled``, ``Sum``, ``Standardized`` and ``Part``. Parts of a sum with features of their own, such as
    ``Linear``, keep them.

    Parameters
    ----------
    n_components : int, default=500
        Number D of features, a cosine and a sine per frequency; the parts of a sum share them.
    orthogonal : bool, default=True
        Whether to draw frequencies in blocks of orthogonal directions, which reduces the error.
    random_state : int, default=0
        Seed of the random draw.

    Notes
    -----
    The features depend only on the number of columns, not on the sample, so models of several samples share them. They
    do not belong to the space of the kernel, so a fit gives no certificate for the exact problem, and for the same D
    the error is larger than with landmarks.

    References
    ----------
    [Rahimi2007]_; [Yu2016]_ for orthogonal directions.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.approximations import RandomFeatures
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> model = OperatorKernelRegressor("gaussian", approximation=RandomFeatures(50), lam=1e-3)
    >>> model = model.fit(X, X[:, :1] * X[:, 1:])
    >>> model.certificate_, bool(model.duality_gap_ <= 1e-6)
    ('approximate', True)
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "n_components": Interval(2, math.inf, "left", integer=True),
        "orthogonal": Options((True, False)),
        "random_state": Interval(0, math.inf, "left", integer=True),
    }

    def __init__(self, n_components: int = 500, orthogonal: bool = True, random_state: int = 0) -> None:
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state

    def approximate(
        self, kernel: ScalarKernel, X: Array, weights: Array | None = None, lam: float = LAM
    ) -> ScalarKernel:
        """Return the kernel of the features; ``weights`` and ``lam`` are ignored."""
        self.validate()
        rng, parts = np.random.default_rng(self.random_state), []

        def collect(part: ScalarKernel, points: Array) -> ScalarKernel:
            parts.append(part)
            return part

        kernel.mapped(collect, X)
        n_random = sum(not part.has_features for part in parts)
        count = max(1, int(self.n_components) // (2 * max(1, n_random)))

        def features(part: ScalarKernel, points: Array) -> ScalarKernel:
            if part.has_features:
                return part
            normals = _normals((count, points.shape[1]), self.orthogonal, rng)
            return FourierFeatures(part.spectral_frequencies(normals, rng))

        return kernel.mapped(features, X)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(6), cls(6, orthogonal=False)]


class FourierFeatures(ScalarKernel):
    """Kernel of the cosines and sines at given frequencies, (D/2, d)."""

    def __init__(self, frequencies: np.ndarray) -> None:
        self.frequencies = frequencies

    @property
    def has_features(self) -> bool:
        """Return True."""
        return True

    def features(self, X: Array) -> Array:
        """Return cosines and sines, (n, D)."""
        X = check_array(X, "X", takes_sparse=True)
        phases = X @ as_like(self.frequencies.T, X)
        xp = namespace(phases)
        return xp.concat([xp.cos(phases), xp.sin(phases)], axis=1) / math.sqrt(len(self.frequencies))

    def feature_gradient(self, X: Array, coef: Array) -> Array:
        """Return the gradients of ``features(X) @ coef``, (p, n, d)."""
        frequencies, count = as_like(self.frequencies, X), len(self.frequencies)
        phases, coef = X @ frequencies.T, as_like(coef, X).T[:, None, :] / math.sqrt(count)
        xp = namespace(phases)
        return (coef[:, :, count:] * xp.cos(phases) - coef[:, :, :count] * xp.sin(phases)) @ frequencies

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the inner products of the features."""
        left = self.features(X)
        return left @ (left if Z is None else self.features(Z)).T

    def diag(self, X: Array) -> Array:
        """Return the squared norms of the features, which are one."""
        features = self.features(X)
        return namespace(features).sum(features**2, axis=1)


def _normals(shape: tuple[int, int], orthogonal: bool, rng: np.random.Generator) -> np.ndarray:
    """Return standard normal rows, independent or in blocks with orthogonal directions, as many as columns."""
    count, d = shape
    normals = rng.standard_normal(shape)
    if not orthogonal:
        return normals
    bases = [np.linalg.qr(rng.standard_normal((d, d))) for _ in range(-(-count // d))]
    # random signs make the bases uniform over the orthogonal group
    directions = np.concatenate([(Q * np.sign(np.diagonal(R))).T for Q, R in bases])[:count]
    lengths: np.ndarray = np.linalg.norm(normals, axis=1, keepdims=True)
    return directions * lengths
