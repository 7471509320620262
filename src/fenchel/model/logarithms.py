"""Logarithms of skewed outputs, and their means back in the units of the outputs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy.optimize import minimize_scalar

from fenchel._array import Array, as_like, host
from fenchel._statistics import weighted_quantile

__all__ = ["Logarithms"]

_LEVELS = (np.arange(50) + 0.5) / 50  # of the errors over which predictions are averaged
_RATES = (-2.0, 7.0)  # natural logarithms of the rates between which that of most likelihood is found
_LEAST_RATE = 0.5  # per deviation; smaller ones bend an output by less than its noise


@dataclass(frozen=True, eq=False)
class Logarithms:
    r"""Logarithms of some outputs.

    .. math:: t = \log(1 + c u), \quad u = \pm (y - o) \ge 0, \qquad t = c u, \quad u < 0.

    Predictions are means. If :math:`e_j` are errors of t, that of y is the mean of :math:`y(t + e_j)` over j, not
    :math:`y(t)`, which is closer to the median [Duan1983]_. Averaged are logarithms of at most ``top``.

    Attributes
    ----------
    rates : array of shape (p,)
        The numbers c, zero for outputs that stay as they are.
    origins : array of shape (p,)
        The numbers o, the smallest value of a sample, or the largest where the sign is negative.
    signs : array of shape (p,)
        1 for outputs with a long tail of large values, -1 for those with a tail of small ones.
    tops : array of shape (p,)
        The largest logarithms.
    errors : array of shape (q, p)
        Errors of the logarithms of held-out samples; q quantiles of each output.
    """

    rates: np.ndarray
    origins: np.ndarray
    signs: np.ndarray
    tops: np.ndarray
    errors: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, Y: np.ndarray, weights: np.ndarray) -> Self:
        """Return the logarithms of most normal likelihood of outputs (n, p), NaN where they were not observed."""
        found = np.array([_likeliest(y[~np.isnan(y)], weights[~np.isnan(y)]) for y in Y.T]).T
        rates, origins, signs = found
        logs = cls(rates, origins, signs, np.zeros_like(rates), np.zeros((1, len(rates))))
        return replace(logs, tops=np.nanmax(logs.encode(Y), axis=0))

    @property
    def is_used(self) -> np.ndarray:
        """Which outputs are transformed, (p,) of bool."""
        return self.rates > 0

    def only(self, kept: np.ndarray) -> Self:
        """Return the logarithms of some of the outputs; the others stay as they are."""
        return replace(self, rates=np.where(kept, self.rates, 0.0))

    def with_errors(self, errors: np.ndarray, seen: np.ndarray, weights: np.ndarray) -> Self:
        """Return the same with quantiles of errors (n, p), of those that were observed."""
        columns = zip(errors.T, seen.T, strict=True)
        found = [[weighted_quantile(one[known], weights[known], q) for q in _LEVELS] for one, known in columns]
        return replace(self, errors=np.array(found).T)

    def encode(self, Y: Array) -> Array:
        """Return outputs (n, p) with their logarithms in place of those that have one."""
        values = host(Y)
        u = self.rates * self.signs * (values - self.origins)
        return as_like(np.where(self.is_used, np.where(u > 0, np.log1p(np.maximum(u, 0.0)), u), values), Y)

    def restored(self, rows: Array) -> Array:
        """Return the outputs (n, p) with these logarithms."""
        return as_like(np.where(self.is_used, self._values(host(rows)), host(rows)), rows)

    def decode(self, rows: Array) -> Array:
        """Return the means of the outputs whose logarithms are ``rows`` plus an error, (n, p)."""
        return self._mean(rows, self._values, host(rows))

    def slopes(self, rows: Array) -> Array:
        """Return the derivatives of the means, (n, p)."""
        return self._mean(rows, self._derivatives, np.ones(tuple(rows.shape)))

    def _mean(self, rows: Array, of: Callable[[np.ndarray], np.ndarray], others: np.ndarray) -> Array:
        total = sum(of(host(rows) + error) for error in self.errors)
        return as_like(np.where(self.is_used, total / len(self.errors), others), rows)

    def _values(self, t: np.ndarray) -> np.ndarray:
        t = np.where(self.is_used, np.minimum(t, self.tops), 0.0)
        u = np.where(t > 0, np.expm1(np.maximum(t, 0.0)), t)
        return np.asarray(self.origins + self.signs * u / np.where(self.is_used, self.rates, 1.0))

    def _derivatives(self, t: np.ndarray) -> np.ndarray:
        slopes = np.where(
            t > 0, np.exp(np.where(self.is_used, np.clip(t, 0.0, np.maximum(self.tops, 0.0)), 0.0)), 1.0
        ) * (t <= self.tops)
        return np.asarray(self.signs * slopes / np.where(self.is_used, self.rates, 1.0))


def _likeliest(y: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    """Return rate, origin and sign for one output; a rate of zero if it is not skewed."""
    shares = weights / np.sum(weights)
    deviations = y - shares @ y
    size = float(np.sqrt(shares @ deviations**2))
    sign = 1.0 if shares @ deviations**3 >= 0 else -1.0
    origin = float(np.min(sign * y) * sign)
    if size <= 64 * np.finfo(float).eps * float(np.max(np.abs(y))):
        return 0.0, origin, sign
    u = sign * (y - origin) / size

    def badness(log_rate: float) -> float:
        t = np.log1p(np.exp(log_rate) * u)
        spread = shares @ (t - shares @ t) ** 2
        return float(0.5 * np.log(spread) - log_rate + shares @ t)  # the derivative is rate / exp(t)

    log_rate = float(minimize_scalar(badness, bounds=_RATES, method="bounded").x)
    return (np.exp(log_rate) / size if np.exp(log_rate) > _LEAST_RATE else 0.0), origin, sign
