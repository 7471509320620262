"""Eigenvalues of the Gram matrix of a large sample, estimated from a part of it."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from fenchel._array import Array, host
from fenchel.kernels import ScalarKernel
from fenchel.kernels._distances import spaced_sample

__all__ = ["Spectrum"]

_ROWS = 1000  # of the sample, whose eigenvalues take .1 s
_FEATURES = 3.0  # uniform landmarks for each eigenvalue that they remove


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of a Gram matrix of n samples, estimated from those of a part and continued by a power law.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.model.spectrum import Spectrum
    >>> X = np.random.default_rng(0).uniform(-3, 3, (3000, 1))
    >>> exact = np.linalg.eigvalsh(Gaussian(1.0)(X))[::-1]
    >>> bool(0.9 < Spectrum.of(Gaussian(1.0), X)(5) / exact[5] < 1.1)
    True
    """

    values: np.ndarray  # of the part, the largest first
    n: int

    @classmethod
    def of(cls, kernel: ScalarKernel, X: Array) -> Self:
        """Return the eigenvalues of a resolved kernel on a sample."""
        rows, _ = spaced_sample(X, _ROWS, None)
        return cls(np.clip(np.linalg.eigvalsh(host(kernel(rows)))[::-1], 0.0, None), X.shape[0])

    def __call__(self, place: float) -> float:
        """Return the eigenvalue at a place; beyond the first third those of the part are too small."""
        m = len(self.values)
        first, last = m // 6, m // 3
        if m == self.n or place <= last or not self.values[last] > 0:
            return float(self.values[min(int(place), m - 1)] * self.n / m)
        power = np.log(self.values[first] / self.values[last]) / np.log(last / first)
        return float(self.values[last] * (last / place) ** power * self.n / m)

    def condition(self, n_features: int, ridge: float) -> float:
        """Return the estimated condition of the matrix plus a ridge, preconditioned by features at uniform landmarks.

        With the square loss (n = 6000, 464 to 3000 features) the passes to a gap of 1e-6 are 4 times its root.
        """
        return 1 + self(n_features / _FEATURES) / (ridge + float(self.values[-1]))
