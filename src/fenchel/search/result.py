"""Errors of held-out samples for the pairs of a grid of losses and lam."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fenchel._statistics import ranked
from fenchel.exceptions import ScaleWarning, warn_user
from fenchel.losses import Loss

__all__ = ["Larger", "PairErrors", "SearchResult"]

_FLAT = 1e-3  # relative difference of two errors that is ignored
_A_GRID = 5  # minimum number of lams of a grid that is meant to bracket the best one


@dataclass(frozen=True)
class PairErrors:
    """Errors of held-out samples for one pair of the grid; NaN for samples that no fold holds out."""

    loss: int
    lam: int
    errors: np.ndarray  # (n,)
    gap: float  # largest relative gap of the folds


@dataclass(frozen=True)
class Larger:
    """What a part of the sample has said: about one width of the kernel, at the best lam."""

    n_samples: int
    factor: float  # of the width that the search has found
    lam: float  # of the part, relative to the mean diagonal
    error: float
    seconds: float
    held_out: int  # number of samples
    ridge: float  # lam times the weight of the part
    is_whole: bool = True


@dataclass(frozen=True)
class SearchResult:
    """Errors of every pair of a grid."""

    losses: list[Loss]
    lams: list[float]
    cv_errors: np.ndarray  # (losses, lams)
    fold_errors: np.ndarray  # (losses, lams, folds)
    cv_gaps: np.ndarray  # (losses, lams)
    is_open: bool = True  # whether the grid of lam was extended as long as the error decreases
    is_cautious: bool = False  # whether to choose the largest lam whose error is nearly the smallest
    is_whole: bool = True  # whether all pairs are known; errors of the others are NaN
    moved: float = 1.0  # by which larger parts of the sample have multiplied the best lam

    @property
    def best(self) -> tuple[int, int]:
        """Indices of the loss and the lam with the smallest error."""
        i, j = divmod(int(ranked(self.cv_errors)[0]), len(self.lams))
        if self.is_cautious:
            near = np.flatnonzero(self.cv_errors[i] <= (1 + _FLAT) * self.cv_errors[i, j])
            j = int(near[np.argmax(np.asarray(self.lams)[near])])
        return i, j

    @property
    def least(self) -> float:
        """The smallest error."""
        return float(np.min(_with_infinity(self.cv_errors)))

    @property
    def loss(self) -> Loss:
        """The best loss."""
        return self.losses[self.best[0]]

    @property
    def lam(self) -> float:
        """The best lam."""
        lam = self.lams[self.best[1]]
        return lam if self.moved == 1 else float(f"{lam * self.moved:.15g}")

    def beyond(self) -> float | None:
        """Return the next lam beyond the end of the grid if the best point is at an end, else ``None``."""
        order = np.argsort(self.lams)
        i, j = self.best
        errors, lams = self.cv_errors[i][order], np.asarray(self.lams)[order]
        place = int(np.flatnonzero(order == j)[0])
        if len(lams) < 2 or 0 < place < len(lams) - 1:
            return None
        neighbour = 1 if place == 0 else len(lams) - 2
        is_finite = np.isfinite(errors[[place, neighbour]]).all()
        if not is_finite or not errors[neighbour] - errors[place] > _FLAT * abs(errors[neighbour]):
            return None  # flat: a further point would not help
        return float(lams[place] ** 2 / lams[neighbour])

    def times(self, share: float) -> "SearchResult":
        """Return the result for a sample of other weight, at the same ridge lam n: lam is multiplied by a share."""
        return replace(self, lams=[float(f"{lam * share:.15g}") for lam in self.lams])

    def joined(self, other: "SearchResult") -> "SearchResult":
        """Join the result with another one for the same losses and other lams."""
        lams = np.array(self.lams + other.lams)
        order = np.argsort(lams)
        errors, fold_errors, gaps = (
            np.concatenate([vars(self)[name], vars(other)[name]], axis=1)[:, order]
            for name in ("cv_errors", "fold_errors", "cv_gaps")
        )
        parts: dict[str, Any] = {"cv_errors": errors, "fold_errors": fold_errors, "cv_gaps": gaps}
        return replace(self, lams=lams[order].tolist(), is_whole=self.is_whole and other.is_whole, **parts)

    def warn_at_end(self) -> None:
        """Warn if the best lam of the user's grid is an end of it, and the error decreases towards it."""
        beyond = self.beyond() if self.is_whole and not self.is_open else None
        if beyond is None or len(self.lams) < _A_GRID:
            return
        lam = self.lam
        end, further = ("smallest", "smaller") if beyond < lam else ("largest", "larger")
        warn_user(
            f"The best lam, {lam:g}, is the {end} of the grid, and the error decreases towards it. Add {further} "
            f"values to lams, such as {beyond:.2g}, or use lams=None.",
            ScaleWarning,
            "end-of-the-grid",
        )


def _with_infinity(errors: np.ndarray) -> np.ndarray:
    """Return errors with infinity for pairs that are not known."""
    return np.where(np.isnan(errors), np.inf, errors)
