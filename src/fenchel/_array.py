"""Array-API layer: the only module that deals with array libraries."""

import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Protocol, TypeGuard, runtime_checkable

import array_api_compat.numpy as numpy_namespace
import numpy as np
from array_api_compat import (
    array_namespace,
    is_cupy_array,
    is_numpy_namespace,
    is_torch_array,
    is_torch_namespace,
)
from array_api_compat import device as array_device
from scipy.linalg import cho_factor, cho_solve, get_lapack_funcs, solve_triangular
from scipy.sparse import csr_array, issparse, vstack
from threadpoolctl import ThreadpoolController

__all__ = [
    "Array",
    "Frame",
    "Index",
    "Inputs",
    "Lazy",
    "Namespace",
    "Outputs",
    "as_index",
    "as_like",
    "as_objects",
    "as_rows",
    "cholesky_solver",
    "dense",
    "device",
    "eps",
    "few_threads",
    "free_device_memory",
    "has_shape",
    "host",
    "in_threads",
    "indicator",
    "is_array",
    "is_host",
    "is_lazy",
    "is_numpy",
    "is_on_cpu",
    "is_single",
    "is_sparse",
    "is_torch",
    "joined",
    "namespace",
    "on_its_device",
    "pivoted_cholesky",
    "row_norms",
    "settled",
    "spd_inverse",
    "symmetric_eigh",
    "triangular_solve",
]

_BLOCK = 256  # rows of a block of a triangle that is copied
_SMALL_PRODUCT = 10_000_000  # multiplications of a matrix product that take one thread about a millisecond

# Type aliases for objects of other libraries, which cannot be typed more precisely.
Array = Any  # an array of any library that follows the array API standard
Namespace = Any  # the functions of that library
Inputs = Any  # raw inputs: an array of any library, a sparse matrix, a table, functions, or a sequence of any objects
Outputs = Any  # raw outputs: an array of any library, curves, or a sequence of any objects
Index = int | slice | Array  # positions along the first axis


@runtime_checkable
class Frame(Protocol):
    """A table of pandas or polars."""

    columns: Iterable[str]
    dtypes: Iterable[object]


class Lazy:
    """An array whose rows are in chunks on the workers of a cluster, or a sum over them."""


def is_sparse(array: object) -> bool:
    """Whether the array is a SciPy sparse array or matrix."""
    return bool(issparse(array))


def as_rows(array: Array) -> Array:
    """Return a sparse or dense matrix as a CSR array, without a copy if it is one already."""
    return csr_array(array)


def dense(array: Array) -> Array:
    """Return the array, converted to dense if it is sparse."""
    return array.toarray() if issparse(array) else array


class _SparseNamespace:
    """NumPy's functions, except those that differ for a sparse sample. Dense arguments use NumPy's."""

    __name__ = "fenchel._array"

    def __getattr__(self, name: str) -> Callable[..., Array]:
        return getattr(numpy_namespace, name)

    def take(self, array: Array, index: np.ndarray, axis: int = 0) -> Array:
        if not issparse(array):
            return np.take(array, index, axis=axis)
        return array[index] if axis == 0 else array[:, index]

    def astype(self, array: Array, dtype: object, copy: bool = True) -> Array:
        return array.astype(dtype, copy=copy)

    def asarray(self, values: Array, dtype: type | str | None = None, device: object = None) -> Array:
        return csr_array(values, dtype=dtype) if issparse(values) else np.asarray(values, dtype=dtype)

    def concat(self, arrays: Array, axis: int = 0) -> Array:
        return vstack(arrays, format="csr") if issparse(arrays[0]) else np.concatenate(arrays, axis=axis)

    def isfinite(self, array: Array) -> Array:
        return np.isfinite(array.data if issparse(array) else array)

    def min(self, array: Array) -> Array:
        return array.min()


_SPARSE = _SparseNamespace()


def namespace(*arrays: Array) -> Namespace:
    """Return the array-API namespace of the arrays, ignoring ``None``."""
    if type(arrays[0]) is np.ndarray and len(arrays) == 1:  # fast path: called many times in each iteration
        return numpy_namespace
    if any(is_sparse(a) for a in arrays):
        return _SPARSE
    return array_namespace(*[a for a in arrays if a is not None])


def device(array: Array) -> object:
    """Return the device of the array."""
    return "cpu" if is_sparse(array) else array_device(array)


def is_numpy(array: Array) -> bool:
    """Whether the array is a NumPy array."""
    return type(array) is np.ndarray or bool(is_numpy_namespace(namespace(array)))


def is_torch(array: Array) -> bool:
    """Whether the array is a torch tensor."""
    return bool(is_torch_namespace(namespace(array)))


def has_shape(value: object) -> TypeGuard[Array]:
    """Whether a value is an array of any library, not a list of objects, a state or ``None``."""
    return hasattr(value, "shape")


def is_array(value: object) -> TypeGuard[Array]:
    """Whether a value is an array of any library, not a table either."""
    return has_shape(value) and hasattr(value, "dtype")


def is_host(X: object) -> bool:
    """Whether scikit-learn can validate X: NumPy, pandas, SciPy sparse, lists, but no other array library."""
    try:
        return is_sparse(X) or is_numpy(X)
    except TypeError:
        return True


def is_lazy(array: object) -> TypeGuard[Array]:
    """Whether the rows of an array are computed when they are needed."""
    return isinstance(array, Lazy)


def settled(*arrays: Array) -> tuple[Array, ...]:
    """Start to compute lazy rows together, so that what follows does not compute them again; others are unchanged."""
    started: tuple[Array, ...] = arrays[0].settled(arrays) if is_lazy(arrays[0]) else arrays
    return started


def eps(array: Array) -> float:
    """Return the machine precision of the array's dtype, as a Python float."""
    return float(namespace(array).finfo(array.dtype).eps)


def is_single(array: Array) -> bool:
    """Whether the array is in float32 or a lower precision."""
    return eps(array) > 1e-10


def as_like(values: Array, reference: Array) -> Array:
    """Return ``values`` as an array of the library, dtype and device of ``reference``."""
    xp = namespace(reference)
    return xp.asarray(values, dtype=reference.dtype, device=device(reference))


def as_objects(values: Sequence[object]) -> np.ndarray:
    """Return objects of any kind, including tuples or arrays of equal length, as a one-dimensional object array."""
    objects = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # slice assignment would treat tuples of equal length as rows
        objects[i] = value
    return objects


def as_index(index: np.ndarray, like: Array) -> Array:
    """Return integer indices in the library and on the device of ``like``."""
    return namespace(like).asarray(index, device=device(like))


def host(array: Array) -> np.ndarray:
    """Return an array of any library, or a list, as a NumPy array (one transfer if it is on an accelerator)."""
    if is_host(array):
        return np.asarray(dense(array))
    if is_torch_array(array):
        array = array.detach().cpu()
    return np.asarray(array.get() if hasattr(array, "get") else array)  # CuPy has ``get``


def is_on_cpu(array: Array) -> bool:
    """Whether an array is in the memory of the CPU, not on an accelerator."""
    return is_numpy(array) or str(device(array)).startswith("cpu")


def on_its_device(array: Array) -> AbstractContextManager[object]:
    """Return a context in which the device of a torch array is the one on which kernels are launched."""
    if is_on_cpu(array):
        return nullcontext()
    context: AbstractContextManager[object] = sys.modules["torch"].cuda.device(array.device)
    return context


def free_device_memory(array: Array) -> int | None:
    """Return the free memory in bytes of the accelerator that holds an array, ``None`` for host arrays."""
    if is_on_cpu(array):
        return None
    library = sys.modules[type(array).__module__.partition(".")[0]]
    if is_torch_namespace(namespace(array)):
        if array.device.type != "cuda":
            return None
        held = library.cuda.memory_reserved(array.device) - library.cuda.memory_allocated(array.device)
        return int(library.cuda.mem_get_info(array.device)[0] + held)  # memory cached by torch can be reused
    if is_cupy_array(array):
        return int(library.cuda.runtime.memGetInfo()[0] + library.get_default_memory_pool().free_bytes())
    return None


def joined(parts: Sequence[Outputs]) -> Outputs:
    """Concatenate arrays, or lists."""
    if not has_shape(parts[0]):
        return [one for part in parts for one in part]
    return namespace(parts[0]).concat(parts)


def few_threads(array: Array, inner: int) -> AbstractContextManager[object]:
    """Return a context in which small products of such an array with a square matrix use a single BLAS thread.

    For products that take microseconds, waiting threads cost more than they save, and far more on a busy machine.
    """
    if not is_numpy(array) or array.size * inner > _SMALL_PRODUCT:
        return nullcontext()
    context: AbstractContextManager[object] = _thread_pools().limit(limits=1, user_api="blas")
    return context


def in_threads(work: Callable[[range], Array], count: int, like: Array) -> list[Array]:
    """Split 0, ..., count - 1 among as many threads as BLAS would use, and return the results of ``work``.

    Each uses a single BLAS thread. NumPy's elementwise functions are single-threaded, so a loop of small products and
    such functions gains from explicit threads. Arrays of other libraries run in one call.
    """
    if not is_numpy(like):
        return [work(range(count))]
    blas = [pool["num_threads"] for pool in _thread_pools().info() if pool["user_api"] == "blas"]
    threads = max(1, min([count, *blas]))
    with _thread_pools().limit(limits=1, user_api="blas"):
        if threads == 1:
            return [work(range(count))]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, (range(k, count, threads) for k in range(threads))))


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


def row_norms(array: Array) -> Array:
    """Return the Euclidean norms of the rows, shape (n, 1)."""
    if is_numpy(array):  # einsum reads the array once without a temporary
        return np.sqrt(np.einsum("ij,ij->i", array, array))[:, None]
    return namespace(array).linalg.vector_norm(array, axis=1, keepdims=True)


def indicator(ratio: Array) -> Array:
    """Return 0 where ``ratio <= 1`` (up to 16 eps of the dtype) and infinity elsewhere."""
    xp = namespace(ratio)
    zero = xp.zeros_like(ratio)
    return xp.where(ratio <= 1 + 16 * eps(ratio), zero, zero + float("inf"))


def symmetric_eigh(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues (clipped at zero) and eigenvectors of a PSD matrix."""
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh((matrix + matrix.T) / 2)
    return xp.clip(values, min=0.0), vectors


def cholesky_solver(matrix: Array) -> Callable[[Array], Array]:
    """Return ``B -> matrix^-1 B`` for a positive definite matrix.

    If round-off makes the matrix indefinite, the eigenvalues are clipped at the level of round-off.
    """
    xp = namespace(matrix)
    try:
        if is_numpy(matrix):
            factor = cho_factor(matrix, lower=True, check_finite=False)
            return lambda right: cho_solve(factor, right, check_finite=False)
        if is_torch_namespace(xp):
            lower = xp.linalg.cholesky(matrix)
            return lambda right: xp.cholesky_solve(right, lower)
        xp.linalg.cholesky(matrix)
        return lambda right: xp.linalg.solve(matrix, right)
    except (np.linalg.LinAlgError, RuntimeError):  # torch's LinAlgError is a RuntimeError
        values, vectors = _clipped_eigh(matrix)
        return lambda right: vectors @ ((xp.conj(vectors).T @ right) / values[:, None])


def _clipped_eigh(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues, clipped at the round-off of the largest, and eigenvectors from the lower triangle."""
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh(matrix)
    least = max(float(values[-1]) * eps(matrix), float(xp.finfo(matrix.dtype).smallest_normal))
    return xp.clip(values, min=least), vectors


def pivoted_cholesky(matrix: np.ndarray, rtol: float) -> tuple[np.ndarray, np.ndarray]:
    """Return L (n, r) with L L' = matrix and the rows, in pivot order, on which L is lower triangular.

    It stops when no diagonal entry of the remainder exceeds ``rtol`` times the largest diagonal entry of the matrix.
    """
    (factorise,) = get_lapack_funcs(("pstrf",), (matrix,))
    lower, pivots, rank, _ = factorise(matrix, tol=rtol * float(np.max(np.diagonal(matrix))), lower=1)
    order = pivots - 1
    L = np.zeros((len(matrix), max(rank, 1)), dtype=matrix.dtype)
    L[order, :rank] = np.tril(lower)[:, :rank]
    return L, order[: max(rank, 1)]


def triangular_solve(lower: np.ndarray, right: np.ndarray, transposed: bool = False) -> np.ndarray:
    """Return the solution of L X = B, or of L' X = B."""
    found: np.ndarray = solve_triangular(lower, right, lower=True, trans=1 if transposed else 0, check_finite=False)
    return found


def spd_inverse(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix, which may be overwritten; see ``cholesky_solver``."""
    xp = namespace(matrix)
    if is_numpy(matrix):
        potrf, potri = get_lapack_funcs(("potrf", "potri"), (matrix,))
        diagonal = np.diagonal(matrix).copy()
        # the transpose is the same matrix in LAPACK's memory order, so nothing is copied
        lower, info = potrf(matrix.T, lower=True, clean=False, overwrite_a=True)
        if info == 0:
            inverse, info = potri(lower, lower=True, overwrite_c=True)
        if info == 0:
            for start in range(0, len(inverse), _BLOCK):  # the other half, block by block: masks of all take as long
                stop = start + _BLOCK
                inverse[start:stop, stop:] = inverse[stop:, start:stop].T
                block = np.tril(inverse[start:stop, start:stop])
                inverse[start:stop, start:stop] = block + np.tril(block, -1).T
            return np.asarray(inverse.T)
        np.fill_diagonal(matrix, diagonal)
    elif is_torch_namespace(xp):
        try:
            return xp.cholesky_inverse(xp.linalg.cholesky(matrix))
        except RuntimeError:  # torch's LinAlgError is one
            pass
    values, vectors = _clipped_eigh(matrix)
    return (vectors / values) @ vectors.T
