"""Prediction bands returned by ``predict_interval``."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Outputs
from fenchel._check import Options, check_parameter
from fenchel._optional import Axes, new_axes
from fenchel.data.containers import at_points, length, numbers, of_shape
from fenchel.data.fdata import function_names
from fenchel.data.frames import band_frame
from fenchel.data.functional import as_curves, brings_points
from fenchel.model.machine import Near, unchanged

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
    prediction : array, FDataGrid or None
        The predictions that the bands surround; ``None`` for a regressor that has intervals of its own.
    near : callable
        ``near(values, others)`` returns outputs as they are closest to others: angles are compared on the circle.
    names : sequence or None
        Names of the outputs; ``None`` if the training outputs had none.
    index : Index or None
        The index of the inputs, if they were a pandas frame.

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
    prediction: Any = None
    near: Near = unchanged
    names: Sequence[object] | None = None
    index: Any = None

    def contains(self, Y: Outputs) -> np.ndarray:
        """Whether outputs lie inside.

        Parameters
        ----------
        Y : array, or any other outputs that the regressor takes
            One row for each row of the band. Values that were not observed (NaN) are ignored. Curves with their own
            points are compared there, with interpolated bounds.

        Returns
        -------
        is_inside : ndarray of bool, shape (n,)
            One per sample, or with the shape of Y if each output has its own interval (``is_joint`` is False).
        """
        _, lower, upper, values = self._beside(Y)
        if self.ellipsoid is not None:
            return self.ellipsoid.contains(values)
        is_inside = np.isnan(values) | ((values >= lower) & (values <= upper))
        return is_inside.all(axis=1) if self.is_joint else is_inside.reshape(numbers(self.lower).shape)

    def volume(self, root: bool = False) -> np.ndarray:
        """Return the volume of the region of each sample, of the ellipsoid or of the box.

        Parameters
        ----------
        root : bool, default=False
            Whether to return its k-th root for k outputs, the side of a cube of this volume.

        Returns
        -------
        volume : ndarray of shape (n,)
            In products of the units of the outputs.
        """
        sides = (numbers(self.upper) - numbers(self.lower)).reshape(length(self.lower), -1)
        with np.errstate(divide="ignore"):
            logs = np.log(sides).sum(axis=1) if self.ellipsoid is None else np.log(self.ellipsoid.volume)
        return np.asarray(np.exp(logs / sides.shape[1] if root else logs))

    def summary(self, Y: Outputs, groups: ArrayLike | None = None) -> dict[str, dict[str, float]]:
        """Return how often bands contain observed outputs, and how wide they are, in all and in each group.

        Parameters
        ----------
        Y : array, or any other outputs that the regressor takes
            Observed outputs, as for ``contains``.
        groups : array of shape (n,) or None, default=None
            Labels of the samples.

        Returns
        -------
        summary : dict
            For ``"all"`` and each label, as text: the number of samples ``"n"``, the ``"coverage"``, its
            ``"standard_error"``, and the mean ``"width"``.
        """
        is_inside = self.contains(Y)
        shares, widths = is_inside.reshape(len(is_inside), -1).mean(axis=1), self.width
        labels = np.zeros(len(shares), dtype=int) if groups is None else np.asarray(groups)
        if labels.shape != shares.shape:
            raise ValueError(f"groups must have shape {shares.shape}, one label for each sample. Got {labels.shape}.")
        parts = {} if groups is None else {str(label): labels == label for label in np.unique(labels)}
        return {
            name: {
                "n": int(part.sum()),
                "coverage": float(shares[part].mean()),
                "standard_error": float(shares[part].std() / np.sqrt(part.sum())),
                "width": float(widths[part].mean()),
            }
            for name, part in ({"all": np.ones(len(shares), dtype=bool)} | parts).items()
        }

    @property
    def width(self) -> np.ndarray:
        """Mean width of the band of each sample, shape (n,)."""
        widths = numbers(self.upper) - numbers(self.lower)
        return np.asarray(widths.reshape(len(widths), -1).mean(axis=1))

    def to_frame(self, container: str = "pandas") -> Any:
        """Return predictions and bounds as a data frame.

        Parameters
        ----------
        container : {"pandas", "polars"}, default="pandas"
            The library of the frame.

        Returns
        -------
        frame : DataFrame
            Of each output the prediction, if there is one, and both bounds, ``"name"``, ``"name_lower"`` and
            ``"name_upper"``. Outputs have the names that they had in ``fit``, curves those of their points. Rows have
            the index of the inputs.
        """
        check_parameter("to_frame", "container", container, Options(("pandas", "polars")))
        parts = {"_lower": numbers(self.lower), "_upper": numbers(self.upper)}
        if self.prediction is not None:
            parts = {"": numbers(self.prediction)} | parts
        names = self.names
        if names is None and self.grid is not None and parts["_lower"].ndim == 2:
            names = np.asarray(self.grid).tolist()
        return band_frame(parts, container, names, self.index)

    def plot(self, ax: Axes | None = None, *, index: int = 0, Y: Outputs = None) -> Axes:
        """Plot the band of one sample around its prediction or, if outputs are single numbers, all intervals.

        Bands of curves are drawn as areas, bands of other outputs as bars.

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
        ax, first = new_axes() if ax is None else ax, numbers(self.lower)[0]
        is_flat, is_curve = first.size == 1, self.grid is not None and first.size > 1
        pick: Any = slice(None) if is_flat else index
        places = np.asarray(self.grid) if is_curve else np.arange(length(self.lower) if is_flat else first.size)
        low, high = (numbers(end)[pick].reshape(len(places), -1) for end in (self.lower, self.upper))
        draw, thickness = (ax.fill_between, 0) if is_curve else (ax.vlines, 6)
        band = f"{100 * self.coverage:g} % band" + ("" if np.all(np.isfinite(high - low)) else " (infinite)")
        for k in range(low.shape[1]):  # channels
            draw(places, low[:, k], high[:, k], color=f"C{k}", alpha=0.3, linewidth=thickness, label="_" * k + band)
        if Y is not None:
            points, _, _, truth = self._beside(Y)
            at = places if points is None or is_flat else points
            _draw(ax, at, truth[pick], "-" if is_curve else "x", "observed")
        if self.prediction is not None:
            _draw(ax, places, numbers(self.prediction)[pick], "-" if is_curve else "o", "prediction")
        if not is_curve:
            ax.set_xticks(places[:: max(1, len(places) // 10)])
            ax.margins(x=0.1)
        name = function_names(self.lower, "argument_names").get("argument_names", (None,))[0] or "t"
        ax.set_xlabel("sample" if is_flat else name if is_curve else "output")
        ax.set_title("Prediction intervals" if is_flat else f"Prediction band of sample {index}")
        ax.legend()
        return ax

    def _beside(self, Y: Outputs) -> tuple[np.ndarray | None, np.ndarray, np.ndarray, np.ndarray]:
        """Return the points of the outputs if they are curves, and there both bounds and the outputs, (n, values)."""
        lower, upper, points = numbers(self.lower), numbers(self.upper), self.grid
        if self.grid is None:
            values = of_shape(numbers(Y), lower.shape)
        else:
            curves = as_curves(Y, None if brings_points(Y) else self.grid, "Y")
            values, points = numbers(curves.values), curves.grid
            lower, upper = (at_points(end, self.grid, curves.grid) for end in (lower, upper))
        if values.shape != lower.shape:
            raise ValueError(f"Y must have the shape of the band, {lower.shape}. Got {values.shape} instead.")
        lower, upper, values = (part.reshape(len(values), -1) for part in (lower, upper, values))
        with np.errstate(invalid="ignore"):  # infinite bands have no middle
            middle = np.nan_to_num((lower + upper) / 2, posinf=0.0, neginf=0.0)
        return points, lower, upper, self.near(values, middle)


def _draw(ax: Axes, points: np.ndarray, values: np.ndarray, style: str, name: str) -> None:
    """Draw a line for each channel of the values; the legend leaves out names that begin with an underscore."""
    for k, column in enumerate(values.reshape(len(points), -1).T):
        colour = "k" if name == "observed" else f"C{k}"
        is_broken = np.isnan(column).any()
        ax.plot(points, column, "." if is_broken else style, color=colour, label="_" * k + name)
