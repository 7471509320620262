"""Regression of the entire conditional quantile function in one fit."""

from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from fenchel._array import Array, Outputs, as_like, eps, host, namespace
from fenchel._check import Options, check_parameters
from fenchel._progress import tracked
from fenchel.approximations import Approximation
from fenchel.data.frames import column_names
from fenchel.estimators.quantile_pilot import QuantilePilot, fit_pilot
from fenchel.estimators.quantile_predictions import QuantileRegressor
from fenchel.kernels import KernelLike, Laplacian, as_operator_kernel, is_pairwise
from fenchel.losses import Loss, Pinball
from fenchel.model.fit import Fit
from fenchel.model.forms import InputForm, OutputForm, vectors_like
from fenchel.model.input_gaps import fills_gaps, is_open, with_medians
from fenchel.model.levels import LevelCodec, LevelTask, level_quadrature
from fenchel.model.marginal_quantiles import MarginalQuantiles
from fenchel.model.sample import Sample
from fenchel.model.spec import Spec
from fenchel.model.training_set import TrainingSet
from fenchel.model.vectors import VectorCodec, with_values
from fenchel.representations import Coordinates, Euclidean
from fenchel.search.choice import distinct
from fenchel.solvers import Solver

__all__ = ["QuantileFunctionRegressor", "QuantileRegressor"]


@dataclass(frozen=True)
class Quantiles(LevelTask):
    """Outputs at every level, minus their marginal quantiles or the predictions of a pilot."""

    pilot: bool = False
    spec: Spec | None = None  # of the pilot

    def sample(self, owner: BaseEstimator, X: Array, y: Outputs, sample_weight: Array | None = None) -> Sample:
        """Return checked data."""
        if y is None:
            raise ValueError(f"{self.owner} requires y to be passed, but the target y is None.")
        names = column_names(y)
        X, y, inputs = InputForm.learn(
            owner,
            X,
            y,
            takes_missing=fills_gaps(self.kernel),
            is_open=is_open(self.kernel),
            is_pairwise=is_pairwise(self.kernel),
            takes_gaps=True,
        )
        y = vectors_like(y, X, takes_gaps=True)
        form = OutputForm(tuple(y.shape[1:]), names=names)
        sample = with_values(Sample.of(X, y, inputs, form, sample_weight))
        lacking = np.flatnonzero(np.isnan(host(sample.y)).reshape(sample.n_samples, -1).any(axis=1))
        if len(lacking):
            place = lacking[0] if sample.index is None else sample.index[lacking[0]]
            raise ValueError(
                f"y must have all outputs of a sample, or none. Some are missing in {len(lacking)} of "
                f"{sample.n_samples} samples, the first at index {place}. Drop these samples, or fit each output by "
                "itself on those that have it."
            )
        return with_medians(sample, self.kernel)

    def learn(self, sample: Sample) -> tuple[LevelCodec, Coordinates]:
        """Return the marginal quantiles or the pilot, and the outputs relative to them."""
        outputs = namespace(sample.y).reshape(sample.y, (sample.n_samples, -1))
        levels, weights = self.nodes()
        marginal = MarginalQuantiles.of(host(outputs).astype(np.float64), sample.counts, levels)
        if not self.pilot:
            return self.coordinates(outputs[:, None, :] - as_like(marginal(levels), outputs), sample, marginal)
        representation, spec = Euclidean(), cast(Spec, self.spec).stored()
        targets, kernel = representation.learn(outputs), as_operator_kernel(self.input_kernel(sample))
        once, which = distinct(sample)  # a copy would give away the output that is left out
        training_set = TrainingSet.of(once, VectorCodec(representation), representation.learn(once.y), kernel, spec)
        pilot = fit_pilot(training_set, levels, weights)
        pilot = replace(pilot, left_out=pilot.left_out[which])
        return self.coordinates(as_like(pilot.rest(host(targets.rows), levels), outputs), sample, marginal, pilot)


class QuantileFunctionRegressor(QuantileRegressor):
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

    A kernel of the levels with M features, :math:`g = \sum_m \lambda_m \psi_m \otimes \psi_m`, restricts h to the span
    of M functions of the level, and the duals remain free in their box; [Laforgue2019]_, eq. (16) restricts the duals.

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
        kernel: KernelLike = "gaussian",
        level_kernel: KernelLike | None = None,
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

    @tracked
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
        return self._learned(X, y, sample_weight)

    def _spec(self) -> Spec:
        name = type(self).__name__
        return Spec.of(self, Pinball(level_quadrature(name, self.levels, self.quadrature)[0]))

    def _pair(self, loss: Loss, lam: float) -> dict[str, Any]:
        return {"lam": lam}  # there is one loss

    def _task(self, **form: Any) -> Quantiles:
        check_parameters(self, dict.fromkeys(("non_crossing", "pilot"), Options((True, False))))
        return Quantiles(
            type(self).__name__,
            self.kernel,
            Laplacian(2.0) if self.level_kernel is None else self.level_kernel,
            self.levels,
            self.quadrature,
            self.intercept,
            self.coupling,
            self.pilot,
            self._spec(),
        )

    def _kept(self, fit: Fit) -> Self:
        super()._kept(fit)
        self.crossing_rate_ = _crossings(fit)
        return self


def _crossings(fit: Fit) -> float:
    """Return the fraction of neighbouring levels whose quantiles cross in the training sample."""
    codec = cast(LevelCodec, fit.training_set.codec)
    values = host(codec.decode(fit.predictions))
    if isinstance(codec.pilot, QuantilePilot):
        values = codec.pilot.corrected(codec.pilot.left_out, values, codec.levels)
    falls = np.diff(values, axis=1)
    round_off = 64 * eps(fit.problem.targets) * np.max(np.abs(values), initial=0.0)
    return float(np.mean(falls < -round_off)) if falls.size else 0.0
