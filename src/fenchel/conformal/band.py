"""Prediction bands returned by ``predict_interval``."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._optional import new_axes
from fenchel.conformal.samples import at_points, numbers, of_shape
from fenchel.datasets.functional import as_curves, brings_points

__all__ = ["PredictionBand"]


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """Ellipsoids |W (y - center)| <= radius, one for each sample."""

    center: np.ndarray  # (n, q)
    whitening: np.ndarray  # W, (q, q)
    radius: np.ndarray  # (n,)

    def contains(self, values: np.ndarray) -> np.ndarray:
        """Whether outputs (n, q) lie inside; an output with missing entries counts as inside."""
        sizes = np.linalg.norm((values - self.center) @ self.whitening.T, axis=1)
        return np.asarray(~(sizes > self.radius))

    @property
    def volume(self) -> np.ndarray:
        """Volume of each ellipsoid, (n,)."""
        q = self.center.shape[1]
        unit = math.pi ** (q / 2) / math.gamma(q / 2 + 1)
        return np.asarray(unit * self.radius**q / abs(np.linalg.det(self.whitening)))


@dataclass(frozen=True, eq=False)
class PredictionBand:
    """Lower and upper bounds of prediction bands, one band per sample.

    Attributes
    ----------
    lower, upper : array or FDataGrid
        Lower and upper bounds, with the shape of a prediction.
    coverage : float
        Nominal coverage.
    grid : ndarray of shape (m,) or None
        Points of the curves, if outputs are curves.
    is_joint : bool
        Whether a band covers all outputs of a sample, or all points of a curve, at once.
    ellipsoid : Ellipsoid or None
        The ellipsoids of ``joint="ellipsoid"``, with ``volume``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import PredictionBand
    >>> band = PredictionBand(np.zeros((2, 3)), np.ones((2, 3)), coverage=0.9)
    >>> band.contains(np.array([[0.5, 0.5, 1.0], [0.5, 0.5, 1.5]]))
    array([ True, False])
    """

    lower: Any
    upper: Any
    coverage: float
    grid: np.ndarray | None = None
    is_joint: bool = True
    ellipsoid: Ellipsoid | None = None

    def contains(self, Y: Any) -> np.ndarray:
        """Whether outputs lie inside.

        Parameters
        ----------
        Y : array, or what else the regressor takes as outputs
            One row for each row of the band. Values that were not observed (NaN) are ignored. Curves with their own
            points are compared there, with interpolated bounds.

        Returns
        -------
        is_inside : ndarray of bool, shape (n,)
            One per sample, or with the shape of Y if each output has its own interval (``is_joint`` is False).
        """
        lower, upper, values = self._beside(Y)
        if self.ellipsoid is not None:
            return self.ellipsoid.contains(values)
        is_inside = np.isnan(values) | ((values >= lower) & (values <= upper))
        return is_inside.all(axis=1) if self.is_joint else is_inside.reshape(numbers(self.lower).shape)

    @property
    def width(self) -> np.ndarray:
        """Mean width of the band of each sample, shape (n,)."""
        widths = numbers(self.upper) - numbers(self.lower)
        return np.asarray(widths.reshape(len(widths), -1).mean(axis=1))

    def plot(self, ax: Any = None, *, index: int = 0, Y: Any = None) -> Any:
        """Plot the band of one sample or, if outputs are single numbers, the intervals of all samples.

        Parameters
        ----------
        ax : Axes or None, default=None
            Axes to draw on; ``None`` creates a figure.
        index : int, default=0
            The sample whose band is drawn.
        Y : array or None, default=None
            Observed outputs, drawn on top.

        Returns
        -------
        ax : Axes
            The axes with the plot.
        """
        lower, upper, truth = self._beside(self.lower if Y is None else Y)
        is_flat = lower.shape[1] == 1
        pick: Any = (slice(None), 0) if is_flat else index
        places = np.arange(lower[pick].size, dtype=float)
        if self.grid is not None and len(self.grid) == len(places):
            places = np.asarray(self.grid)
        ax = new_axes() if ax is None else ax
        ax.fill_between(places, lower[pick], upper[pick], alpha=0.3, label=f"{self.coverage:.0%} band")
        if Y is not None:
            ax.plot(places, truth[pick], "k." if is_flat else "k-", label="observed")
        ax.set_xlabel("sample" if is_flat else "output" if self.grid is None else "t")
        ax.set_title("Prediction intervals" if is_flat else f"Prediction band of sample {index}")
        ax.legend()
        return ax

    def _beside(self, Y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return both bounds and the outputs as arrays (n, values), at the points of the outputs."""
        lower, upper = numbers(self.lower), numbers(self.upper)
        if self.grid is None:
            values = of_shape(numbers(Y), lower.shape)
        else:
            curves = as_curves(Y, None if brings_points(Y) else self.grid, "Y")
            values = numbers(curves.values)
            lower, upper = (at_points(end, self.grid, curves.grid) for end in (lower, upper))
        if values.shape != lower.shape:
            raise ValueError(f"Y must have the shape of the band, {lower.shape}. Got {values.shape} instead.")
        n = len(values)
        return lower.reshape(n, -1), upper.reshape(n, -1), values.reshape(n, -1)
