"""Regression of the entire conditional quantile function in one fit."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state

from fenchel._array import Array, Outputs, as_index, as_like, eps, host, is_host, namespace
from fenchel._check import Interval, Options, check_parameter
from fenchel.approximations import Approximation
from fenchel.estimators.fitted_dual import FittedDual, expose, fit_refined
from fenchel.estimators.level_models import (
    LevelSet,
    as_levels,
    encode_levels,
    input_kernel,
    interpolation,
    level_quadrature,
    values_at_levels,
)
from fenchel.estimators.marginal_quantiles import MarginalQuantiles
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.quantile_pilot import QuantilePilot, fit_pilot, pinball
from fenchel.estimators.training_set import TrainingSet, encode
from fenchel.estimators.validation import (
    DualSettings,
    all_or_nothing,
    new_inputs,
    sample_counts,
    training_vectors,
)
from fenchel.kernels import Laplacian, as_operator_kernel, as_scalar_kernel
from fenchel.kernels.base import ScalarKernel
from fenchel.losses import Loss, Pinball
from fenchel.representations import Euclidean
from fenchel.solvers import Auto, Solver

__all__ = ["QuantileFunctionRegressor"]

_FINE = np.linspace(0, 1, 201)  # levels at which predictions are sorted
_COVERAGE = Interval(0, 1)
_SAMPLES = Interval(1, float("inf"), "left", integer=True)


@dataclass(frozen=True)
class EncodedQuantiles:
    """Outputs at every level, minus their marginal quantiles or the predictions of a pilot."""

    level_set: LevelSet
    marginal: MarginalQuantiles
    outputs: Array  # of the samples with a positive weight, (n,) or (n, d)
    pilot: QuantilePilot | None = None

    @property
    def training_set(self) -> TrainingSet:
        """The training set."""
        return self.level_set.training_set


class QuantileFunctionRegressor(NamedPartsMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Quantile regression at all levels in one model, with a certified duality gap.

    .. math:: \min_h \; \frac1n \sum_i \int_0^1 \rho_\theta \bigl(y_i - q_0(\theta) - h(x_i)(\theta)\bigr) \, d\theta
        + \frac\lambda2 \|h\|^2, \qquad \rho_\theta(r) = \max(\theta r, (\theta - 1) r),

    where :math:`q_0` is the marginal quantile function of the outputs and :math:`h` is in the space of the kernel
    :math:`(k(x, z) + c) \, g(\theta, \theta')`. Predictions :math:`q_0 + h(x)` are available at every level.

    Parameters
    ----------
    kernel : kernel, str or callable, default="gaussian"
        Kernel :math:`k` of the inputs.
    level_kernel : kernel, str, callable or None, default=None
        Kernel :math:`g` of the levels; ``None`` means ``Laplacian(2.0)``. A constant kernel shifts all quantiles by the
        same amount; a narrow one fits each level separately.
    lam : float, default=1e-3
        Weight of the squared norm. It depends on the scale of the outputs: if these are doubled, halve it.
    levels : int or array of shape (m,), default=20
        Levels at which the loss is evaluated: their number, or an increasing array of levels, which get equal weights.
    quadrature : {"gauss_legendre", "uniform"}, default="gauss_legendre"
        Quadrature rule for the levels: Gauss-Legendre nodes, or midpoints of equal intervals.
    intercept : float, default=1.0
        The constant :math:`c` added to the kernel of the inputs. It gives the model an intercept function
        :math:`b(\theta)` whose squared norm is penalised :math:`1 / c` times as much as the rest; with 0, :math:`q_0`
        is the only intercept.
    coupling : array of shape (d, d) or None, default=None
        Positive semidefinite matrix that couples several outputs; ``None`` fits them separately.
    non_crossing : bool, default=False
        Whether to sort predictions, so that a higher level never has a lower quantile.
    solver : Solver or str, default="auto"
        ``"auto"`` or a solver's name or instance.
    tol : float, default=1e-6
        The relative duality gap at which the solver stops.
    max_iter : int or None, default=None
        Maximum number of iterations; ``None`` means the solver's default.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` replaces the kernel of the inputs by one with 500 features.
    pilot : bool, default=False
        Whether to let :math:`q_0(x, \theta)` depend on the inputs too, through closed-form regressions with the same
        kernel, and to scale residuals by a spread :math:`s(x)`; see Notes.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.

    Attributes
    ----------
    levels_, level_weights_ : array of shape (m,)
        The levels and their quadrature weights, which sum to 1.
    crossing_rate_ : float
        Fraction of pairs of neighbouring levels, over the training samples, whose quantiles cross; computed before
        predictions are sorted.
    marginal_ : callable
        The marginal quantile function of the training outputs, which maps levels to values, (levels, d).
    pilot_ : QuantilePilot or None
        The fitted pilot.
    dual_coef_, primal_objective_, dual_objective_, duality_gap_, n_iter_, status_, support_, sparsity_, history_
        As for ``OperatorKernelRegressor``.

    Notes
    -----
    The duals :math:`a_i(\theta)` lie in the box :math:`[\theta - 1, \theta]`. With m levels the fit stores the Gram
    matrix and its eigenvectors, :math:`n \times n`, and about 25 arrays of shape :math:`n \times m`; each Newton step
    solves a system in the duals that are strictly inside the box.

    The penalty shrinks the model towards the marginal quantiles, which are optimal without inputs: the intercept
    function has little left to correct, and its light penalty does no harm. Penalising it leaves the dual with box
    constraints only, without one that couples the samples, so that every iterate can be certified.

    With ``non_crossing=True`` predictions are rearranged: the values at 201 equally spaced levels and at the levels of
    the model are sorted and interpolated. Predictions that do not cross are unchanged, and the result does not depend
    on the requested levels.

    With ``pilot=True`` the loss is :math:`\rho_\theta((y_i - q_0(x_i, \theta)) / s(x_i) - h(x_i)(\theta))` and
    predictions are :math:`q_0(x, \theta) + s(x) \, h(x)(\theta)`. Three pilots are built from ridge regressions that
    share one factorisation, each with the lam that minimises its leave-one-out error: the mean and log spread of the
    output, with the quantiles of standardised residuals; the same for its normal scores; and the distribution function
    at thirty thresholds, or at all values of an output that has fewer. :math:`q_0` is their weighted mean with the
    smallest leave-one-out pinball loss, where the weights are shrunk slightly towards equal ones unless most values of
    the output recur, and s is the spread of the first pilot. In the problem that is solved and certified, :math:`q_0`
    and s at :math:`x_i` are predictions without sample i.

    Curves are treated as several outputs: pass the values of a kernel at pairs of points as ``coupling``.

    References
    ----------
    [Laforgue2019]_, section 4; R. Brault, A. Lambert, Z. Szabó, M. Sangnier and F. d'Alché-Buc, "Infinite task learning
    in RKHSs", AISTATS 2019; V. Chernozhukov, I. Fernández-Val and A. Galichon, "Quantile and probability curves without
    crossing", Econometrica 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import QuantileFunctionRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 1))
    >>> y = X[:, 0] + (0.2 + 0.2 * X[:, 0] ** 2) * rng.standard_normal(200)
    >>> model = QuantileFunctionRegressor(lam=1e-3, non_crossing=True).fit(X, y)
    >>> model.predict(X[:3], [0.1, 0.5, 0.9]).shape, bool(model.duality_gap_ <= 1e-6)
    ((3, 3), True)
    >>> low, high = model.predict_interval(X, 0.8).T
    >>> bool(0.7 < np.mean((low <= y) & (y <= high)) < 0.9)
    True
    """

    def __init__(
        self,
        kernel: ScalarKernel | str = "gaussian",
        level_kernel: ScalarKernel | str | None = None,
        lam: float = 1e-3,
        levels: int | ArrayLike = 20,
        quadrature: str = "gauss_legendre",
        intercept: float = 1.0,
        coupling: Array | None = None,
        non_crossing: bool = False,
        solver: Solver | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        approximation: Approximation | None = None,
        pilot: bool = False,
        certificate: str = "approximate",
    ) -> None:
        self.kernel = kernel
        self.level_kernel = level_kernel
        self.lam = lam
        self.levels = levels
        self.quadrature = quadrature
        self.intercept = intercept
        self.coupling = coupling
        self.non_crossing = non_crossing
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.approximation = approximation
        self.pilot = pilot
        self.certificate = certificate

    @all_or_nothing
    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n, features)
            Inputs, or their Gram matrix with ``kernel="precomputed"``.
        y : array of shape (n,) or (n, d)
            Outputs.
        sample_weight : array of shape (n,) or None, default=None
            Sample weights; a sample of weight 2 counts twice.

        Returns
        -------
        self : QuantileFunctionRegressor
            The fitted model.
        """
        settings = self._settings()
        encoding = partial(self._encode, X, y, sample_weight, settings)
        return self._expose(*fit_refined(encoding, settings))

    def predict(self, X: Array, quantiles: ArrayLike = 0.5) -> Array:
        """Predict quantiles at any levels.

        Parameters
        ----------
        X : array of shape (n, features)
            Inputs, or their Gram matrix with the training inputs.
        quantiles : float or array of shape (q,), default=0.5
            Levels in (0, 1), in any order.

        Returns
        -------
        y : array of shape (n,) or (n, q), with several outputs (n, d) or (n, q, d)
            The quantiles, without the axis of levels if ``quantiles`` is a number.
        """
        levels = as_levels(quantiles, "quantiles")
        X = new_inputs(self, X)
        values = self._in_order(X, levels) if self.non_crossing else self._quantiles(X, levels)
        values = namespace(X).astype(values, X.dtype, copy=False)
        values = values[:, :, 0] if self._is_flat else values
        return values[:, 0, ...] if np.ndim(quantiles) == 0 else values

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
        return self.predict(X, [(1 - coverage) / 2, (1 + coverage) / 2])

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
        X = new_inputs(self, X)
        grid, values = self._ordered(X)
        known = host(values)
        levels = check_random_state(random_state).uniform(size=(len(known), n_samples, known.shape[2]))
        right = np.clip(np.searchsorted(grid, levels), 1, len(grid) - 1)
        share = (levels - grid[right - 1]) / (grid[right] - grid[right - 1])
        low, high = (np.take_along_axis(known, places, axis=1) for places in (right - 1, right))
        draws = as_like(low + share * (high - low), X)
        return draws[:, :, 0] if self._is_flat else draws

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
        X = new_inputs(self, X)
        counts, losses = sample_counts(sample_weight, X), self._losses(X, y)
        truth = _on_host(y).reshape(len(losses), -1)
        marginal = MarginalQuantiles.of(truth, counts, self.levels_)(self.levels_)
        total = float(np.average(self._integrated(truth[:, None, :] - marginal), weights=counts))
        error = float(np.average(losses, weights=counts))
        if total == 0:
            return 1.0 if error == 0 else 0.0
        return 1 - error / total

    def _losses(self, X: Array, y: Array) -> np.ndarray:
        """Return the loss of each sample, integrated over the levels of the model and summed over outputs."""
        predicted, truth = _on_host(self.predict(X, self.levels_)), _on_host(y)
        n = len(predicted)
        if len(truth) != n:
            raise ValueError(f"X and y must have the same number of samples. Got {n} and {len(truth)}.")
        return self._integrated(truth.reshape(n, 1, -1) - predicted.reshape(n, len(self.levels_), -1))

    def _integrated(self, residuals: np.ndarray) -> np.ndarray:
        """Return the loss of residuals (n, levels, d)."""
        return np.sum(pinball(residuals, self.levels_, self.level_weights_), axis=1)

    def _quantiles(self, X: Array, levels: np.ndarray) -> Array:
        """Return the quantiles before sorting, (n, levels, d)."""
        values = values_at_levels(self, X, levels)
        if self.pilot_ is None:
            return values + as_like(self.marginal_(levels), values)
        return self.pilot_.corrected(self.pilot_.columns(X), values, levels)

    def _ordered(self, X: Array) -> tuple[np.ndarray, Array]:
        """Return a fine grid of levels, and the sorted quantiles at these levels, (n, levels, d)."""
        grid = np.union1d(_FINE, self.levels_)
        values = self._quantiles(X, grid)
        return grid, namespace(values).sort(values, axis=1)

    def _in_order(self, X: Array, levels: np.ndarray) -> Array:
        """Return quantiles that never decrease with the level, (n, levels, d)."""
        grid, values = self._ordered(X)
        xp, near = namespace(values), grid[np.argmin(np.abs(grid - levels[:, None]), axis=1)]
        levels = np.where(np.abs(near - levels) < 1e-12, near, levels)  # levels of the grid are met exactly
        turned = xp.permute_dims(values, (0, 2, 1)) @ interpolation(grid, levels, values)
        return xp.permute_dims(turned, (0, 2, 1))

    def _settings(self) -> DualSettings:
        return DualSettings.of(self, Pinball(level_quadrature(self)[0]))

    def _set_loss_and_lam(self, loss: Loss, lam: float) -> Self:
        return self.set_params(lam=lam)  # there is one loss

    def _encode(
        self, X: Array, y: Outputs, sample_weight: Array | None, settings: DualSettings, double: bool = False
    ) -> EncodedQuantiles:
        """Return checked data in coordinates: the output at every level, minus its marginal quantile."""
        name = type(self).__name__
        for parameter in ("non_crossing", "pilot"):
            check_parameter(name, parameter, getattr(self, parameter), Options((True, False)))
        if y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        X, y = training_vectors(self, X, y, double)
        outputs = namespace(y).reshape(y, (y.shape[0], -1))
        levels, _ = level_quadrature(self)
        counts = sample_counts(sample_weight, X)
        marginal = MarginalQuantiles.of(host(outputs).astype(np.float64), counts, levels)
        values, pilot = outputs[:, None, :] - as_like(marginal(levels), outputs), None
        if self.pilot:
            values, pilot = self._rest(X, outputs, sample_weight, settings)
        kernel = Laplacian(2.0) if self.level_kernel is None else self.level_kernel
        level_set = encode_levels(self, X, values, kernel, self.coupling, sample_weight, settings)
        index = level_set.training_set.index
        kept = y if index is None else namespace(y).take(y, as_index(index, y), axis=0)
        return EncodedQuantiles(level_set, marginal, kept, pilot)

    def _rest(
        self, X: Array, outputs: Array, sample_weight: Array | None, settings: DualSettings
    ) -> tuple[Array, QuantilePilot]:
        """Return the residuals of a pilot at every level, in units of the spread, and the pilot."""
        kernel = as_operator_kernel(input_kernel(self))
        stored = replace(settings, solver=Auto())  # regressions in closed form need the Gram matrix
        training_set = encode(X, outputs, kernel, Euclidean(), stored, sample_weight)
        pilot = fit_pilot(training_set, *level_quadrature(self))
        rest = pilot.rest(host(training_set.targets), level_quadrature(self)[0])
        return training_set.given(as_like(rest, outputs)), pilot

    def _expose(self, encoded: EncodedQuantiles, fitted: FittedDual) -> Self:
        """Set the fitted attributes."""
        expose(self, fitted)
        level_set = encoded.level_set
        self._operator = level_set.operator.resolve(self.representation_.grid_)
        self.levels_, self.level_weights_ = level_set.levels, level_set.weights
        self._is_flat, self.marginal_, self.pilot_ = encoded.outputs.ndim == 1, encoded.marginal, encoded.pilot
        self.crossing_rate_ = self._crossings(fitted)
        return self

    def _crossings(self, fitted: FittedDual) -> float:
        """Return the fraction of neighbouring levels whose quantiles cross in the training sample."""
        predictions = fitted.problem.unscale(fitted.solution.predictions)
        values = host(fitted.training_set.representation.decode(predictions))
        if self.pilot_ is None:
            values = values + self.marginal_(self.levels_)
        else:
            values = self.pilot_.corrected(self.pilot_.left_out, values, self.levels_)
        falls = np.diff(values, axis=1)
        round_off = 64 * eps(fitted.problem.targets) * np.max(np.abs(values), initial=0.0)
        return float(np.mean(falls < -round_off)) if falls.size else 0.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        with suppress(TypeError, ValueError):  # fit raises the error, with its message
            tags.input_tags.pairwise = as_scalar_kernel(self.kernel).tags.is_pairwise
        return tags


def _on_host(array: Array) -> np.ndarray:
    """Return numbers as a float64 NumPy array."""
    return np.asarray(array if is_host(array) else host(array), dtype=np.float64)
