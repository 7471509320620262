"""Argument checks, whose messages all state the requirement, the value received and the remedy."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, time, timedelta
from importlib import import_module
from numbers import Integral, Real

import numpy as np

from fenchel._array import (
    Array,
    Frame,
    Outputs,
    as_like,
    free_device_memory,
    has_shape,
    host,
    is_array,
    is_sparse,
    namespace,
)
from fenchel._optional import require
from fenchel.exceptions import IndefiniteError, NotFeasibleError

__all__ = [
    "Interval",
    "Options",
    "check_array",
    "check_finite",
    "check_memory",
    "check_no_overflow",
    "check_parameter",
    "check_parameters",
    "check_psd",
    "checked_before",
    "free_memory",
    "not_times",
    "outputs_like",
    "require",
    "shown",
    "unmasked",
]

_ARE_CHECKED: ContextVar[bool] = ContextVar("_ARE_CHECKED", default=False)  # whether entries are known to be finite
_LONGEST = 80  # characters of a value in a message
_MOST = 1e150  # largest number whose square is finite in float64


@dataclass(frozen=True)
class Interval:
    """Requirement: a real number (or an integer) between two bounds; ``closed`` names the ends that are included."""

    low: float
    high: float
    closed: str = "neither"
    integer: bool = False
    also: tuple[object, ...] = ()

    def __str__(self) -> str:
        left = "[" if self.closed in ("left", "both") else "("
        right = "]" if self.closed in ("right", "both") else ")"
        kind = "an int" if self.integer else "a float"
        text = f"{kind} in {left}{self.low:g}, {self.high:g}{right}"
        return text + "".join(f" or {other!r}" for other in self.also)

    def accepts(self, value: object) -> bool:
        """Whether the value meets the requirement."""
        if any(value is other or (isinstance(value, str) and value == other) for other in self.also):
            return True
        if isinstance(value, bool) or not isinstance(value, Integral if self.integer else Real):
            return False
        try:
            number = float(value)
        except OverflowError:  # an int beyond the largest float
            number = math.inf if isinstance(value, Integral) and int(value) > 0 else -math.inf
        if math.isnan(number):
            return False
        above = number >= self.low if self.closed in ("left", "both") else number > self.low
        below = number <= self.high if self.closed in ("right", "both") else number < self.high
        return above and below


@dataclass(frozen=True)
class Options:
    """Requirement: one of a few values."""

    values: tuple[object, ...]

    def __str__(self) -> str:
        return "one of " + ", ".join(repr(value) for value in self.values)

    def accepts(self, value: object) -> bool:
        """Whether the value meets the requirement."""
        return any(value is wanted or (type(value) is type(wanted) and value == wanted) for wanted in self.values)


def check_parameter(owner: str, name: str, value: object, wanted: Interval | Options) -> None:
    """Raise the standard message if a parameter does not meet its requirement."""
    if wanted.accepts(value):
        return
    is_bad_value = isinstance(wanted, Options) or isinstance(value, Real | str)
    error = ValueError if is_bad_value else TypeError
    raise error(f"The {name!r} parameter of {owner} must be {wanted}. Got {shown(value)} instead.")


def check_parameters(owner: object, limits: Mapping[str, Interval | Options]) -> None:
    """Raise the standard message if a parameter of an estimator or a component does not meet its requirement."""
    for name, wanted in limits.items():
        check_parameter(type(owner).__name__, name, getattr(owner, name), wanted)


def shown(value: object) -> str:
    """Return what came, for a message: the representation, shortened to one line, or the shape of an array."""
    if has_shape(value) and value.shape:
        return f"an array of shape {tuple(value.shape)}"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no int of more than 4300 digits
        return f"an {type(value).__name__} of thousands of digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({type(value).__name__})"


def unmasked(values: Outputs, name: str) -> Outputs:
    """Return a masked array of numbers as floats with NaN where it is masked, and anything else as it is."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return np.asarray(values.data)
    if values.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold numbers where entries are masked. Got dtype {values.dtype}. Drop the masked entries, or "
            "fill them."
        )
    return np.ma.filled(values.astype(np.result_type(values.dtype, np.float32)), np.nan)


def not_times(values: Outputs, name: str) -> Outputs:
    """Return the values; raise if they are dates, times or durations."""
    kinds = _kinds(values)
    is_time = not kinds.isdisjoint("mM")
    if isinstance(values, Frame) and is_time:
        columns = [
            repr(name) for name, dtype in zip(values.columns, values.dtypes, strict=True) if _kind(dtype) in "mM"
        ]
        raise TypeError(
            f"{name} must hold numbers. These columns hold dates, times or durations: {', '.join(columns)}. Convert "
            "them to numbers in a unit of your choice, such as days; fenchel.estimators.TableRegressor does so."
        )
    if "O" in kinds or isinstance(values, list):
        entries = np.asarray(values, dtype=object).ravel() if not isinstance(values, list) else values
        is_time = is_time or any(isinstance(entry, date | time | timedelta | np.datetime64) for entry in entries)
    if is_time:
        raise TypeError(
            f"{name} must hold numbers. Got dates, times or durations. Convert them to numbers in a unit of your "
            f"choice, such as days: ({name} - {name}.min()) / np.timedelta64(1, 'D')."
        )
    return values


def _kinds(values: Outputs) -> set[str]:
    """Return the kinds of the entries of an array, or of the columns of a table, as NumPy's letters."""
    dtypes = [values.dtype] if is_array(values) else values.dtypes if isinstance(values, Frame) else []
    return set(map(_kind, dtypes))


def _kind(dtype: object) -> str:
    """Return NumPy's letter of a type of NumPy, pandas or polars; a hyphen if there is none."""
    is_temporal = getattr(dtype, "is_temporal", bool)  # of polars
    return str(getattr(dtype, "kind", "M" if is_temporal() else "-"))


def check_array(array: Array, name: str, ndim: int | tuple[int, ...] = 2, takes_sparse: bool = False) -> Array:
    """Return the array as a finite floating array with the required dimensions, or raise."""
    xp = namespace(array)
    if is_sparse(array) and not takes_sparse:
        raise TypeError(
            f"{name} must be dense here. Got a sparse matrix: pass {name}.toarray(), or use a kernel that takes sparse "
            "inputs, such as Linear(), Gaussian() or Tanimoto()."
        )
    dims = (ndim,) if isinstance(ndim, int) else ndim
    if array.ndim not in dims:
        wanted = " or ".join(f"{d}-dimensional" for d in dims)
        raise ValueError(f"{name} must be {wanted}. Got an array of shape {tuple(array.shape)} instead.")
    if array.shape[0] == 0:
        raise ValueError(f"{name} must have at least one sample. Got shape {tuple(array.shape)} instead.")
    if not xp.isdtype(array.dtype, "real floating"):
        if not xp.isdtype(array.dtype, ("bool", "integral")):
            raise TypeError(f"{name} must hold real numbers. Got dtype {array.dtype} instead.")
        array = xp.astype(array, xp.float64)
    return array if _ARE_CHECKED.get() else check_finite(array, name)


@contextmanager
def checked_before(are_checked: bool) -> Iterator[None]:
    """Let ``check_array`` take the entries of arrays as finite, in this thread, if they were checked before."""
    token = _ARE_CHECKED.set(are_checked)
    try:
        yield
    finally:
        _ARE_CHECKED.reset(token)


def check_finite(array: Array, name: str) -> Array:
    """Return the array if it is finite, or raise with the index of the first entry that is not."""
    xp = namespace(array)
    if bool(xp.all(xp.isfinite(array))):
        return array
    if is_sparse(array):
        raise ValueError(f"{name} must be finite. It contains NaN or infinity.")
    is_nan = host(xp.isnan(array))
    kind, places = ("NaN", is_nan) if is_nan.any() else ("infinity", host(xp.isinf(array)))
    advice = "Correct it, or drop those samples."
    if is_nan.any():
        advice = "Impute missing values, or drop those samples."
        advice += " MultipleKernel takes whole groups of columns that are missing." if name == "X" else ""
    first = ", ".join(map(str, np.argwhere(places)[0]))
    raise ValueError(f"{name} must be finite. It contains {kind}, the first at index [{first}]. {advice}")


def outputs_like(values: Array, like: Array, name: str) -> Array:
    """Return outputs in the library and dtype of ``like``; raise if they or their squares overflow or underflow.

    Non-finite values are returned unchanged.
    """
    xp, most = namespace(values), min(float(namespace(like).finfo(like.dtype).max), _MOST)
    if not xp.isdtype(values.dtype, "real floating") or float(xp.finfo(values.dtype).max) <= most:
        return as_like(values, like)
    sizes = xp.abs(values)
    known = xp.where(xp.isfinite(sizes), sizes, xp.zeros_like(sizes))
    if 0 < (highest := float(xp.max(known))) < 1 / _MOST:
        raise ValueError(
            f"{name} must have entries above {1 / _MOST:.0e} in absolute value, whose squares do not underflow. The "
            f"largest is {highest:.1e}. Multiply {name} by a constant."
        )
    is_over = xp.isfinite(sizes) & (sizes > most)
    if bool(xp.any(is_over)):
        largest = float(xp.max(xp.where(is_over, sizes, xp.zeros_like(sizes))))
        raise ValueError(
            f"The entries of {name} must be at most {most:.1e} in absolute value, since the fit is in {like.dtype}. "
            f"Got {largest:.1e}. Divide {name} by a constant."
        )
    return as_like(values, like)


def check_psd(matrix: Array, name: str, rtol: float = 0.0) -> Array:
    """Return the matrix if it is symmetric and positive semidefinite, to ``rtol`` or the round-off of its dtype."""
    xp = namespace(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be a square matrix. Got shape {tuple(matrix.shape)} instead.")
    n = matrix.shape[0]
    tol = max(rtol, 64 * n * float(xp.finfo(matrix.dtype).eps))
    size = float(xp.max(xp.abs(matrix)))
    skew = float(xp.max(xp.abs(matrix - matrix.T)))
    if skew > tol * size:
        raise ValueError(
            f"{name} must be symmetric. It differs from its transpose by up to {skew:.3e} (its largest entry is "
            f"{size:.3e}). If that is round-off, pass (K + K.T) / 2, here and to predict."
        )
    values = xp.linalg.eigvalsh((matrix + matrix.T) / 2)
    low, high = float(values[0]), float(values[-1])
    top = max(abs(high), abs(low), size)
    if low < -tol * top - 1e-300:
        hint = ""
        if low >= -64 * n * float(xp.finfo(xp.float32).eps) * top:
            hint = f" A defect of this size comes from float32: compute the matrix in float64, or add {-low:.1e} * I."
        raise IndefiniteError(
            f"{name} must be positive semidefinite. Its most negative eigenvalue is {low:.3e} "
            f"(the largest is {high:.3e}). Use a PSD kernel, or clip the negative eigenvalues first.{hint}"
        )
    return matrix


def check_no_overflow(matrix: Array, name: str) -> None:
    """Raise if a matrix computed from finite data has non-finite entries."""
    xp = namespace(matrix)
    with np.errstate(all="ignore"):
        is_finite = math.isfinite(float(xp.sum(matrix))) or bool(xp.all(xp.isfinite(matrix)))
    if not is_finite:
        largest = float(xp.finfo(matrix.dtype).max)
        raise ValueError(f"{name} must be finite. Entries exceed {largest:.1e} ({matrix.dtype}): scale the inputs.")


def check_memory(
    wanted: int, what: str, advice: str, lighter: Mapping[str, int] | None = None, like: Array | None = None
) -> None:
    """Raise before an allocation that exceeds the free memory on the device of ``like``; suggest alternatives."""
    free = free_memory(like)
    if free is not None and wanted > free:
        ways = {way: size for way, size in (lighter or {}).items() if size <= free}
        advice += "".join(f", or use {way}, which needs {size / 2**30:.2g} GiB" for way, size in ways.items())
        raise NotFeasibleError(
            f"{what} needs about {wanted / 2**30:.1f} GiB; {free / 2**30:.1f} GiB of memory is free. {advice}."
        )


def free_memory(like: Array | None = None) -> int | None:
    """Return the free memory in bytes on the device of an array, or ``None`` if it is unknown."""
    on_device = None if like is None else free_device_memory(like)
    return _free_memory() if on_device is None else on_device


def _free_memory() -> int | None:
    """Return the free memory in bytes, or ``None`` if it is unknown."""
    limits = [free for free in (_free_of_machine(), _free_of_group(), _free_of_process()) if free is not None]
    return min(limits, default=None)


def _free_of_machine() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _free_of_process() -> int | None:
    """Return what remains of the limit on the address space of this process, as ``ulimit -v`` sets it."""
    try:
        resource = import_module("resource")  # Unix only
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(_first_word("/proc/self/statm")) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(0, limit - used)


def _free_of_group(folder: str = "/sys/fs/cgroup") -> int | None:
    """Return the memory that a container may still use, including its file cache, which can be reclaimed."""
    try:
        limit, used = (int(_first_word(f"{folder}/memory.{name}")) for name in ("max", "current"))
        with open(f"{folder}/memory.stat", encoding="ascii") as lines:
            cached = next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)
        return limit - used + cached
    except (OSError, ValueError):  # no such group, or no limit ("max")
        return None


def _first_word(file: str) -> str:
    with open(file, encoding="ascii") as stream:
        return stream.read().split()[0]
