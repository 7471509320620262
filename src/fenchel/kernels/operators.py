"""Output operators: what couples the coordinates of an output."""

import sys
from typing import Any

import numpy as np

from fenchel._array import Array, namespace
from fenchel._check import check_array, check_psd
from fenchel._component import from_name
from fenchel.kernels.base import OutputOperator

__all__ = ["Covariance", "Diagonal", "Identity", "Matrix", "as_operator"]


class Identity(OutputOperator):
    r"""The identity of the output space: outputs are not coupled.

    .. math:: A = I.
    """

    def matrix(self, representation: Any) -> Array | None:
        """Return ``None``, which stands for the identity in any coordinates."""
        return None


class Matrix(OutputOperator):
    r"""A matrix on the output vectors.

    .. math:: A y = B y.

    Parameters
    ----------
    B : array of shape (d, d)
        Symmetric positive semidefinite matrix, d the dimension of the outputs.
    """

    def __init__(self, B: Array) -> None:
        self.B = B

    def matrix(self, representation: Any) -> Array:
        """Return B in the representation's coordinates, shape (p, p)."""
        name = "The 'B' parameter of Matrix"
        return representation.congruence(check_psd(check_array(_as_array(self.B, name), name), name))

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on, for outputs of dimension 3."""
        return [cls(np.asarray([[2.0, 1.0, 0.0], [1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])), cls(np.ones((3, 3)))]


class Diagonal(OutputOperator):
    r"""A diagonal matrix on the output vectors.

    .. math:: (A y)_j = v_j y_j.

    Parameters
    ----------
    values : array of shape (d,)
        Non-negative weights :math:`v_j` of the d outputs.
    """

    def __init__(self, values: Array) -> None:
        self.values = values

    def matrix(self, representation: Any) -> Array:
        """Return the diagonal in the representation's coordinates, shape (p,)."""
        name = "The 'values' parameter of Diagonal"
        values = check_array(_as_array(self.values, name), name, ndim=1)
        low = float(namespace(values).min(values))
        if low < 0:
            raise ValueError(f"{name} must be non-negative. Its least entry is {low:.3e}.")
        return representation.congruence_diagonal(values)

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on, for outputs of dimension 3."""
        return [cls(np.asarray([1.0, 0.0, 2.5]))]


class Covariance(OutputOperator):
    r"""The empirical covariance of the training outputs, as they reach the problem: centred or not.

    .. math:: A = \frac1n \sum_i y_i \otimes y_i.
    """

    def matrix(self, representation: Any) -> Array:
        """Return the covariance of the coordinates, shape (p, p)."""
        return representation.covariance()


def as_operator(value: Any) -> OutputOperator:
    """Return the output operator that a value means.

    Parameters
    ----------
    value : OutputOperator, None, str or array
        An operator; ``None`` for ``Identity()``; a short name of this module (``"identity"``, ``"covariance"``); a
        2-dimensional array for ``Matrix``, a 1-dimensional one for ``Diagonal``.

    Returns
    -------
    operator : OutputOperator
        The operator itself when ``value`` is one.
    """
    if value is None:
        return Identity()
    if isinstance(value, OutputOperator):
        return value
    if isinstance(value, str):
        return _operator_of_name(value)
    name = "The 'operator' argument"
    array = _as_array(value, name, "an OutputOperator, a name, None or an array")
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must be 1- or 2-dimensional. Got an array of shape {tuple(array.shape)} instead.")
    return Matrix(array) if array.ndim == 2 else Diagonal(array)


def _operator_of_name(name: str) -> OutputOperator:
    """Return the operator of this module that has the name and needs no argument."""
    try:
        operator: OutputOperator = from_name(name, sys.modules[__name__], "operator")
    except TypeError as error:
        raise ValueError(f"The operator {name!r} has parameters without a default; pass an instance.") from error
    return operator


def _as_array(value: Any, name: str, wanted: str = "an array") -> Array:
    """Return the value if it is an array, a list or a tuple as a NumPy array, else raise."""
    if isinstance(value, list | tuple):
        value = np.asarray(value)
    if not hasattr(value, "ndim") or not hasattr(value, "dtype"):
        raise TypeError(f"{name} must be {wanted}. Got {value!r} instead.")
    return value
