"""Comparison of our result with a published number, a bar or a competing method, and its verdict."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

__all__ = [
    "FROM_PAPER",
    "KINDS",
    "MISS",
    "OWN_BAR",
    "OWN_REFERENCE",
    "PASS",
    "REFERENCE",
    "TIE",
    "VERDICTS",
    "Comparison",
    "paired",
    "ratio_error",
    "standard_error",
]

PASS, TIE, MISS, REFERENCE = VERDICTS = ("PASS", "TIE", "MISS", "reference")
KINDS = {  # of rows; the first is the headline of a reproduction
    "published": "published target, nothing chosen on test data",
    "published †": "published target, chosen after a look at test data (†)",
    "own reference": "own reference: a result computed for this project, such as that of a competing method",
    "own bar": "own bar: a limit set for this project",
}
FROM_PAPER, _AFTER_A_LOOK, OWN_REFERENCE, OWN_BAR = KINDS
_WIDTH = 2  # standard errors on either side of the limit that count as a tie


@dataclass(frozen=True)
class Comparison:
    """Our result compared with a published number, a bar or the result of a competing method.

    Parameters
    ----------
    name : str
        The quantity.
    published : float
        The published number, the bar, or the result of a competing method.
    ours : float
        Our result.
    tolerance : float
        Relative, or absolute if ``at_most=True``, such as the published standard deviation.
    note : str, default=""
        Further information.
    at_most : bool, default=False
        Whether only values above ``published + tolerance`` miss.
    standard_error : float or None, default=None
        Standard error of our result over repetitions or test samples; for a competing method that of the difference
        on the same ones. ``None`` if it cannot be estimated.
    trivial : float or None, default=None
        Result of the best baseline that ignores the inputs. If it passes, the row says nothing about the method and
        is not counted.
    looked_at_test : str, default=""
        The choice that was made or changed after seeing test data, if any.
    target : {"published", "own reference", "own bar"}, default="own bar"
        Where the target comes from; without a word, the least that can be claimed.
    counted : bool, default=True
        Whether the row counts. ``False`` if another row has the same target.
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
    target: str = OWN_BAR
    counted: bool = True

    @classmethod
    def of_mean(
        cls, name: str, published: float, values: ArrayLike, tolerance: float, note: str = "", **more: Any
    ) -> Self:
        """Compare the mean of our values over trials or test samples; its standard error is theirs."""
        ours = float(np.asarray(values, dtype=float).mean())
        return cls(name, published, ours, tolerance, note, standard_error=standard_error(values), **more)

    @property
    def kind(self) -> str:
        """Kind of the row, a key of ``KINDS``: where its target comes from, and whether test data had been seen."""
        return _AFTER_A_LOOK if self.target == FROM_PAPER and self.looked_at_test else self.target

    @property
    def passes(self) -> bool:
        """Whether our result is within the tolerance."""
        return self._margin(self.ours) >= 0

    @property
    def verdict(self) -> str:
        """``reference`` if not to be counted; ``TIE`` within two standard errors; ``PASS``; ``MISS``."""
        if not self.counted:
            return REFERENCE
        if self.trivial is not None and self._margin(self.trivial) >= 0:
            return REFERENCE
        if self.standard_error is not None and abs(self._margin(self.ours)) <= _WIDTH * self.standard_error:
            return TIE
        return PASS if self.passes else MISS

    def _margin(self, value: float) -> float:
        """Return the distance from a value to the limit of the tolerance, negative outside."""
        if self.at_most:
            return self.published + self.tolerance - value
        return self.tolerance * abs(self.published) - abs(value - self.published)


def paired(name: str, theirs: ArrayLike, ours: ArrayLike, note: str = "", looked_at_test: str = "") -> Comparison:
    """Compare our mean with that of a competing method; the standard error is that of the differences by trial."""
    theirs, ours = np.asarray(theirs, dtype=float), np.asarray(ours, dtype=float)
    gains = theirs - ours
    error = standard_error(gains)
    spread = "" if error is None else f" ± {error:.2g}"
    said = f"lower by {gains.mean():.3g}{spread}, in {np.sum(gains > 0)} of {len(gains)} trials"
    return Comparison(
        name,
        float(theirs.mean()),
        float(ours.mean()),
        0.0,
        f"{said}; {note}" if note else said,
        at_most=True,
        standard_error=error,
        looked_at_test=looked_at_test,
        target=OWN_REFERENCE,
    )


def standard_error(values: ArrayLike) -> float | None:
    """Return the standard error of the mean, ``None`` for a single value.

    Over splits of the same sample, which overlap, it tends to be too small.
    """
    values = np.asarray(values, dtype=float)
    return float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else None


def ratio_error(numerators: ArrayLike, denominators: ArrayLike) -> float | None:
    """Return the first-order standard error of the ratio of two means over the same trials."""
    above, below = np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)
    error = standard_error(above - above.mean() / below.mean() * below)
    return None if error is None else error / abs(float(below.mean()))
