"""Kernels of other libraries, and scalar kernels by name."""

import math
from collections.abc import Callable
from typing import Protocol, Self, runtime_checkable

import numpy as np
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels, rbf_kernel

from fenchel._array import Array
from fenchel._check import Options, check_parameter
from fenchel._component import from_name
from fenchel.kernels import columns, combined, fingerprints, functional, scalar
from fenchel.kernels.scalar import Gaussian
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.standardized import Standardized
from fenchel.kernels.tags import KernelTags

__all__ = ["Wrapped", "as_scalar_kernel"]

_BLOCK = 128  # samples whose matrix is computed for the diagonal of a function


@runtime_checkable
class ProcessKernel(Protocol):
    """The protocol of scikit-learn's Gaussian-process kernels."""

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix of values."""

    def diag(self, X: Array) -> Array:
        """Return its diagonal."""


class Wrapped(ScalarKernel):
    """Kernel defined elsewhere: a scikit-learn Gaussian-process or pairwise kernel, or a function.

    It takes NumPy arrays only; values are returned in the dtype of ``X`` (float64 if it is not floating). scikit-learn
    kernels receive booleans and integers as float64; a function receives its arguments unchanged.

    Parameters
    ----------
    kernel : str, object or callable
        A name from ``sklearn.metrics.pairwise`` (``"rbf"``, ``"chi2"``, ``"cosine"``...), with its default parameters;
        a kernel from ``sklearn.gaussian_process.kernels``; or a function ``f(X, Z)`` that returns the matrix of values,
        each entry of which depends only on its row of ``X`` and its row of ``Z``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from fenchel.kernels import Wrapped
    >>> Wrapped(RBF(1.0))(np.array([[0.0], [1.0]])).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    def __init__(self, kernel: str | ProcessKernel | Callable[[Array, Array], Array]) -> None:
        self.kernel = kernel

    def validate(self) -> "Wrapped":
        """Raise if the kernel is not a supported kernel."""
        if isinstance(self.kernel, str):
            check_parameter("Wrapped", "kernel", self.kernel, Options(tuple(sorted(kernel_metrics()))))
        elif isinstance(self.kernel, type) or not callable(self.kernel):
            raise TypeError(
                "The 'kernel' parameter of Wrapped must be a scikit-learn kernel object, a pairwise name or a function "
                f"of (X, Z). Got {self.kernel!r} instead."
            )
        return super().validate()

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.check()
        X = self._sample(X, "X")
        if Z is not None:
            Z = self._sample(Z, "Z")
            return self._checked(self._raw(X, Z), X, (len(X), len(Z)))
        values = self._checked(
            self.kernel(X) if isinstance(self.kernel, ProcessKernel) else self._raw(X, X), X, (len(X), len(X))
        )
        asymmetry = np.max(np.abs(values - values.T))
        if asymmetry > math.sqrt(np.finfo(values.dtype).eps) * np.max(np.abs(values)):
            raise ValueError(f"The matrix of {self!r} must be symmetric. Two of its entries differ by {asymmetry:.3e}.")
        return (values + values.T) / 2

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.check()
        X = self._sample(X, "X")
        if isinstance(self.kernel, ProcessKernel):
            return self._checked(self.kernel.diag(X), X, (len(X),))
        blocks = [X[start : start + _BLOCK] for start in range(0, len(X), _BLOCK)]
        return np.concatenate([np.diagonal(self(block)) for block in blocks])

    @property
    def tags(self) -> KernelTags:
        """An arbitrary function may not be positive semidefinite; it receives its arguments unchanged."""
        takes_objects = not isinstance(self.kernel, str | ProcessKernel)
        return KernelTags(is_trusted=False, takes_objects=takes_objects)

    def _sample(self, X: Array, name: str) -> Array:
        if not isinstance(X, np.ndarray):
            raise TypeError(
                f"{name} must be a NumPy array for a wrapped kernel. Got {type(X).__name__} instead; "
                "use a kernel of fenchel.kernels for other array libraries."
            )
        if X.ndim == 0 or len(X) == 0:
            raise ValueError(f"{name} must have at least one sample. Got shape {X.shape} instead.")
        # scikit-learn's DotProduct would multiply booleans as booleans
        return X if self.tags.takes_objects or X.dtype.kind not in "biu" else X.astype(np.float64)

    def _raw(self, X: Array, Z: Array) -> Array:
        if isinstance(self.kernel, str):
            return pairwise_kernels(X, Z, metric=self.kernel)
        return self.kernel(X, Z)

    def _checked(self, values: Array, X: Array, shape: tuple[int, ...]) -> Array:
        dtype = X.dtype if np.issubdtype(X.dtype, np.floating) else np.float64
        values = np.asarray(values, dtype=dtype)
        if values.shape != shape:
            raise ValueError(f"{self!r} must return an array of shape {shape}. Got shape {values.shape} instead.")
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{self!r} must return finite values. Some are NaN or infinite.")
        return values

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls("rbf"), cls("cosine"), cls(RBF(2.0) + DotProduct()), cls(rbf_kernel)]


def as_scalar_kernel(value: object) -> ScalarKernel:
    """Convert a name, a function or a kernel of another library to a scalar kernel.

    Parameters
    ----------
    value : ScalarKernel, str, object or callable
        A kernel; a short name from this module (``"gaussian"``, ``"gaussian_tanimoto"``...); ``"auto"``, a Gaussian
        kernel on standardised inputs with the median heuristic; or any argument of ``Wrapped``.
        A name known both here and to scikit-learn means the kernel of this module.

    Returns
    -------
    kernel : ScalarKernel
        ``value`` itself if it is a ScalarKernel.

    Examples
    --------
    >>> from fenchel.kernels import as_scalar_kernel
    >>> as_scalar_kernel("laplacian")
    Laplacian()
    """
    if isinstance(value, ScalarKernel):
        return value
    if isinstance(value, str):
        return _kernel_of_name(value)
    if callable(value) and not isinstance(value, type):
        return Wrapped(value)
    raise TypeError(
        "The 'kernel' argument must be a ScalarKernel, a name, a scikit-learn kernel object or a function of (X, Z). "
        f"Got {value!r} instead."
    )


def _kernel_of_name(name: str) -> ScalarKernel:
    """Return the kernel of this name from this module, or else the pairwise kernel from scikit-learn."""
    if name == "auto":
        return Standardized(Gaussian("median"))
    if name == "rbf":  # scikit-learn's name for the same kernel
        return Gaussian()
    try:
        kernel: ScalarKernel = from_name(name, (scalar, fingerprints, functional, columns, combined), "kernel")
        return kernel
    except ValueError as error:
        pairwise = sorted(kernel_metrics())
        if name in pairwise:
            return Wrapped(name)
        raise ValueError(f"{error} Pairwise names of scikit-learn: {', '.join(map(repr, pairwise))}.") from error
