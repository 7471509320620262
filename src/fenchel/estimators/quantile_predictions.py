"""Predictions of all quantiles: at any levels, as intervals and draws, and their score."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state

from fenchel._array import Array, as_like, host, is_host, namespace
from fenchel._check import Interval, check_finite, check_parameter, unmasked
from fenchel.data.frames import in_container, with_arrays
from fenchel.data.quadrature import interpolation
from fenchel.estimators.quantile_pilot import QuantilePilot, pinball
from fenchel.model.input_gaps import fills_gaps
from fenchel.model.levels import LevelCodec, as_levels
from fenchel.model.machine import Fitted, KernelMachine
from fenchel.model.marginal_quantiles import MarginalQuantiles
from fenchel.model.sample import sample_counts

__all__ = ["QuantileRegressor", "losses_of"]

_FINE = np.linspace(0, 1, 201)  # levels at which predictions are sorted
_COVERAGE = Interval(0, 1)
_SAMPLES = Interval(1, float("inf"), "left", integer=True)  # number of draws


class QuantileRegressor(MultiOutputMixin, RegressorMixin, KernelMachine):
    """What the quantile regressor and its search share: quantiles at any levels, intervals, draws, the score."""

    non_crossing: bool | str
    levels_ = Fitted[np.ndarray]("codec.levels")
    level_weights_ = Fitted[np.ndarray]("codec.weights")

    @property
    def marginal_(self) -> MarginalQuantiles | None:
        """The marginal quantile function, which maps levels to values, (levels, d)."""
        codec = self.model_.codec
        return cast(LevelCodec, codec).marginal

    @property
    def pilot_(self) -> QuantilePilot | None:
        """The fitted pilot."""
        return cast(QuantilePilot | None, cast(LevelCodec, self.model_.codec).pilot)

    @in_container
    def predict(self, X: Array, quantiles: ArrayLike = 0.5) -> Array:
        """Predict quantiles at any levels.

        Parameters
        ----------
        X : array of shape (n, features)
            Inputs, or their Gram matrix with the training inputs.
        quantiles : float or array of shape (q,), default=0.5
            Levels in [0, 1], in any order; predictions at 0 and 1 are the limits of those inside.

        Returns
        -------
        y : array of shape (n,) or (n, q), with several outputs (n, d) or (n, q, d)
            The quantiles, without the axis of levels if ``quantiles`` is a number.
        """
        levels = as_levels(quantiles, "quantiles", has_ends=True)
        X = self._read(X)
        values = self._in_order(X, levels) if self._is_sorted() else self.model_.read(X, levels)
        values = namespace(X).astype(values, X.dtype, copy=False)
        values = values[:, :, 0] if self.model_.outputs.is_flat else values
        return values[:, 0, ...] if np.ndim(quantiles) == 0 else values

    def _output_names(self, quantiles: ArrayLike = 0.5) -> Sequence[object] | None:
        return super()._output_names() if np.ndim(quantiles) == 0 else np.ravel(quantiles).tolist()

    def predict_interval(self, X: Array, coverage: float = 0.9) -> Array:
        """Return central prediction intervals.

        Parameters
        ----------
        X : array of shape (n, features)
            Inputs, as for ``predict``.
        coverage : float, default=0.9
            Nominal probability that the output falls inside the interval, in (0, 1).

        Returns
        -------
        ends : array of shape (n, 2), or (n, 2, d) with several outputs
            Lower and upper ends: the quantiles at levels (1 - coverage) / 2 and (1 + coverage) / 2.
        """
        check_parameter(f"{type(self).__name__}.predict_interval", "coverage", coverage, _COVERAGE)
        return self._with_arrays().predict(X, [(1 - coverage) / 2, (1 + coverage) / 2])

    def sample(self, X: Array, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> Array:
        """Draw outputs from the predicted distributions.

        Parameters
        ----------
        X : array of shape (n, features)
            Inputs, as for ``predict``.
        n_samples : int, default=1
            Number of draws for each input.
        random_state : int, RandomState or None, default=None
            Seed of the random draws.

        Returns
        -------
        draws : array of shape (n, n_samples), or (n, n_samples, d) with several outputs
            Sorted quantiles at uniformly drawn levels; several outputs are drawn independently.
        """
        check_parameter(f"{type(self).__name__}.sample", "n_samples", n_samples, _SAMPLES)
        X = self._read(X)
        grid, values = self._ordered(X)
        known = host(values)
        levels = check_random_state(random_state).uniform(size=(len(known), n_samples, known.shape[2]))
        right = np.clip(np.searchsorted(grid, levels), 1, len(grid) - 1)
        share = (levels - grid[right - 1]) / (grid[right] - grid[right - 1])
        low, high = (np.take_along_axis(known, places, axis=1) for places in (right - 1, right))
        draws = as_like(low + share * (high - low), X)
        return draws[:, :, 0] if self.model_.outputs.is_flat else draws

    def score(self, X: Array, y: Array, sample_weight: Array | None = None) -> float:
        """Return the relative reduction of the pinball loss, compared with the marginal quantiles of y.

        Parameters
        ----------
        X, y, sample_weight
            A sample, as for ``fit``.

        Returns
        -------
        score : float
            One minus the ratio of the losses, integrated over the levels of the model; at most 1.
        """
        counts, losses = sample_counts(sample_weight, self._read(X)), losses_of(self, X, y)
        truth = _on_host(unmasked(y, "y")).reshape(len(losses), -1)
        marginal = MarginalQuantiles.of(truth, counts, self.levels_)(self.levels_)
        total = float(np.average(_integrated(self, truth[:, None, :] - marginal), weights=counts))
        error = float(np.average(losses, weights=counts))
        if total == 0:
            return 1.0 if error == 0 else 0.0
        return 1 - error / total

    def _ordered(self, X: Array) -> tuple[np.ndarray, Array]:
        """Return a fine grid of levels, and the sorted quantiles at these levels, (n, levels, d)."""
        grid = np.union1d(_FINE, self.levels_)
        values = self.model_.read(X, grid)
        return grid, namespace(values).sort(values, axis=1)

    def _in_order(self, X: Array, levels: np.ndarray) -> Array:
        """Return quantiles that never decrease with the level, (n, levels, d)."""
        grid, values = self._ordered(X)
        xp, near = namespace(values), grid[np.argmin(np.abs(grid - levels[:, None]), axis=1)]
        levels = np.where(np.abs(near - levels) < 1e-12, near, levels)  # levels of the grid are met exactly
        turned = xp.permute_dims(values, (0, 2, 1)) @ as_like(interpolation(grid, levels), values)
        return xp.permute_dims(turned, (0, 2, 1))

    def _is_sorted(self) -> bool:
        """Whether predictions are rearranged so that they do not cross."""
        return bool(self.non_crossing)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = fills_gaps(self.kernel)
        return tags


def losses_of(model: QuantileRegressor, X: Array, y: Array) -> np.ndarray:
    """Return the loss of each sample, integrated over the levels of the model and summed over outputs."""
    predicted = _on_host(with_arrays(model).predict(X, model.levels_))
    truth = check_finite(_on_host(unmasked(y, "y")), "y")
    n = len(predicted)
    if len(truth) != n:
        raise ValueError(f"X and y must have the same number of samples. Got {n} and {len(truth)}.")
    return _integrated(model, truth.reshape(n, 1, -1) - predicted.reshape(n, len(model.levels_), -1))


def _integrated(model: QuantileRegressor, residuals: np.ndarray) -> np.ndarray:
    """Return the loss of residuals (n, levels, d)."""
    return np.sum(pinball(residuals, model.levels_, model.level_weights_), axis=1)


def _on_host(array: Array) -> np.ndarray:
    """Return numbers as a float64 NumPy array."""
    return np.asarray(array if is_host(array) else host(array), dtype=np.float64)
