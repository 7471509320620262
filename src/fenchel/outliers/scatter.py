"""Distances of rows of residuals from their bulk: in size, shape, roughness, and at single points."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from fenchel.data.content import contents, shuffled
from fenchel.outliers.tails import QUARTILE, log_tails, standardized

__all__ = ["Bulk", "Outlyingness"]

_FOLDS = 5  # each row is compared with the bulk of the other four fifths
_SHARES = (0.5, 0.5, 0.4, 0.3)  # fraction of rows excluded from the bulk in the first rounds
_SIGN_ROUNDS = 2  # rounds among these that use directions alone
_ROUNDS = 12
_CLEAN_ROUNDS = 3  # of a sample without outliers, which needs none of the first rounds
_LEFT_OUT = 0.2  # p-value below which a row is excluded from the bulk in later rounds
_TWO_SIDED = 8  # minimum number of components of a band that is outlying when small, too
_ROUND_OFF = 1e-10
_DIGITS = 9  # of residuals in robust deviations, by which rows are ordered: those of a perfect fit are round-off
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Form:
    """Form of the rows, which determines their statistics."""

    shape: tuple[int, ...]  # of one row
    is_curve: bool
    is_marginal: bool  # rows are outputs rather than residuals of a model: small and smooth ones are outlying too


@dataclass(frozen=True, eq=False)
class Bulk:
    """Centre, principal axes and pointwise scales of the rows in the bulk."""

    form: Form
    center: np.ndarray  # (q,)
    axes: np.ndarray  # (q, r)
    scales: np.ndarray  # (2, r): below and above the centre
    least: float  # squared distances below this are round-off
    has_rest: bool  # whether there is variance beyond the axes
    values: tuple[np.ndarray, np.ndarray]  # median and scale of each value
    increments: tuple[np.ndarray, np.ndarray]  # the same for the differences between neighbouring points

    @classmethod
    def of(cls, rows: np.ndarray, form: Form, rank: int, by_signs: bool = False) -> "Bulk":
        """Return the bulk of rows (n, q); ``by_signs`` uses only directions, and medians instead of moments."""
        center = np.median(rows, axis=0) if by_signs else rows.mean(axis=0)
        centered = rows - center
        squares = np.sum(centered**2, axis=1)
        least = max(_ROUND_OFF * float(np.median(squares)), _ROUND_OFF**2)
        axes = _principal_axes(centered / np.sqrt(np.maximum(squares, least))[:, None] if by_signs else centered, rank)
        scores = centered @ axes
        middle = np.median(scores, axis=0)
        sides = [_one_sided(sign * (scores - middle), by_signs) for sign in (-1, 1)]
        scales = np.maximum(np.stack(sides), np.sqrt(least / rows.shape[1]))
        moments = _median_and_scale(rows), _median_and_scale(_increments(rows, form.shape))
        return cls(form, center + axes @ middle, axes, scales, least, axes.shape[1] < min(rows.shape), *moments)

    def statistics(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the statistics of rows by name, each (n,), on scales on which the bulk is nearly normal."""
        centered = rows - self.center
        scores = centered @ self.axes
        squares = (scores / np.where(scores < 0, *self.scales)) ** 2
        energies = {_name(band): np.mean(squares[:, slice(*band)], axis=1) for band in self.bands}
        if len(self.bands) > 1:
            energies["all components"] = np.mean(squares, axis=1)
        if self.has_rest:
            rest = np.sum(centered**2, axis=1) - np.sum(scores**2, axis=1)
            energies["remainder"] = np.maximum(rest, self.least) / self.least
        if self.form.is_marginal:  # the size of residuals depends on the inputs: its tails are too heavy
            median, scale = self.values
            energies["size"] = np.mean(((rows - median) / scale) ** 2, axis=1)
        found = {name: np.cbrt(energy) for name, energy in energies.items()}  # Wilson and Hilferty
        if rows.shape[1] > 1:
            found["largest value"] = _log_largest(rows, self.values)
        if self.form.is_curve and self.form.shape[0] > 1:
            found["largest increment"] = _log_largest(_increments(rows, self.form.shape), self.increments)
        half = squares.shape[1] // 2
        if self.form.is_marginal and half >= _TWO_SIDED:
            rough = energies["remainder"] if self.has_rest else np.mean(squares[:, half:], axis=1)
            found["roughness"] = np.log(
                np.maximum(rough, _TINY) / np.maximum(np.mean(squares[:, :half], axis=1), _TINY)
            )
        return found

    @property
    def bands(self) -> list[tuple[int, int]]:
        """First and last component of each band, of widths 1, 2, 4, ...; a last band less than half full is merged."""
        found, first, width, rank = list[tuple[int, int]](), 0, 1, self.axes.shape[1]
        while first < rank:
            last = min(first + width, rank)
            if found and 2 * (last - first) < width:
                found[-1] = (found[-1][0], last)
            else:
                found.append((first, last))
            first, width = last, 2 * width
        return found

    @property
    def two_sided(self) -> set[str]:
        """Statistics that are outlying when they are small, too."""
        if not self.form.is_marginal:
            return set()
        return {_name(band) for band in self.bands if band[1] - band[0] >= _TWO_SIDED} | {
            "all components",
            "remainder",
            "roughness",
        }


@dataclass(frozen=True, eq=False)
class Outlyingness:
    """Statistics of rows as normal deviates, and the bulk that they are compared with."""

    names: list[str]
    deviates: np.ndarray  # (n, k)
    statistics: np.ndarray  # (m, k): of the rows that others are compared with
    bulk: Bulk
    units: np.ndarray  # (q,): of each output, or of each channel of curves
    observed: tuple[np.ndarray, np.ndarray] | None = None  # median and scale of the observed values, if some are not

    @classmethod
    def of(cls, rows: np.ndarray, form: Form, is_clean: bool = False, seen: np.ndarray | None = None) -> "Outlyingness":
        """Compare each row (n, q) with the bulk of the rows outside its fold.

        Rows that lie far out are excluded from the bulk. It starts with the nearest half of the rows, by directions
        alone, and grows until it contains all rows whose p-value is not small. If the sample ``is_clean``, it starts
        with all rows. ``seen`` (n, q) are the observed values; others are filled in, and too near to the median.
        """
        n, units = len(rows), _units(rows, form)
        rows = rows / units
        folds = np.array_split(shuffled(contents(np.round(rows, _DIGITS))), min(_FOLDS, n))
        counts = np.ones(n, dtype=bool)
        first = len(_SHARES) if is_clean else 0
        for done in range(first, first + (_CLEAN_ROUNDS if is_clean else _ROUNDS)):
            rank, before = _rank(rows[counts]), counts
            parts = []
            for fold in folds:
                inside = counts.copy()
                inside[fold] = False
                parts.append(Bulk.of(rows[inside], form, rank, done < _SIGN_ROUNDS).statistics(rows[fold]))
            names = list(parts[0])
            statistics = np.empty((n, len(names)))
            for fold, part in zip(folds, parts, strict=True):
                statistics[fold] = np.stack([part[name] for name in names], axis=1)
            bulk = Bulk.of(rows[counts], form, rank)
            found = cls(names, _deviates(statistics, names, bulk), statistics, bulk, units)
            counts = _counting(found.log_p_values, done)
            if done > len(_SHARES) and np.array_equal(counts, before):
                break
        if seen is None or seen.all():
            return found
        known = np.where(seen | ~seen[before].any(axis=0), rows, np.nan)[before]
        return replace(found, observed=_median_and_scale(known))

    def of_new(self, rows: np.ndarray) -> "Outlyingness":
        """Compare new rows with the bulk."""
        statistics = np.stack(list(self.bulk.statistics(rows / self.units).values()), axis=1)
        return replace(self, deviates=_deviates(statistics, self.names, self.bulk, self.statistics))

    @property
    def scores(self) -> np.ndarray:
        """Largest deviation of each row, (n,)."""
        return np.asarray(np.max(self.deviates, axis=1))

    @property
    def own_scores(self) -> np.ndarray:
        """The same of the rows to which others are compared."""
        return np.asarray(np.max(_deviates(self.statistics, self.names, self.bulk), axis=1))

    def at_points(self, rows: np.ndarray) -> np.ndarray:
        """Return each value in robust deviations at its point or output, (n, q)."""
        median, scale = self.bulk.values if self.observed is None else self.observed
        return np.asarray((rows / self.units - median) / scale)

    @property
    def log_p_values(self) -> np.ndarray:
        """Logarithms of the p-values of the fitted tails, (n,)."""
        return np.fmin(self.log_tails, 0.0)  # 0 where nothing was observed

    @property
    def log_tails(self) -> np.ndarray:
        """The same before Bonferroni's bound is cut at one, so that all scores differ, (n,)."""
        n_tests = len(self.names) + len(self.bulk.two_sided & set(self.names))
        return log_tails(self.deviates, n_tests, is_heavy=not self.bulk.form.is_marginal)


def _counting(log_p_values: np.ndarray, done: int) -> np.ndarray:
    """Return which rows belong to the bulk in the next round, at least half of them."""
    limit = np.quantile(log_p_values, _SHARES[done]) if done < len(_SHARES) else np.log(_LEFT_OUT)
    return np.asarray(log_p_values >= min(float(limit), float(np.median(log_p_values))))


def _deviates(statistics: np.ndarray, names: list[str], bulk: Bulk, reference: np.ndarray | None = None) -> np.ndarray:
    """Return statistics as normal deviates relative to their own central part, or to that of a reference sample."""
    reference = statistics if reference is None else reference
    columns = []
    for name, values, known in zip(names, statistics.T, reference.T, strict=True):
        deviates = standardized(values, known)
        columns.append(np.abs(deviates) if name in bulk.two_sided else deviates)
    return np.stack(columns, axis=1)


def _units(rows: np.ndarray, form: Form) -> np.ndarray:
    """Return a robust scale of each output, or of each channel of curves; the largest distance if it is zero."""
    distances = np.abs(rows - np.median(rows, axis=0))
    scales = [np.median(distances, axis=0) / QUARTILE, np.max(distances, axis=0), np.ones(rows.shape[1])]
    if form.is_curve:
        channels = [scale.reshape(form.shape[0], -1) for scale in scales]
        scales = [np.broadcast_to(np.median(one, axis=0), one.shape).ravel() for one in channels]
    return np.where(scales[0] > 0, scales[0], np.where(scales[1] > 0, scales[1], scales[2]))


def _name(band: tuple[int, int]) -> str:
    first, last = band[0] + 1, band[1]
    return f"component {first}" if first == last else f"components {first}-{last}"


def _rank(rows: np.ndarray) -> int:
    """Return the number of principal components with positive variance, at most two fifths of the number of rows."""
    values = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    return max(1, min(int(np.sum(values > _ROUND_OFF * values[0])), 2 * len(rows) // 5))


def _principal_axes(rows: np.ndarray, rank: int) -> np.ndarray:
    """Return the leading principal axes of centred rows, (q, rank)."""
    n, q = rows.shape
    if n < q:
        return np.linalg.svd(rows, full_matrices=False)[2][:rank].T
    return eigh(rows.T @ rows, subset_by_index=(q - min(rank, q), q - 1))[1][:, ::-1]


def _one_sided(scores: np.ndarray, is_robust: bool) -> np.ndarray:
    """Return the root mean square of the positive scores of each component, or a robust scale of all."""
    if is_robust:
        return np.asarray(np.median(np.abs(scores), axis=0) / QUARTILE)
    is_above = scores > 0
    sums = np.sum(np.where(is_above, scores, 0.0) ** 2, axis=0)
    return np.asarray(np.sqrt(sums / np.maximum(1, is_above.sum(axis=0))))


def _increments(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the differences between neighbouring points of curves, or between outputs."""
    return np.diff(rows.reshape(len(rows), *shape), axis=1).reshape(len(rows), -1)


def _median_and_scale(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = np.nanmedian if np.isnan(rows).any() else np.median
    median = middle(rows, axis=0)
    scale = middle(np.abs(rows - median), axis=0) / QUARTILE
    least = _ROUND_OFF * float(np.median(scale)) if scale.size else 0.0
    return median, np.maximum(scale, max(least, _ROUND_OFF))


def _log_largest(rows: np.ndarray, moments: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the logarithm of the largest distance of a row to the median, in units of the scales."""
    median, scale = moments
    return np.asarray(np.log(np.maximum(np.max(np.abs(rows - median) / scale, axis=1), _ROUND_OFF)))
