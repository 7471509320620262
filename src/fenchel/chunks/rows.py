"""Arrays whose rows are in chunks on the workers of a Dask cluster, for the solvers of arrays in memory.

What a solver computes row by row is noted, and becomes one task for each chunk when it is needed. Sums over the rows
reach the client, and are constants of later tasks: the chunks of a worker that dies are computed again from these
and from the inputs alone, not from other chunks.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import getitem, itemgetter
from typing import Any
from weakref import WeakValueDictionary

import array_api_compat.numpy as numpy_namespace
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fenchel._array import Array, Lazy
from fenchel.chunks.sample import Client, Future
from fenchel.operators.products import PointKernel, kernel_product, kernel_products
from fenchel.operators.thin import leading

__all__ = ["ROWS", "Rows", "Workers"]

_GROUP = 16  # arrays added by one task
ROWS = 3  # of the arrays on which shapes and dtypes are found; not one, which would be broadcast
_ADDITIONS = {np.sum: np.add, np.max: np.maximum, np.min: np.minimum, np.all: np.logical_and, np.any: np.logical_or}


class Workers:
    """The client, the number of rows, and the sums over them that nobody has asked for yet."""

    def __init__(self, client: Client, n: int) -> None:
        self.client = client
        self.n = n
        self.kept: list[Future] = []  # products with kernels; without them a lost chunk would cost the others too
        self.pending: WeakValueDictionary[int, _Total] = WeakValueDictionary()

    def submit(self, function: Callable[..., object], *args: object) -> Future:
        """Submit a task."""
        return self.client.submit(function, *args, pure=False)

    def added(self, parts: list[Future], additions: Sequence[Callable[..., Array]]) -> Future:
        """Submit the sum of tuples of arrays, in groups."""
        while len(parts) > 1:
            groups = [parts[first : first + _GROUP] for first in range(0, len(parts), _GROUP)]
            parts = [self.submit(_added, tuple(additions), group) for group in groups]
        return parts[0]

    def evaluated(self, arrays: "Sequence[Rows]", is_alone: bool = False) -> list[Future]:
        """Submit a task for each chunk, which returns the tuple of its rows of the arrays, or those of a single one."""
        program = _Program(is_alone)
        program.outputs = [program.place_of(array) for array in arrays]
        parts, program.leaves = program.leaves, []
        shared = self.submit(_same, program)
        return [self.submit(_run, shared, *each) for each in zip(*parts, strict=True)]


class _Lazy(NDArrayOperatorsMixin, Lazy):
    """What rows and sums over them share: NumPy's operators and functions, by its protocols."""

    device = "cpu"
    meta: np.ndarray  # an array of the same form, with a few rows if these are rows

    def __array_namespace__(self, api_version: str | None = None) -> "_Namespace":
        return _NAMESPACE

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, out: object = None, **options: Any) -> Array:
        return _applied(ufunc, args, options)

    def __array_function__(self, function: Any, types: object, args: Any, options: Any) -> Array:
        return _applied(function, args, options)

    @property
    def dtype(self) -> np.dtype:
        """The type of the entries."""
        return self.meta.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.meta.ndim


class Rows(_Lazy):
    """An array (n, ...) whose chunks of rows are on the workers, or the function of such arrays that it is.

    Parameters
    ----------
    workers : Workers
        Where the rows are.
    meta : array of shape (3, ...)
        An array of the same form.
    parts : list of Future, or None
        The chunks, if a task computes them.
    call : tuple or None
        Otherwise the function, its arguments and its options.
    """

    def __init__(self, workers: Workers, meta: np.ndarray, parts: list[Future] | None = None, call: Any = None) -> None:
        self.workers = workers
        self.meta = meta
        self.parts = parts
        self.call = call

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        return self.workers.n, *self.meta.shape[1:]

    @property
    def T(self) -> "_Transposed":  # noqa: N802
        """The transposed matrix, for products with rows."""
        return _Transposed(self)

    def __getitem__(self, index: Any) -> "Rows":
        return self.of(getitem, self, index)

    def astype(self, dtype: Any, copy: bool = True) -> "Rows":
        """Return the rows in another dtype."""
        return self.of(np.asarray, self, np.dtype(dtype))

    def of(self, function: Callable[..., Array], *args: Any, **options: Any) -> "Rows":
        """Return the function of the rows of each chunk."""
        few, many = _filled((args, options), lambda lazy: lazy.meta)
        with np.errstate(all="ignore"):
            return Rows(self.workers, np.asarray(function(*few, **many)), call=(function, args, options))

    def settled(self, arrays: "Sequence[Rows]") -> "tuple[Rows, ...]":
        """Start to compute arrays, in one task for each chunk."""
        new = list({id(array): array for array in arrays if array.parts is None}.values())
        found = self.workers.evaluated(new, len(new) == 1) if new else []
        for k, array in enumerate(new):
            array.parts = found if len(new) == 1 else [self.workers.submit(itemgetter(k), each) for each in found]
            array.call = None
        return tuple(arrays)

    def chunks(self) -> list[Future]:
        """Return the chunks as futures."""
        self.settled([self])
        return self.parts or []

    def each(self, function: Callable[[np.ndarray], object]) -> Iterator[Any]:
        """Yield a function of each chunk; one result at a time reaches the client."""
        return (self.workers.submit(function, part).result() for part in self.chunks())

    def filled(self, chunks: Iterable[np.ndarray]) -> "Rows":
        """Return rows of the same form from chunks, one of which is loaded at a time."""
        scatter = self.workers.client.scatter
        return Rows(self.workers, self.meta, [scatter(rows, direct=False, hash=False) for rows in chunks])

    def orthogonal(self) -> "tuple[Rows, np.ndarray]":
        """Return features rotated to be orthogonal, and their squared norms; the rotation stays on the workers."""
        moments = [self.workers.submit(_moments, part) for part in self.chunks()]
        basis = self.workers.submit(_leading, self.workers.added(moments, [np.add]))
        values = self.workers.submit(itemgetter(0), basis).result()
        vectors = self.workers.submit(itemgetter(1), basis)
        self.workers.kept.append(vectors)
        rotation = Rows(self.workers, np.ones((self.shape[1], len(values)), self.dtype), [vectors] * len(moments))
        return self.settled([self @ rotation])[0], values

    def product(self, kernel: PointKernel, A: "Rows") -> "Rows":
        """Return the product of the kernel between all rows with A, in one pass over all pairs of chunks.

        A task computes the tiles between two chunks, uses them for both, and discards them.
        """
        submit, X, coefs = self.workers.submit, self.chunks(), A.chunks()
        shared = submit(_same, kernel)
        parts = [[submit(_own_product, shared, *own)] for own in zip(X, coefs, strict=True)]
        for i, j in combinations(range(len(X)), 2):
            pair = submit(kernel_products, shared, X[i], X[j], coefs[j], coefs[i])
            parts[i].append(submit(itemgetter(slice(0, 1)), pair))
            parts[j].append(submit(itemgetter(slice(1, 2)), pair))
        sums = [submit(itemgetter(0), self.workers.added(part, [np.add])) for part in parts]
        self.workers.kept += sums
        return Rows(self.workers, A.meta, sums)


class _Total(_Lazy):
    """A sum over all rows. The first use of one computes all that are pending, and brings them to the client."""

    def __init__(self, rows: Rows, addition: Callable[..., Array]) -> None:
        self.rows = rows
        self.meta = rows.meta
        self.addition = addition
        self.known: np.ndarray | None = None
        rows.workers.pending[id(self)] = self

    @property
    def value(self) -> np.ndarray:
        """The sum."""
        if self.known is None:
            workers, pending = self.rows.workers, list(self.rows.workers.pending.values())
            workers.pending.clear()
            parts = workers.evaluated([total.rows for total in pending])
            sums = workers.added(parts, [total.addition for total in pending]).result()
            for total, part in zip(pending, sums, strict=True):
                total.known = np.asarray(part)
        assert self.known is not None  # it was pending
        return self.known

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.meta.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.value, dtype)

    def __getitem__(self, index: Any) -> Array:
        return self.value[index]

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)


@dataclass(frozen=True)
class _Transposed:
    rows: Rows

    def __matmul__(self, other: Rows) -> _Total:
        return _Total(self.rows.of(_moment, self.rows, other), np.add)


class _Namespace:
    """NumPy's functions, which rows and sums over them take."""

    __name__ = "fenchel.chunks.rows"

    def __getattr__(self, name: str) -> Any:
        return getattr(numpy_namespace, name)


_NAMESPACE = _Namespace()


@dataclass(frozen=True)
class _Place:
    """The place of an array among those given to a task, or computed by it."""

    is_given: bool
    k: int


class _Program:
    """The calls by which a task computes its rows of some arrays from those that it is given."""

    def __init__(self, is_alone: bool) -> None:
        self.is_alone = is_alone
        self.leaves: list[list[Future]] = []
        self.calls: list[Any] = []
        self.outputs: list[_Place] = []
        self._places: dict[int, _Place] = {}

    def place_of(self, array: Rows) -> _Place:
        """Return the place of an array, after what it needs."""
        if id(array) not in self._places:
            if array.parts is not None:
                self.leaves.append(array.parts)
                place = _Place(True, len(self.leaves) - 1)
            else:
                self.calls.append(_filled(array.call, self.place_of))
                place = _Place(False, len(self.calls) - 1)
            self._places[id(array)] = place
        return self._places[id(array)]


def _run(program: _Program, *given: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
    found: list[np.ndarray] = []

    def value(place: _Place) -> np.ndarray:
        return given[place.k] if place.is_given else found[place.k]

    for call in program.calls:
        function, args, options = _filled(call, value)
        found.append(function(*args, **options))
    outputs = tuple(value(place) for place in program.outputs)
    return outputs[0] if program.is_alone else outputs


def _applied(function: Any, args: Any, options: Any) -> Array:
    """Apply a function of NumPy: to sums at once, to rows when they are needed."""
    lazy: list[Rows] = []

    def known(array: Any) -> Any:
        if isinstance(array, _Total):
            return array.value
        lazy.append(array)
        return array

    args, options = _filled((args, options), known)
    if not lazy:
        return function(*args, **options)
    if function is np.reshape:
        return lazy[0].of(_reshaped, lazy[0], tuple(args[1][1:]))
    axis = options.get("axis")
    rows = lazy[0].of(function, *args, **options)
    is_total = function in _ADDITIONS and (axis is None or 0 in np.atleast_1d(axis))
    return _Total(rows, _ADDITIONS[function]) if is_total else rows


def _filled(value: Any, fill: Callable[[Any], Any]) -> Any:
    """Return a value with the arrays, or places, in it replaced."""
    if isinstance(value, _Lazy | _Place):
        return fill(value)
    if isinstance(value, dict):
        return {name: _filled(part, fill) for name, part in value.items()}
    return type(value)(_filled(part, fill) for part in value) if type(value) in (list, tuple) else value


def _same(value: Any) -> Any:
    return value


def _added(additions: tuple[Callable[..., Array], ...], parts: list[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    return tuple(reduce(add, each) for add, each in zip(additions, zip(*parts, strict=True), strict=True))


def _reshaped(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return rows.reshape(len(rows), *shape)


def _moment(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return left.T @ right


def _moments(rows: np.ndarray) -> tuple[np.ndarray]:
    return (rows.T @ rows,)


def _leading(moments: tuple[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return leading(moments[0])


def _own_product(kernel: PointKernel, X: np.ndarray, A: np.ndarray) -> tuple[np.ndarray]:
    return (kernel_product(kernel, X, None, A),)
