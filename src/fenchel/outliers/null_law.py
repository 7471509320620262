"""P-values of outlyingness, from samples without outliers that go through the same statistics."""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.covariance import ledoit_wolf

from fenchel.outliers.scatter import Form, Outlyingness
from fenchel.outliers.sizes import Sizes
from fenchel.outliers.tails import adjusted

__all__ = ["NullLaw", "NullTable", "Simulation"]

_FREEDOMS = (5.0, 10.0, np.inf)  # of Student's distribution; heavier tails than the first are not covered
_NOT_REJECTED = 0.05  # level of the test that a tail is lighter
_TESTS = 40  # samples for each test
_MOST_TESTED = 50  # points of curves in these tests, whose covariance is estimated again for each sample
_ENOUGH_VALUES = 10  # of a row, to tell a tail of single values from a tail of whole rows
_ROWS, _FEWEST, _MOST = 6000, 20, 100  # simulated rows, and limits of the number of samples
_MOST_VALUES = 4e6  # simulated, above which there are _FEWEST // 2 samples
_EXCLUDED = 0.1  # false discovery rate of the fitted tails at which rows do not take part in the law
_LAST_RANK = 10  # the p-value of a score above so many simulated ones is a rank, beyond it is extrapolated
_TAIL = 40  # scores to which the tail is fitted
_LEAST_SLOPE = 0.05  # of the logarithm of the rank in that of the fitted tail
_TINY = float(np.finfo(float).tiny)
_RIDGE = 1e-9  # of the mean variance, added to a singular covariance


@dataclass(frozen=True, eq=False)
class NullTable:
    """Log tails of simulated scores, the most outlying first, which turn log tails into log p-values.

    Examples
    --------
    >>> import numpy as np
    >>> table = NullTable(np.log(np.arange(1, 1000) / 1000))  # exact tails are not changed
    >>> np.exp(table.log_p_values(np.log([0.4999, 1e-5]))).round(6).tolist()
    [0.5, 1e-05]
    """

    tails: np.ndarray  # sorted

    def log_p_values(self, tails: np.ndarray) -> np.ndarray:
        """Return the log rank of each tail among the simulated ones, and a fitted line beyond the tenth of these."""
        n = len(self.tails) + 1
        k = max(_LAST_RANK, min(_TAIL, len(self.tails) // 10))
        rates = np.log(np.arange(1, k + 1) / n)
        slope = max(float(np.polyfit(self.tails[:k], rates, 1)[0]), _LEAST_SLOPE)
        ranks = np.log((np.searchsorted(self.tails, tails, side="right") + 1) / n)
        last = self.tails[_LAST_RANK - 1]
        beyond = np.log(_LAST_RANK / n) + slope * (tails - last)
        return np.where(tails < last, np.minimum(ranks, beyond), ranks)


@dataclass(frozen=True, eq=False)
class NullLaw:
    """Law of correct rows: a covariance, and the degrees of freedom of whole rows and of single values."""

    root: np.ndarray  # (q, q), lower triangular
    row_freedom: float = np.inf
    value_freedom: float = np.inf

    @classmethod
    def of(cls, rows: np.ndarray) -> "NullLaw":
        """Fit the law to rows that are not outlying.

        Tails are as heavy as a sample of this size does not exclude, up to those of five degrees of freedom: a few
        samples say little about tails, and lighter ones would be a guess in favour of outliers.
        """
        n, q = rows.shape
        tested = np.unique(np.linspace(0, q - 1, min(q, _MOST_TESTED)).astype(int))
        part, root, value_freedom = rows[:, tested], _root(rows[:, tested]), np.inf
        of_values, of_rows = _heaviness(part)
        if len(tested) >= _ENOUGH_VALUES:
            value_freedom = next(
                (nu for nu in _FREEDOMS if of_values >= cls(root, np.inf, nu).least_heaviness(n)[0]), np.inf
            )
        least = _least_of_one_output if q == 1 else lambda n, nu: cls(root, nu, value_freedom).least_heaviness(n)[1]
        row_freedom = next((nu for nu in _FREEDOMS if of_rows >= least(n, nu)), np.inf)
        return cls(_root(rows), row_freedom, value_freedom)

    def least_heaviness(self, n: int) -> np.ndarray:
        """Return what most samples of n rows exceed, of values and of rows, (2,)."""
        rng = np.random.default_rng(0)
        return np.quantile([_heaviness(self.draw(n, rng)) for _ in range(_TESTS)], _NOT_REJECTED, axis=0)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n rows."""
        rows = _student(self.value_freedom, (n, len(self.root)), rng) @ self.root.T
        if np.isfinite(self.row_freedom):
            rows /= np.sqrt(rng.chisquare(self.row_freedom, (n, 1)) / self.row_freedom)
        return rows


@dataclass(frozen=True, eq=False)
class Simulation:
    """The samples without outliers that a sample is compared with; drawn when they are first needed.

    With ``sizes`` their noise becomes residuals as that of the sample did.
    """

    outlyingness: Outlyingness
    rows: np.ndarray = field(repr=False)
    sizes: Sizes | None = None

    @cached_property
    def table(self) -> NullTable:
        """The tails of the simulated samples."""
        found, (n, q) = self.outlyingness, self.rows.shape
        is_correct = adjusted(np.exp(found.log_p_values)) > _EXCLUDED
        law = NullLaw.of((self.rows / found.units)[is_correct])
        if self.sizes is None and q == 1:
            return _table_of_one_output(n, law.row_freedom, found.bulk.form)
        return _table(law, n, found.bulk.form, self.sizes)


def _table(law: NullLaw, n: int, form: Form, sizes: Sizes | None) -> NullTable:
    q, rng = len(law.root), np.random.default_rng(0)
    count = int(np.clip(_ROWS // n, _FEWEST, _MOST)) if _FEWEST * n * q < _MOST_VALUES else _FEWEST // 2
    if q == 1 and sizes is None:
        count *= 3  # shared by all samples of this size
    samples = np.stack([law.draw(n, rng) for _ in range(count)])
    samples = samples if sizes is None else sizes.residuals_of(samples)
    tails = [Outlyingness.of(rows, form, is_clean=q > 1).log_tails for rows in samples]
    return NullTable(np.sort(np.concatenate(tails)))


@lru_cache(maxsize=64)
def _table_of_one_output(n: int, freedom: float, form: Form) -> NullTable:
    """Return the table of a single output, which depends on nothing but the size of the sample and the tails."""
    return _table(NullLaw(np.ones((1, 1)), freedom), n, form, None)


@lru_cache(maxsize=256)
def _least_of_one_output(n: int, freedom: float) -> float:
    """Return the least heaviness of a single output, which depends on nothing but the size of the sample."""
    return float(NullLaw(np.ones((1, 1)), freedom).least_heaviness(n)[1])


def _heaviness(rows: np.ndarray) -> tuple[float, float]:
    """Return log ratios of quantiles: of single values relative to the size of their row, and of these sizes.

    Both are from decorrelated rows; neither depends on the largest values, which may be wrong.
    """
    values = solve_triangular(_root(rows), (rows - np.median(rows, axis=0)).T, lower=True).T
    sizes = np.sqrt(np.mean(values**2, axis=1))
    shares = np.quantile(np.abs(values / np.maximum(sizes, _TINY)[:, None]), [0.5, 0.98])
    ends = np.log(np.maximum([*shares, *np.quantile(sizes, [0.5, 0.85])], _TINY))
    return float(ends[1] - ends[0]), float(ends[3] - ends[2])


def _root(rows: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor of the shrunk covariance of rows around their median."""
    centered = rows - np.median(rows, axis=0)
    covariance = ledoit_wolf(centered)[0] if rows.shape[1] > 1 else np.mean(centered**2, axis=0, keepdims=True)
    scale = float(np.trace(covariance)) / len(covariance)
    return np.linalg.cholesky(covariance + (_RIDGE * scale or 1.0) * np.eye(len(covariance)))


def _student(freedom: float, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Return draws of Student's distribution with unit variance."""
    if np.isinf(freedom):
        return rng.standard_normal(shape)
    return np.asarray(rng.standard_t(freedom, shape) * np.sqrt((freedom - 2) / freedom))
