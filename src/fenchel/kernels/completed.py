"""Kernels on inputs with missing values, which become medians and indicators."""

from dataclasses import replace
from typing import Self

import numpy as np

from fenchel._array import Array, as_index, as_like, host, namespace
from fenchel._check import check_array
from fenchel._statistics import weighted_median
from fenchel.kernels.images import OfImages
from fenchel.kernels.scalar import Gaussian
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.standardized import Standardized
from fenchel.kernels.tags import KernelTags

__all__ = ["Completed"]


class Completed(OfImages):
    r"""Kernel on inputs with missing values (NaN), which are replaced by the medians of their columns.

    Each column with missing values in the training sample also has an indicator, 1 where the value is missing: a
    missing value may tell something.

    Parameters
    ----------
    kernel : ScalarKernel
        The kernel of the completed inputs, followed by the indicators.
    medians : array of shape (d,) or None, default=None
        What replaces missing values; ``None`` means the medians of the training sample, 0 for a column without values.
    gaps : array of int or None, default=None
        The columns with indicators; ``None`` means those with missing values in the training sample.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Completed, Linear
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan], [4.0, 6.0]])
    >>> Completed(Linear()).resolve(X).image(X).tolist()
    [[1.0, 2.0, 0.0], [3.0, 4.0, 1.0], [4.0, 6.0, 0.0]]
    """

    def __init__(self, kernel: ScalarKernel, medians: Array = None, gaps: Array = None) -> None:
        self.kernel = kernel
        self.medians = medians
        self.gaps = gaps

    def known(self, X: Array | None, weights: Array | None = None) -> Self:
        """Return the kernel with its medians and gaps, computed from the sample if they were not given."""
        self.check()
        if self.medians is not None and self.gaps is not None:
            return self
        if X is None:
            raise ValueError(
                "The medians of Completed depend on the training sample: call kernel.resolve(X_train) first, then the "
                "kernel it returns on (X, Z)."
            )
        rows = host(X).astype(np.float64)
        counts = np.ones(len(rows)) if weights is None else host(weights).astype(np.float64)
        medians = weighted_median(rows, counts) if self.medians is None else self.medians
        gaps = np.flatnonzero(np.isnan(rows).any(axis=0)) if self.gaps is None else self.gaps
        return self.ready(medians=medians, gaps=gaps)

    def image(self, X: Array, name: str = "X") -> Array:
        """Return the completed inputs, followed by the indicators of the columns with gaps."""
        xp = namespace(X)
        is_missing = xp.isnan(X)
        filled = check_array(xp.where(is_missing, as_like(self.medians, X), X), name)
        if not len(self.gaps):
            return filled
        indicators = xp.astype(xp.take(is_missing, as_index(np.asarray(self.gaps), X), axis=1), X.dtype)
        return xp.concat([filled, indicators], axis=1)

    def pulled_back(self, gradient: Array, X: Array) -> Array:
        """Return derivatives with respect to the inputs from those with respect to their images, 0 where missing."""
        xp = namespace(X)
        return xp.where(xp.isnan(X), xp.zeros_like(X), gradient[..., : X.shape[1]])

    @property
    def tags(self) -> KernelTags:
        """Those of the inner kernel, but inputs may be missing."""
        return replace(super().tags, takes_missing=True)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(Gaussian("median")), cls(Standardized(Gaussian()))]
