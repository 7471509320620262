"""What the predictions of a fitted model depend on: the outer product of its gradients."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Inputs, Outputs, host
from fenchel.data.containers import checked_length, length, take, vectors
from fenchel.report.axes import COLOURS, Axes, axes_of
from fenchel.resample.folds import label_codes, rows_with

__all__ = ["Importance"]


@dataclass(frozen=True)
class Importance:
    r"""Importance of each input, and the directions of inputs along which predictions change.

    .. math:: C_{jk} = \frac1n \sum_i \sum_o
       s_j \frac{\partial f_o}{\partial x_j}(x_i) \; s_k \frac{\partial f_o}{\partial x_k}(x_i),

    s being the standard deviations of the inputs, and f the prediction. The importance of an input is the square root
    of its diagonal entry, in units of the outputs; loadings are the principal components of C. Several outputs are
    added up in their units.

    Parameters
    ----------
    values : ndarray of shape (d,)
        Importance of each input.
    loadings : ndarray of shape (k, d)
        Orthonormal directions of standardised inputs, in decreasing order of ``shares``; the largest entry is positive.
    shares : ndarray of shape (k,)
        Share of each direction in the sum of squared derivatives.
    center, scale : ndarray of shape (d,)
        Means and standard deviations of the inputs.
    refits : ndarray of shape (n_refits, d)
        Importance in models that were fitted to resamples.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.report.importance import Importance
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> model = OperatorKernelRegressor("linear", lam=1e-8).fit(X, X @ [3.0, 0.0, -4.0])
    >>> (Importance.of(model, X).values / X.std(axis=0)).round(3).tolist()
    [3.0, 0.0, 4.0]
    """

    values: np.ndarray
    loadings: np.ndarray
    shares: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    refits: np.ndarray

    @classmethod
    def of(
        cls,
        model: BaseEstimator,
        X: Inputs,
        y: Outputs = None,
        *,
        n_refits: int = 0,
        groups: ArrayLike | None = None,
        random_state: int = 0,
    ) -> Self:
        """Return the importance of the inputs of a fitted model.

        Parameters
        ----------
        model : fitted estimator
            A model with ``gradient``. Of a pipeline, pass the last step, and ``X`` as the steps before return it.
        X : array of shape (n, d)
            Inputs at which derivatives are taken, such as those of the training sample.
        y : array or None, default=None
            The outputs of ``X``, for refits.
        n_refits : int, default=0
            Number of bootstrap samples to which the model is fitted again; a search keeps what it has chosen.
        groups : array of shape (n,) or None, default=None
            Groups that are drawn as a whole, such as replicates.
        random_state : int, default=0
            Seed of the draws.

        Returns
        -------
        importance : Importance
            The importance, the loadings, and the importance in refits.
        """
        check_scalar(n_refits, "n_refits", int, min_val=0)
        check_is_fitted(model)
        if not hasattr(model, "gradient"):
            raise TypeError(
                f"Importance needs a model with gradient, such as OperatorKernelRegressor. Got {type(model).__name__}. "
                "Of a pipeline, pass the last step and transformed inputs."
            )
        if n_refits and y is None:
            raise ValueError("Refits need the outputs of X: Importance.of(model, X, y, n_refits=...).")
        if n_refits:
            checked_length(X, y, "Importance.of")
        rows = vectors(X).astype(np.float64)
        center, scale = rows.mean(axis=0), rows.std(axis=0)
        moved = _gradients(model, X, scale)
        sizes, loadings = np.linalg.svd(moved.reshape(-1, rows.shape[1]), full_matrices=False)[1:]
        largest = np.take_along_axis(loadings, np.argmax(np.abs(loadings), axis=1)[:, None], axis=1)
        shares = sizes**2 / max(float(np.sum(sizes**2)), np.finfo(float).tiny)
        refits = [_size(_gradients(one, X, scale)) for one in _refitted(model, X, y, n_refits, groups, random_state)]
        again = np.reshape(refits, (n_refits, rows.shape[1]))
        return cls(_size(moved), np.sign(largest) * loadings, shares, center, scale, again)

    def scores(self, X: Inputs) -> np.ndarray:
        """Return the coordinates (n, k) of standardised inputs along the loadings."""
        rows = vectors(X).astype(np.float64)
        if rows.shape[1] != len(self.center):
            raise ValueError(f"X must have {len(self.center)} columns. Got {rows.shape[1]}.")
        found: np.ndarray = (rows - self.center) / np.where(self.scale > 0, self.scale, 1.0) @ self.loadings.T
        return found

    def interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return the quantiles of the importance in refits; no coverage is guaranteed."""
        check_scalar(level, "level", float, min_val=0, max_val=1, include_boundaries="neither")
        if not len(self.refits):
            raise ValueError("There are no refits. Pass y and n_refits=100 to Importance.of.")
        low, high = np.quantile(self.refits, ((1 - level) / 2, (1 + level) / 2), axis=0)
        return low, high

    def plot(self, ax: Axes | None = None, *, x: ArrayLike | None = None, level: float = 0.9) -> Axes:
        """Draw the importance against the inputs, such as wavelengths ``x``, with the interval of refits, if any.

        ``ax`` are the axes to draw on, which are returned; ``None`` creates a figure.
        """
        ax, places = axes_of(ax), np.arange(len(self.values)) if x is None else np.asarray(x)
        if places.shape != self.values.shape:
            raise ValueError(f"x must have shape {self.values.shape}, one place for each input. Got {places.shape}.")
        if len(self.refits):
            ax.fill_between(places, *self.interval(level), color=COLOURS[0], alpha=0.3, linewidth=0)
        ax.plot(places, self.values, color=COLOURS[0])
        ax.set(xlabel="input", ylabel="importance")
        return ax


def _gradients(model: BaseEstimator, X: Inputs, scale: np.ndarray) -> np.ndarray:
    """Return derivatives (n, outputs, d) per standard deviation of the inputs."""
    found = host(model.gradient(X, almost_everywhere=True))
    return found.reshape(len(found), -1, len(scale)) * scale


def _size(moved: np.ndarray) -> np.ndarray:
    size: np.ndarray = np.sqrt(np.mean(np.sum(moved**2, axis=1), axis=0))
    return size


def _refitted(
    model: BaseEstimator, X: Inputs, y: Outputs, count: int, groups: ArrayLike | None, seed: int
) -> list[BaseEstimator]:
    """Return models that are fitted to bootstrap samples of whole groups."""
    n, rng, plain = length(X), np.random.default_rng(seed), getattr(model, "best_estimator_", model)
    given = label_codes(groups, n, "groups")
    codes, found = np.arange(n) if given is None else given, []
    for _ in range(count):
        labels = rng.integers(codes.max() + 1, size=codes.max() + 1)
        rows = np.concatenate([rows_with(codes, labels[k : k + 1]) for k in range(len(labels))])
        found.append(clone(plain).fit(take(X, rows), take(y, rows)))
    return found
