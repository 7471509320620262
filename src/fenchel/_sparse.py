"""SciPy sparse matrices as inputs, with the functions of an array namespace that samples need."""

from typing import Any

import array_api_compat.numpy as numpy_namespace
import numpy as np
from scipy.sparse import csr_array, issparse, vstack

__all__ = ["SPARSE", "as_rows", "dense", "is_sparse"]


def is_sparse(array: object) -> bool:
    """Whether the array is a SciPy sparse array or matrix."""
    return bool(issparse(array))


def as_rows(array: Any) -> Any:
    """Return a sparse or dense matrix as a CSR array, without a copy if it is one already."""
    return csr_array(array)


def dense(array: Any) -> Any:
    """Return the array, converted to dense if it is sparse."""
    return array.toarray() if issparse(array) else array


class _SparseNamespace:
    """NumPy's functions, except those that differ for a sparse sample. Dense arguments use NumPy's."""

    __name__ = "fenchel._sparse"

    def __getattr__(self, name: str) -> Any:
        return getattr(numpy_namespace, name)

    def take(self, array: Any, index: np.ndarray, axis: int = 0) -> Any:
        if not issparse(array):
            return np.take(array, index, axis=axis)
        return array[index] if axis == 0 else array[:, index]

    def astype(self, array: Any, dtype: Any, copy: bool = True) -> Any:
        return array.astype(dtype, copy=copy)

    def asarray(self, values: Any, dtype: Any = None, device: object = None) -> Any:
        return csr_array(values, dtype=dtype) if issparse(values) else np.asarray(values, dtype=dtype)

    def concat(self, arrays: Any, axis: int = 0) -> Any:
        return vstack(arrays, format="csr") if issparse(arrays[0]) else np.concatenate(arrays, axis=axis)

    def isfinite(self, array: Any) -> Any:
        return np.isfinite(array.data if issparse(array) else array)

    def min(self, array: Any) -> Any:
        return array.min()


SPARSE = _SparseNamespace()
