"""Functions on grids of one or two dimensions: orthonormal bases, resampling and missing values."""

from dataclasses import dataclass

import numpy as np
from scipy.fft import dct
from scipy.interpolate import make_interp_spline

from fenchel._array import Array, as_like, host, namespace

__all__ = ["BASES", "INTERPOLATIONS", "FieldBasis", "basis_of", "completed", "resampled"]

BASES = ("points", "pca", "cosine", "fourier")
INTERPOLATIONS = ("linear", "cubic", "fourier")
_RANK = 64  # maximum number of components for imputation, and at most a quarter of all components
_ROUNDS = 50  # maximum number of imputation rounds
_CHANGE = 1e-3  # relative change of all values at which imputation stops


@dataclass(frozen=True)
class FieldBasis:
    """Orthonormal basis that maps rows of function values to coordinates."""

    center: Array | None  # (d,)
    functions: Array | None  # (d, k); None: the values themselves

    unit: Array | None = None  # (d,), by which values are divided first

    def encode(self, rows: Array) -> Array:
        """Return the coordinates (n, k) of rows (n, d)."""
        rows = in_units(rows, self.unit)
        rows = rows if self.center is None else rows - as_like(self.center, rows)
        return rows if self.functions is None else rows @ as_like(self.functions, rows)

    def decode(self, coordinates: Array) -> Array:
        """Return the rows that have these coordinates."""
        rows = coordinates if self.functions is None else coordinates @ as_like(self.functions, coordinates).T
        rows = rows if self.center is None else rows + as_like(self.center, rows)
        return rows if self.unit is None else rows * as_like(self.unit, rows)


def in_units(rows: Array, unit: Array | None) -> Array:
    """Return rows divided by the units of their values."""
    return rows if unit is None else rows / as_like(unit, rows)


def channel_units(rows: Array, counts: Array, n_channels: int) -> Array | None:
    """Return the unit of each value of rows (n, d), ``None`` for a single channel.

    It is the standard deviation of the channel around the pointwise mean, 1 for a channel without any; NaN is ignored.
    """
    if n_channels == 1:
        return None
    given = host(rows)
    weights, values = host(counts)[:, None] * ~np.isnan(given), np.nan_to_num(given.astype(np.float64))
    totals = np.sum(weights, axis=0)
    center = np.sum(weights * values, axis=0) / np.where(totals > 0, totals, 1.0)
    squares = np.sum(weights * (values - center) ** 2, axis=0).reshape(-1, n_channels).sum(axis=0)
    deviations = np.sqrt(squares / totals.reshape(-1, n_channels).sum(axis=0))
    sizes = np.max(np.abs(values), axis=0).reshape(-1, n_channels).max(axis=0)
    is_there = deviations > 64 * np.finfo(given.dtype).eps * sizes
    return as_like(np.tile(np.where(is_there, deviations, 1.0), len(center) // n_channels), rows)


def basis_of(rows: Array, counts: Array, shape: tuple[int, ...], kind: str, n_components: float | None) -> FieldBasis:
    """Return the basis of a sample of functions on a grid of some shape, whose last axis has channels.

    Functions are rows of values with sample weights ``counts`` (n,).
    """
    if kind == "points":
        return FieldBasis(None, None)
    if kind == "pca":
        return _principal(rows, counts, n_components)
    axes = [_axis_functions(size, kind) for size in shape[:-1]]
    functions, frequencies = np.eye(1), np.zeros(1)
    for each, frequency in axes:
        functions = np.kron(functions, each)
        frequencies = np.add.outer(frequencies, frequency**2).ravel()
    order = np.argsort(frequencies, kind="stable")[: None if n_components is None else int(n_components)]
    return FieldBasis(None, as_like(np.kron(functions[:, order], np.eye(shape[-1])), rows))


def _spectrum(rows: Array, counts: Array) -> tuple[Array, Array, Array]:
    """Return the mean, the variances of the principal components, and the components as rows."""
    xp, total = namespace(rows), float(namespace(rows).sum(counts))
    center = counts @ rows / total
    values, vectors = xp.linalg.svd((rows - center) * xp.sqrt(counts)[:, None], full_matrices=False)[1:]
    return center, values**2 / total, vectors


def _principal(rows: Array, counts: Array, n_components: float | None) -> FieldBasis:
    """Return the mean and the leading principal components; a number below 1 is a fraction of the variance."""
    center, variances, vectors = _spectrum(rows, counts)
    powers = host(variances)
    count = max(1, int(np.sum(powers > powers[0] * np.finfo(powers.dtype).eps ** 2 * len(powers))))
    if n_components is not None and n_components < 1:
        count = min(count, int(np.searchsorted(np.cumsum(powers) / max(np.sum(powers), 1e-300), n_components)) + 1)
    elif n_components is not None:
        count = min(count, int(n_components))
    return FieldBasis(center, vectors[:count, :].T)


def _axis_functions(size: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return an orthonormal basis of functions on the points of one axis, (size, size), and their frequencies."""
    if kind == "cosine":
        return dct(np.eye(size), norm="ortho", axis=1), np.arange(size) / 2
    order = (np.arange(size) + 1) // 2
    phase = 2 * np.pi * np.outer(np.arange(size), order) / size
    is_sine = (np.arange(size) % 2 == 0) & (order > 0)
    functions = np.where(is_sine, np.sin(phase), np.cos(phase))
    return functions / np.linalg.norm(functions, axis=0), order.astype(float)


def resampled(fields: Array, shape: tuple[int, ...], kind: str) -> Array:
    """Return functions (n, *grid, channels) at the points of a grid of another shape.

    Points are equally spaced over the domain and include both ends; for periodic functions, ``"fourier"``, the last end
    is excluded.
    """
    xp = namespace(fields)
    for axis, size in enumerate(shape, start=1):
        if fields.shape[axis] != size:
            matrix = as_like(_resampling(int(fields.shape[axis]), size, kind), fields)
            fields = xp.moveaxis(xp.tensordot(matrix, fields, axes=((1,), (axis,))), 0, axis)
    return fields


def _resampling(old: int, new: int, kind: str) -> np.ndarray:
    """Return the matrix (new, old) that interpolates along one axis."""
    if old == 1:
        return np.ones((new, 1))
    if kind == "fourier":
        points, order = np.arange(new) / new, np.fft.fftfreq(old, 1 / old)
        waves = np.exp(2j * np.pi * np.outer(points, order))
        if old % 2 == 0:
            waves[:, old // 2] = np.cos(np.pi * old * points)
        found: np.ndarray = (waves @ np.fft.fft(np.eye(old)) / old).real
        return found
    degree = min(3 if kind == "cubic" else 1, old - 1)
    values: np.ndarray = make_interp_spline(np.linspace(0, 1, old), np.eye(old), degree)(np.linspace(0, 1, new))
    return values


def completed(rows: Array, counts: Array) -> Array:
    """Impute NaN in rows by conditional means under a Gaussian model with few principal components.

    Rows have sample weights ``counts`` (n,). The model and the missing values are updated alternately, as in
    [Tipping1999]_, but the variance of the missing values is ignored.
    """
    xp = namespace(rows)
    seen = ~xp.isnan(rows)
    if bool(xp.all(seen)):
        return rows
    totals = counts @ xp.astype(seen, rows.dtype)
    if bool(xp.any(totals == 0)):
        point = int(np.flatnonzero(host(totals) == 0)[0])
        raise ValueError(
            f"Each point of y must have an observed value. {int(xp.sum(totals == 0))} of {len(totals)} are NaN in all "
            f"samples, the first at place {point} of a flattened function. Set them to a number, such as 0."
        )
    rank = max(1, min(_RANK, min(rows.shape) // 4))
    values = xp.where(seen, rows, xp.zeros_like(rows))
    filled = xp.where(seen, rows, (counts @ values / totals)[None, :])
    for _ in range(_ROUNDS):
        after = xp.where(seen, rows, _conditional_means(filled, xp.astype(seen, rows.dtype), counts, rank))
        change = float(xp.sqrt(xp.sum((after - filled) ** 2) / xp.sum(after**2)))
        filled = after
        if change <= _CHANGE:
            break
    return filled


def _conditional_means(filled: Array, seen: Array, counts: Array, rank: int) -> Array:
    """Return the conditional means of the rows given the observed values, under a Gaussian fit to the filled sample."""
    xp, (n, p) = namespace(filled), filled.shape
    center, variances, vectors = _spectrum(filled, counts)
    floor = float(variances[0]) * 1e-10 or 1.0
    noise = max(float(xp.sum(variances[rank:])) / max(p - rank, 1), floor)
    basis = vectors[:rank, :].T * xp.sqrt(variances[:rank])  # (p, rank), of standard scores
    pairs = xp.reshape(basis[:, :, None] * basis[:, None, :], (p, rank * rank))
    systems = xp.reshape(seen @ pairs, (n, rank, rank)) + noise * as_like(np.eye(rank), filled)
    scores = xp.linalg.solve(systems, ((seen * (filled - center)) @ basis)[:, :, None])[:, :, 0]
    return center + scores @ basis.T
