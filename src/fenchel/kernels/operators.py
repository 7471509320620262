"""Output operators, which couple the coordinates of an output."""

import sys
from collections.abc import Sequence
from typing import Self, cast

import numpy as np

from fenchel._array import Array, host, is_array, namespace
from fenchel._check import check_array, check_psd
from fenchel._component import from_name
from fenchel.exceptions import IncompatibleError
from fenchel.kernels.curvature import curvature
from fenchel.kernels.derivatives import slope
from fenchel.kernels.scalar_kernel import CurveSpace, OutputOperator, OutputSpace, ScalarKernel
from fenchel.kernels.wrapped import as_scalar_kernel

__all__ = ["Covariance", "Diagonal", "Identity", "IntegralOperator", "Matrix", "as_operator"]


class Identity(OutputOperator):
    r"""Identity operator: outputs are not coupled.

    .. math:: A = I.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Identity
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(operator=Identity()).fit(X, np.hstack([np.sin(X), np.cos(X)]))
    >>> model.predict(X).shape
    (20, 2)
    """

    def matrix(self, representation: OutputSpace) -> Array | None:
        """Return ``None``, which stands for the identity in any coordinates."""
        return None


class Matrix(OutputOperator):
    r"""Operator given by a matrix on the output vectors.

    .. math:: A y = B y.

    Parameters
    ----------
    B : array of shape (d, d)
        Symmetric positive semidefinite matrix, where d is the dimension of the outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Matrix
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(operator=Matrix([[1.0, 0.5], [0.5, 1.0]]))
    >>> model.fit(X, np.hstack([np.sin(X), np.cos(X)])).predict(X).shape
    (20, 2)
    """

    def __init__(self, B: Array) -> None:
        self.B = B

    def matrix(self, representation: OutputSpace) -> Array:
        """Return B in the representation's coordinates, shape (p, p)."""
        name = "The 'B' parameter of Matrix"
        B = check_psd(check_array(_as_array(self.B, name), name), name)
        return representation.congruence((B + B.T) / 2)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on, for outputs of dimension 3."""
        return [cls(np.asarray([[2.0, 1.0, 0.0], [1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])), cls(np.ones((3, 3)))]


class Diagonal(OutputOperator):
    r"""Operator given by a diagonal matrix on the output vectors.

    .. math:: (A y)_j = v_j y_j.

    Parameters
    ----------
    values : array of shape (d,)
        Non-negative weights :math:`v_j` of the d outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Diagonal
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(operator=Diagonal([1.0, 0.0])).fit(X, np.hstack([np.sin(X), np.cos(X)]))
    >>> bool(np.ptp(model.predict(X)[:, 1]) < 1e-9)  # the kernel is zero for the second output
    True
    """

    def __init__(self, values: Array) -> None:
        self.values = values

    def matrix(self, representation: OutputSpace) -> Array:
        """Return the diagonal in the representation's coordinates, shape (p,)."""
        name = "The 'values' parameter of Diagonal"
        values = check_array(_as_array(self.values, name), name, ndim=1)
        low = float(namespace(values).min(values))
        if low < 0:
            raise ValueError(f"{name} must be non-negative. Its smallest entry is {low:.3e}.")
        return representation.congruence_diagonal(values)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on, for outputs of dimension 3."""
        return [cls(np.asarray([1.0, 0.0, 2.5]))]


class Covariance(OutputOperator):
    r"""Empirical covariance of the training outputs, centred if the estimator centres them.

    .. math:: A = \frac1n \sum_i y_i \otimes y_i.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Covariance
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(operator=Covariance()).fit(X, np.hstack([np.sin(X), np.cos(X)]))
    >>> model.predict(X).shape
    (20, 2)
    """

    def matrix(self, representation: OutputSpace) -> Array:
        """Return the covariance of the coordinates, shape (p, p)."""
        return representation.covariance()


class IntegralOperator(OutputOperator):
    r"""Integral operator of a kernel on the domain of the curves, which may couple several channels.

    .. math:: (A f)_c(\theta) = \sum_d B_{cd} \int k(\theta, \theta') f_d(\theta') \, d\theta' .

    Parameters
    ----------
    kernel : ScalarKernel, str, callable, list of these, or None, default=None
        Kernel on points of the domain. A list has one kernel per channel; the channels are then not coupled. ``None``
        leaves the operator to a representation that brings its own eigenvalues (``Fourier``, ``Basis``).
    channels : array of shape (c, c) or None, default=None
        Positive semidefinite matrix B that couples the channels; ``None`` means the identity.

    References
    ----------
    [Lambert2022]_, section 2; [Kadri2016]_.

    Examples
    --------
    >>> from fenchel import FunctionalRegressor
    >>> from fenchel.datasets import make_functional
    >>> from fenchel.kernels import Laplacian
    >>> data = make_functional(20, 15, random_state=0)
    >>> model = FunctionalRegressor(output_kernel=Laplacian(5.0))  # its operator is IntegralOperator(Laplacian(5.0))
    >>> model.fit(data.X, data.Y).predict(data.X).shape
    (20, 15)
    """

    def __init__(
        self, kernel: ScalarKernel | str | Sequence[ScalarKernel | str] | None = None, channels: Array | None = None
    ) -> None:
        self.kernel = kernel
        self.channels = channels

    def matrix(self, representation: OutputSpace) -> Array:
        """Return the operator in the representation's coordinates."""
        if not representation.is_functional:
            raise IncompatibleError(
                f"IntegralOperator acts on curves; {representation.name} does not represent curves. "
                "Use FunctionalRegressor, or a curve representation such as Spline()."
            )
        return cast(CurveSpace, representation).integral(self)

    def evaluation(self, matrix: Array | None, curves: CurveSpace, points: np.ndarray, derivative: int) -> Array:
        """Return the map (p, points × channels) to values of the images at points, by the operator's own formula."""
        return curves.evaluation(self, points, derivative)

    def resolve(self, points: np.ndarray) -> "IntegralOperator":
        """Return the operator whose kernels are checked, their data-dependent parameters set from these points."""
        kernels = self._resolved(points)
        several = isinstance(self.kernel, list | tuple)
        return IntegralOperator(kernels if several else kernels[0], self.channels) if kernels else self

    def _resolved(self, points: np.ndarray) -> list[ScalarKernel]:
        """Return the kernels, a single one or one for each channel, with their parameters set."""
        kernels = self.kernel if isinstance(self.kernel, list | tuple) else [self.kernel]
        return [as_scalar_kernel(kernel).resolve(points[:, None]) for kernel in kernels if kernel is not None]

    def values(self, left: np.ndarray, right: np.ndarray, n_channels: int, derivative: int = 0) -> np.ndarray:
        """Return the kernel at pairs of points, (left × channels, right × channels).

        With ``derivative``, 1 or 2, return its first or second derivative with respect to the right point.
        """
        if self.kernel is None:
            raise ValueError("An output kernel is needed here, such as output_kernel='laplacian'. Got None.")
        a, b, kernels = left[:, None], right[:, None], self._resolved(left)
        parts = [_derivatives(kernel, b, a, derivative).T if derivative else kernel(a, b) for kernel in kernels]
        if left is right:
            for kernel, part in zip(kernels, parts, strict=True):
                if not kernel.tags.is_trusted:
                    check_psd(part, f"The output kernel {kernel!r} on the grid")
        if not isinstance(self.kernel, list | tuple):
            return np.kron(parts[0], self.coupling(n_channels))
        if len(parts) != n_channels or self.channels is not None:
            raise ValueError(
                f"A list of output kernels must have one for each of the {n_channels} channels, and no channel matrix. "
                f"Got {len(parts)} kernels and channels={'None' if self.channels is None else 'a matrix'}."
            )
        out = np.zeros((len(left), n_channels, len(right), n_channels))
        for channel, part in enumerate(parts):
            out[:, channel, :, channel] = part
        return out.reshape(len(left) * n_channels, len(right) * n_channels)

    def coupling(self, n_channels: int) -> np.ndarray:
        """Return the matrix that couples the channels."""
        if self.channels is None:
            return np.eye(n_channels)
        name = "The 'channels' parameter of IntegralOperator"
        matrix = host(check_psd(check_array(_as_array(self.channels, name), name), name))
        if matrix.shape[0] != n_channels:
            raise ValueError(f"{name} must have shape ({n_channels}, {n_channels}). Got {matrix.shape} instead.")
        return matrix

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on, for curves with two channels."""
        coupling = np.asarray([[2.0, 1.0], [1.0, 1.0]])
        return [cls("laplacian"), cls("gaussian", coupling), cls(["gaussian", "laplacian"])]


def _derivatives(kernel: ScalarKernel, points: np.ndarray, grid: np.ndarray, order: int) -> np.ndarray:
    """Return the first or second derivatives of k(t, s) in t, (points, grid); raise if the kernel has none."""
    try:
        return np.asarray((curvature if order == 2 else slope)(kernel, points, grid))
    except IncompatibleError:
        length = 0.1 * float(np.ptp(grid)) or 1.0
        raise IncompatibleError(
            f"Predictions have no {'second ' * (order == 2)}derivative: the output kernel {kernel!r} is not smooth, or "
            f"its derivative is not written. Fit with a smooth one, such as output_kernel=Matern({length:g}, nu=2.5), "
            "whose length is a tenth of the domain."
        ) from None


def as_operator(value: object) -> OutputOperator:
    """Convert a matrix, a name or ``None`` to an output operator.

    Parameters
    ----------
    value : OutputOperator, None, str or array
        An operator; ``None`` for ``Identity()``; a short name from this module (``"identity"``, ``"covariance"``); a
        2-dimensional array for ``Matrix``, or a 1-dimensional array for ``Diagonal``.

    Returns
    -------
    operator : OutputOperator
        ``value`` itself if it is an OutputOperator.

    Examples
    --------
    >>> from fenchel.kernels import as_operator
    >>> as_operator(None), type(as_operator([[2.0, 0.0], [0.0, 1.0]])).__name__
    (Identity(), 'Matrix')
    """
    if value is None:
        return Identity()
    if isinstance(value, OutputOperator):
        return value
    if isinstance(value, str):
        operator: OutputOperator = from_name(value, sys.modules[__name__], "operator")
        return operator
    name = "The 'operator' argument"
    array = _as_array(value, name, "an OutputOperator, a name, None or an array")
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must be 1- or 2-dimensional. Got an array of shape {tuple(array.shape)} instead.")
    return Matrix(array) if array.ndim == 2 else Diagonal(array)


def _as_array(value: object, name: str, wanted: str = "an array") -> Array:
    """Return an array as it is, or a list or tuple as a NumPy array; raise for anything else."""
    if isinstance(value, list | tuple):
        value = np.asarray(value)
    if not is_array(value):
        raise TypeError(f"{name} must be {wanted}. Got {value!r} instead.")
    return value
