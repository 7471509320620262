"""Sketching: random combinations of samples as features of a kernel."""

import math
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, as_like, host
from fenchel._check import Interval, Options, check_no_overflow
from fenchel.approximations.approximation import LAM, Approximation
from fenchel.approximations.landmark_features import LandmarkFeatures, rows_of
from fenchel.data.content import contents
from fenchel.kernels import ScalarKernel

__all__ = ["PSparsified"]

_ENTRIES = 20  # non-zero entries per row of the sketch, as in the experiments of the reference


class PSparsified(Approximation):
    r"""Projection of a kernel on the span of D sparse random combinations of samples.

    .. math:: \hat k(x, z) = k(x, X) S^\top (S K S^\top)^{+} S \, k(X, z), \qquad
        S_{ij} = (D \rho)^{-1/2} B_{ij} R_{ij},

    where :math:`B_{ij}` is one with probability :math:`\rho` and zero otherwise, and :math:`R_{ij}` is standard normal.
    With density :math:`\rho = 1` this is the Gaussian sketch.

    Parameters
    ----------
    n_components : int, default=500
        Number D of combinations, at most the number of samples.
    density : float or None, default=None
        Share :math:`\rho` of non-zero entries, in (0, 1]. ``None`` means 20 / n.
    random_state : int, default=0
        Seed of the random draw.

    Notes
    -----
    Predictions need the m samples that occur in a combination: about :math:`n \rho D` if that is small compared with n,
    and all n for a Gaussian sketch, whose fit takes n² kernel evaluations. Entries of a sample of weight w are
    multiplied by the square root of w.

    References
    ----------
    [ElAhmad2023]_, Def. 4.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.approximations import PSparsified
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> model = OperatorKernelRegressor("gaussian", approximation=PSparsified(50), lam=1e-3).fit(X, X[:, :1] * X[:, 1:])
    >>> model.certificate_, bool(model.duality_gap_ <= 1e-6)
    ('approximate', True)
    """

    is_projection = True

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "n_components": Interval(1, math.inf, "left", integer=True),
        "density": Interval(0, 1, "right", also=(None,)),
        "random_state": Interval(0, math.inf, "left", integer=True),
    }

    def __init__(self, n_components: int = 500, density: float | None = None, random_state: int = 0) -> None:
        self.n_components = n_components
        self.density = density
        self.random_state = random_state

    def approximate(
        self, kernel: ScalarKernel, X: Array, weights: Array | None = None, lam: float = LAM
    ) -> LandmarkFeatures:
        """Return the kernel with random combinations of the sample as features."""
        self.validate()
        with np.errstate(over="ignore", invalid="ignore"):
            check_no_overflow(kernel.diag(X), f"The Gram matrix of {kernel!r}")
        n = X.shape[0]
        places, sketch = self._sketch(n, self.count(n))
        index = np.argsort(contents(X, weights), kind="stable")[places]
        if weights is not None:
            sketch *= np.sqrt(host(weights)[index, None])
        points = rows_of(X, index)
        diagonal = kernel.diag(points)
        return LandmarkFeatures.of(kernel, points, as_like(sketch, diagonal))

    def _sketch(self, n: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the samples that occur, (m,), and their weights in the combinations, (m, count)."""
        rng = np.random.default_rng(self.random_state)
        density = min(1.0, _ENTRIES / n) if self.density is None else float(self.density)
        sizes = np.maximum(rng.binomial(n, density, count), 1)  # an empty combination would not be a feature
        rows = [rng.choice(n, size, replace=False) for size in sizes]
        index, places = np.unique(np.concatenate(rows), return_inverse=True)
        sketch = np.zeros((len(index), count))
        sketch[places, np.repeat(np.arange(count), sizes)] = rng.standard_normal(len(places))
        return index, sketch / math.sqrt(count * density)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(4), cls(4, 0.4), cls(4, 1.0)]
