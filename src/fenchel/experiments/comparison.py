"""A published number, a bar or a rival beside ours, and what follows from it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["MISS", "PASS", "REFERENCE", "TIE", "Comparison", "paired", "ratio_error", "standard_error"]

PASS, TIE, MISS, REFERENCE = "PASS", "TIE", "MISS", "reference"
_WIDTH = 2  # standard errors within which nothing is decided


@dataclass(frozen=True)
class Comparison:
    """One published number, bar or rival beside ours.

    Parameters
    ----------
    name : str
        What is compared.
    published : float
        The published number, the bar, or the number of a rival.
    ours : float
        The number of this run.
    tolerance : float
        Relative; with ``at_most`` absolute, such as the published standard deviation.
    note : str, default=""
        What else there is to say.
    at_most : bool, default=False
        Whether ours may lie below as far as it likes.
    standard_error : float or None, default=None
        That of ours over repetitions or test samples; for a rival that of the difference on the same ones. ``None``
        where there is nothing to take it from.
    trivial : float or None, default=None
        The number of the best prediction that does not look at the inputs. Where it passes, the row says nothing of
        the method and is not counted.
    looked_at_test : str, default=""
        The choice that was made or changed after a look at test data, if there was one.
    """

    name: str
    published: float
    ours: float
    tolerance: float
    note: str = ""
    at_most: bool = False
    standard_error: float | None = None
    trivial: float | None = None
    looked_at_test: str = ""

    @property
    def passes(self) -> bool:
        """Whether ours is within the tolerance of the published value."""
        return self._margin(self.ours) >= 0

    @property
    def verdict(self) -> str:
        """``PASS``, ``MISS``, ``TIE`` within two standard errors of the edge, ``reference`` if the row cannot fail."""
        if self.trivial is not None and self._margin(self.trivial) >= 0:
            return REFERENCE
        if self.standard_error is not None and abs(self._margin(self.ours)) <= _WIDTH * self.standard_error:
            return TIE
        return PASS if self.passes else MISS

    def _margin(self, value: float) -> float:
        """Return how far a value lies inside the tolerance; below 0 it lies outside."""
        if self.at_most:
            return self.published + self.tolerance - value
        return self.tolerance * abs(self.published) - abs(value - self.published)


def paired(name: str, theirs: ArrayLike, ours: ArrayLike, note: str = "", looked_at_test: str = "") -> Comparison:
    """Return the mean of a rival beside ours, with the standard error of the differences on the same trials."""
    theirs, ours = np.asarray(theirs, dtype=float), np.asarray(ours, dtype=float)
    gains = theirs - ours
    error = standard_error(gains)
    spread = "" if error is None else f" ± {error:.2g}"
    said = f"lower by {gains.mean():.3g}{spread}, in {np.sum(gains > 0)} of {len(gains)}"
    return Comparison(
        name,
        float(theirs.mean()),
        float(ours.mean()),
        0.0,
        f"{said}; {note}" if note else said,
        at_most=True,
        standard_error=error,
        looked_at_test=looked_at_test,
    )


def standard_error(values: ArrayLike) -> float | None:
    """Return the standard error of a mean, ``None`` for a single value.

    Splits of one sample share most of it: their standard error is too small rather than too large.
    """
    values = np.asarray(values, dtype=float)
    return float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else None


def ratio_error(numerators: ArrayLike, denominators: ArrayLike) -> float | None:
    """Return the standard error of the ratio of two means over the same trials, to first order."""
    above, below = np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)
    error = standard_error(above - above.mean() / below.mean() * below)
    return None if error is None else error / abs(float(below.mean()))
