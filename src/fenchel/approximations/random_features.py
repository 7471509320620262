"""Random Fourier features of translation-invariant kernels."""

import math
from collections.abc import Callable
from functools import singledispatch
from typing import ClassVar, Self, cast

import numpy as np

from fenchel._array import Array, as_like, namespace
from fenchel._check import Interval, Options, check_array
from fenchel.approximations.approximation import LAM, Approximation
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import (
    Filtered,
    Gaussian,
    KernelTags,
    Laplacian,
    Matern,
    MultipleKernel,
    ScalarKernel,
    Scaled,
    Sum,
)
from fenchel.kernels._distances import inverse_width
from fenchel.kernels.derivatives import feature_gradient
from fenchel.kernels.images import OfImages
from fenchel.kernels.tags import former, former_method

__all__ = ["RandomFeatures"]

Change = Callable[[ScalarKernel, Array], ScalarKernel]


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

        mapped(kernel, collect, X)
        n_random = sum(not part.tags.has_features for part in parts)
        count = max(1, int(self.n_components) // (2 * max(1, n_random)))

        def features(part: ScalarKernel, points: Array) -> ScalarKernel:
            if part.tags.has_features:
                return part
            normals = _normals((count, points.shape[1]), self.orthogonal, rng)
            return FourierFeatures(spectral_frequencies(part, normals, rng))

        return mapped(kernel, features, X)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(6), cls(6, orthogonal=False)]


class FourierFeatures(ScalarKernel):
    """Kernel of the cosines and sines at given frequencies, (D/2, d)."""

    def __init__(self, frequencies: np.ndarray) -> None:
        self.frequencies = frequencies

    tags = KernelTags(has_features=True)

    def features(self, X: Array) -> Array:
        """Return cosines and sines, (n, D)."""
        X = check_array(X, "X", takes_sparse=True)
        phases = X @ as_like(self.frequencies.T, X)
        xp = namespace(phases)
        return xp.concat([xp.cos(phases), xp.sin(phases)], axis=1) / math.sqrt(len(self.frequencies))

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the inner products of the features."""
        left = self.features(X)
        return left @ (left if Z is None else self.features(Z)).T

    def diag(self, X: Array) -> Array:
        """Return the squared norms of the features, which are one."""
        features = self.features(X)
        return namespace(features).sum(features**2, axis=1)


@feature_gradient.register
def _(kernel: FourierFeatures, X: Array, coef: Array, almost_everywhere: bool = False) -> Array:
    frequencies, count = as_like(kernel.frequencies, X), len(kernel.frequencies)
    phases, coef = X @ frequencies.T, as_like(coef, X).T[:, None, :] / math.sqrt(count)
    xp = namespace(phases)
    return (coef[:, :, count:] * xp.cos(phases) - coef[:, :, :count] * xp.sin(phases)) @ frequencies


@singledispatch
def mapped(kernel: ScalarKernel, change: Change, X: Array) -> ScalarKernel:
    """Return the kernel with ``change`` applied to its additive parts; it gets each part and the inputs it sees."""
    method = former_method(kernel, "mapped")
    return change(kernel, X) if method is None else cast("ScalarKernel", method(change, X))


@mapped.register
def _(kernel: Sum, change: Change, X: Array) -> ScalarKernel:
    return kernel.ready(left=mapped(kernel.left, change, X), right=mapped(kernel.right, change, X))


@mapped.register
def _(kernel: Scaled, change: Change, X: Array) -> ScalarKernel:
    return kernel.ready(kernel=mapped(kernel.kernel, change, X))


@mapped.register
def _(kernel: OfImages, change: Change, X: Array) -> ScalarKernel:
    if isinstance(kernel, Filtered):  # its features are not known
        return change(kernel, X)
    known = kernel.known(X)
    return known.ready(kernel=mapped(known.kernel, change, known.image(X)))


@mapped.register
def _(kernel: MultipleKernel, change: Change, X: Array) -> ScalarKernel:
    known = kernel.known(X)
    seen = zip(known.names, known.parts(), known.seen(X, "X"), strict=True)
    return known.ready(groups=[(name, mapped(part.kernel, change, x), part.columns) for name, part, (x, _) in seen])


@former
@singledispatch
def spectral_frequencies(kernel: ScalarKernel, normals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    r"""Map standard normal rows to frequencies (m, d) distributed as the spectral density of the kernel.

    The characteristic function of each frequency is k(x, 0). The rows of ``normals`` (m, d) are standard normal
    and may be dependent; ``rng`` supplies any further random numbers.
    """
    method = former_method(kernel, "spectral_frequencies")
    if method is None:
        raise IncompatibleError(
            f"{kernel!r} has no spectral density to draw random features from. Use Gaussian, Laplacian or Matern, or "
            "approximation=Nystrom(500)."
        )
    return np.asarray(method(normals, rng))


@spectral_frequencies.register
def _(kernel: Gaussian, normals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return normal frequencies of variance 2 gamma."""
    return math.sqrt(2 * inverse_width(kernel.gamma, normals)) * normals


@spectral_frequencies.register
def _(kernel: Laplacian, normals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return Cauchy frequencies of scale gamma, independent across columns: ratios of two normals."""
    return inverse_width(kernel.gamma, normals) * normals / np.abs(rng.standard_normal(normals.shape))


@spectral_frequencies.register
def _(kernel: Matern, normals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    r"""Return frequencies from Student's t with :math:`2 \nu` degrees of freedom and scale :math:`1 / \ell`."""
    nu = float(kernel.nu)
    mixing = 1.0 if nu == math.inf else rng.chisquare(2 * nu, (len(normals), 1)) / (2 * nu)
    return normals / np.sqrt(mixing) / float(kernel.length_scale)


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
