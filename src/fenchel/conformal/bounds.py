"""Generalisation bounds for fitted models, from algorithmic stability."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fenchel import losses as loss_room
from fenchel._array import Array, Inputs, Outputs, eps, host, row_norms
from fenchel._check import Interval, check_parameter
from fenchel._component import state_of
from fenchel.estimators import FunctionalRegressor, OperatorKernelRegressor, StructuredPredictor
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import as_scalar_kernel
from fenchel.kernels.separable import BoundTerms
from fenchel.losses import Loss
from fenchel.losses.profile import Profile
from fenchel.model.machine import kernel_of, training_set_of
from fenchel.model.spec import part_of
from fenchel.representations import CoordinateSpace
from fenchel.resample.held_out import held_out

__all__ = ["GeneralizationBound", "generalization_bound"]

_HALVINGS = 200  # more halvings of an interval change nothing in float64
_ROUND_OFF = 1e3  # in eps: share of the outputs that a representation without loss may seem to drop


@dataclass(frozen=True)
class GeneralizationBound:
    """Bound on the risk of a model that holds with probability ``1 - delta`` over the draw of the training sample.

    The risk is the expected loss of a new sample, in the units of the loss.

    Attributes
    ----------
    bound : float
        The bound on the risk.
    training_risk : float
        Mean loss of the training sample.
    stability : float
        The stability constant beta of Theorem 9.
    largest_loss : float
        The bound M of Assumption 7, above the smallest value of the loss.
    lipschitz : float
        The Lipschitz constant C of Assumption 9.
    optimization_error : float
        Contribution of the duality gap of the fit.
    delta : float
        Probability that the bound fails.
    left_out_risk, left_out_standard_error : float or None
        Leave-one-out estimate of the risk and its standard error; ``None`` without data.
    """

    bound: float
    training_risk: float
    stability: float
    largest_loss: float
    lipschitz: float
    optimization_error: float
    delta: float
    left_out_risk: float | None = None
    left_out_standard_error: float | None = None

    @property
    def looseness(self) -> float | None:
        """The bound divided by the leave-one-out estimate of the risk, ``None`` without data."""
        return None if self.left_out_risk is None else self.bound / self.left_out_risk


def generalization_bound(
    estimator: BaseEstimator,
    delta: float,
    output_bound: float,
    kernel_bound: float | None = None,
    X: Inputs = None,
    y: Outputs = None,
) -> GeneralizationBound:
    r"""Bound the risk of a fitted model by the stability of its algorithm.

    With probability :math:`1 - \delta` over the draw of n independent training samples,

    .. math:: R(h) \le \hat R_n(h) + 2\beta + (4 n \beta + M) \sqrt{\frac{\ln(1/\delta)}{2n}},
        \qquad \beta = \frac{C^2 \gamma^2}{\lambda n} .

    For a loss of the norm of the residual f is this function. For a norm of order p other than 2, and for ``Pinball``,
    f is a loss of the Euclidean norm above it, with slopes that bound its gradients (see Notes). Then
    :math:`\|h(x)\| \le T := \gamma \sqrt{2 (f(M_Y) - f(0)) / \lambda}`, from which :math:`M = f(M_Y + T) - f(0)` and
    :math:`C = f'(M_Y + T)`. The theorem is about the exact minimiser. The model is within
    :math:`t = \gamma\sqrt{2 g / \lambda}` of it, where g is the duality gap, and :math:`2 t f'(M_Y + T + t)` is added.

    Bounds of this kind are loose, often by orders of magnitude. With ``X`` and ``y`` the leave-one-out estimate of the
    same risk is reported for comparison.

    Parameters
    ----------
    estimator : OperatorKernelRegressor, FunctionalRegressor or StructuredPredictor
        A fitted model whose kernels, operator, loss, centre and scale do not depend on the sample, with a loss of a
        norm of the residual or ``Pinball``, samples of equal weight and a representation that keeps the outputs. The
        risk of a ``StructuredPredictor`` is that in the feature space, before decoding.
    delta : float
        Probability that the bound does not hold, in (0, 1).
    output_bound : float
        Upper bound :math:`M_Y` on the norm of any output (for a curve, its norm in L²), in the sample or not.
    kernel_bound : float or None, default=None
        Upper bound on k(x, x). ``None`` uses the bound of the kernel, if it is bounded.
    X, y : array or None, default=None
        The training data, for the leave-one-out estimate.

    Returns
    -------
    bound : GeneralizationBound
        The bound and its components.

    Notes
    -----
    Let :math:`\|r\|_p \le E \|r\|` for all residuals. The dual ball of radius :math:`\kappa` lies in the Euclidean one
    of radius :math:`E \kappa`, and the p-ball of radius :math:`\varepsilon` contains the Euclidean one of radius
    :math:`\varepsilon / E`. Hence ``Huber(kappa * E)``, ``EpsilonRidge(epsilon / E)`` and E times
    ``EpsilonSVR(epsilon / E)`` are above the losses of order p, and the slopes bound their gradients. For p < 2,
    :math:`E = W^{1/p - 1/2}`, where W is the number of coordinates, or the length of the interval of a curve. For p > 2
    E is 1 for vectors; for curves it is that of the smallest quadrature weight, which grows without bound as the grid
    becomes finer: the norm of order p of a function is not bounded by that in L².

    References
    ----------
    [Laforgue2020]_, Theorems 8 to 10.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor, generalization_bound
    >>> from fenchel.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(-3, 3, (400, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = OperatorKernelRegressor(Gaussian(1.0), loss="huber", lam=0.1).fit(X, y)
    >>> found = generalization_bound(model, delta=0.05, output_bound=1.0, X=X, y=y)
    >>> bool(found.left_out_risk < found.bound), bool(found.looseness > 2)
    (True, True)
    """
    if not isinstance(estimator, OperatorKernelRegressor | FunctionalRegressor | StructuredPredictor):
        raise TypeError(
            "generalization_bound takes a fitted OperatorKernelRegressor, FunctionalRegressor or StructuredPredictor: "
            f"the theorem is about the minimiser of one problem with fixed kernel, loss and lam. Got {estimator!r}."
        )
    check_is_fitted(estimator)
    check_parameter("generalization_bound", "delta", delta, Interval(0, 1))
    check_parameter("generalization_bound", "output_bound", output_bound, Interval(0, math.inf, "left"))
    profile = _checked_profile(estimator)
    _check_outputs(estimator, output_bound)
    lam, n = estimator.model_.spec.lam, estimator.model_.targets.n_samples
    gamma, least = math.sqrt(largest_kernel_norm(estimator, kernel_bound)), _value(profile, 0.0)
    reach = output_bound + gamma * math.sqrt(2 * (_value(profile, output_bound) - least) / lam)
    largest, lipschitz = _value(profile, reach) - least, derivative(profile, reach)
    stability = lipschitz**2 * gamma**2 / (lam * n)
    gap = max(0.0, estimator.primal_objective_ - estimator.dual_objective_)
    distance = gamma * math.sqrt(2 * gap / lam)
    optimization = 2 * distance * derivative(profile, reach + distance)
    training_risk = estimator.primal_objective_ - lam / 2 * _squared_norm(estimator)
    deviation = (4 * n * stability + largest) * math.sqrt(math.log(1 / delta) / (2 * n))
    left_out = (None, None) if X is None else _left_out_risk(estimator, X, y)
    bound = training_risk + 2 * stability + deviation + optimization
    return GeneralizationBound(
        bound, training_risk, stability, largest, lipschitz, optimization, float(delta), *left_out
    )


def derivative(profile: Profile, t: float) -> float:
    """Return f'(t), the largest dual s whose slope f*' is at most t."""
    low, high = 0.0, min(profile.bound, 1.0)
    while high < profile.bound and _slope(profile, high) <= t:
        low, high = high, min(2 * high, profile.bound)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _slope(profile, middle) <= t else (low, middle)
    return high


def _checked_profile(estimator: BaseEstimator) -> Profile:
    """Return the profile of the loss; raise if an assumption of the theorems is not met."""
    loss, targets = estimator.loss_, estimator.model_.targets
    profile = loss.bind(targets.rows, targets.point_scale).envelope(targets.rows.shape[1])
    if profile is None or not math.isinf(profile.radius):
        raise IncompatibleError(
            f"The bound is for losses of the norm of a residual that are finite everywhere. Got {loss!r}. Use Square, "
            "Huber, EpsilonRidge, EpsilonSVR or Pinball."
        )
    if part_of(estimator.loss, loss_room, "loss", Loss).is_relative:
        raise IncompatibleError(
            f"The bound is for a loss that does not depend on the sample. Got {estimator.loss!r}, whose parameter is "
            "taken from the residuals. Give a number."
        )
    if estimator.certificate_ != "exact" or estimator.approximation_ is not None:
        raise IncompatibleError(
            "The bound is for kernels that do not depend on the sample, and landmarks or random features do. "
            "Use approximation=None."
        )
    moved = [name for name in ("center", "scale") if estimator.get_params(deep=False).get(name, False) is not False]
    if "scale" in moved and not np.any(np.asarray(estimator.model_.codec.units) != 1.0):
        moved.remove("scale")  # "auto" left the outputs as they are
    if moved:
        raise IncompatibleError(
            f"The bound is for outputs in their original units: {' and '.join(moved)} depend on the sample. Use "
            f"{', '.join(f'{name}=False' for name in moved)}."
        )
    if depends_on_sample(estimator):
        raise IncompatibleError(
            f"The bound is for a kernel that does not depend on the sample. Got {kernel_of(estimator)!r}. Give "
            "numbers for its bandwidth and scales, and a fixed output operator."
        )
    weights = estimator.model_.weights
    if weights is not None and float(np.ptp(host(weights))) > 0:
        raise IncompatibleError("The bound is for samples of equal weight. Fit without sample_weight.")
    return profile


def _check_outputs(estimator: BaseEstimator, output_bound: float) -> None:
    """Raise unless the coordinates of the outputs are all of them, are fixed, and within the stated bound."""
    representation, targets = estimator.representation_, estimator.model_.targets
    parameters = representation.get_params(deep=False)
    if parameters.get("approximation") is not None or parameters.get("center"):
        raise IncompatibleError(
            "The bound is for outputs in their own space: an approximation or the mean of the outputs depends on the "
            "sample. Use output_approximation=None and center=False."
        )
    if hasattr(representation, "outputs_") and _changes(
        as_scalar_kernel(representation.kernel).resolve, representation.outputs_
    ):
        raise IncompatibleError(
            f"The bound is for an output kernel that does not depend on the sample. Got {representation.kernel!r}. "
            "Give numbers for its bandwidth and scales."
        )
    dropped = getattr(representation, "representation_error_", 0.0)
    if dropped > _ROUND_OFF * eps(targets.rows):
        raise IncompatibleError(
            f"The bound is for whole outputs, and {type(representation).__name__} drops {dropped:.1e} of their squared "
            "norm. Use more components, or representation='spline'."
        )
    if targets.row_scale is not None:
        raise IncompatibleError(
            "The bound is for curves observed at common points: the norms of curves with missing values depend on "
            "their points. Use complete curves."
        )
    largest = float(np.max(host(row_norms(targets.rows)), initial=0.0))
    if largest > output_bound * (1 + _ROUND_OFF * eps(targets.rows)):
        raise ValueError(
            f"output_bound must be at least the norm of every output. Got {output_bound:g}, and the sample has an "
            f"output of norm {largest:.4g}. Give a bound that holds for all outputs, not only those of the sample."
        )


def depends_on_sample(estimator: BaseEstimator) -> bool:
    """Whether the parameters of the kernel, or its operator, depend on the inputs or the outputs of the sample."""
    kernel, model = kernel_of(estimator), estimator.model_
    own = CoordinateSpace(model.codec.representation, model.targets.rows, model.weights)
    other = replace(own, targets=2 * own.targets + 1)

    def terms(X: Array, space: CoordinateSpace = own) -> Any:
        bound = kernel.bind(X, space)
        return bound.terms if isinstance(bound, BoundTerms) else ()

    X = estimator.X_fit_
    if X.shape[0] < 2:  # any inputs will do
        X = np.geomspace(1.0, 100.0, 4 * math.prod(X.shape[1:])).reshape(4, *X.shape[1:])
    return state_of(terms(X)) != state_of(terms(X, other)) or (not kernel.is_pairwise and _changes(terms, X))


def _changes(resolve: Callable[[Any], Any], sample: Array) -> bool:
    """Whether a function of a sample differs between the sample, half of it and its first row."""
    n = sample.shape[0]
    states = [state_of(resolve(sample[:size, ...])) for size in (n, (n + 1) // 2, 1)]  # reprs show only ends of arrays
    return any(state != states[0] for state in states)


def largest_kernel_norm(estimator: BaseEstimator, given: float | None) -> float:
    """Return the largest operator norm of K(x, x)."""
    kernel = estimator.model_.expansion.kernel
    if not isinstance(kernel, BoundTerms):
        raise IncompatibleError("The bound is for sums of separable kernels.")
    terms, norms = kernel.terms, [_norm(operator) for _, operator in kernel.terms]
    if given is not None:
        check_parameter("generalization_bound", "kernel_bound", given, Interval(0, math.inf))
        known = [host(kernel.diag(estimator.X_fit_)) for kernel, _ in terms if not kernel.tags.is_pairwise]
        largest = max((float(np.max(values, initial=0.0)) for values in known), default=0.0)
        if largest > given * (1 + _ROUND_OFF * eps(estimator.dual_coef_)):
            raise ValueError(
                f"kernel_bound must be at least k(x, x) of every input. Got {given:g}, and the sample has an input "
                f"with k(x, x) = {largest:.4g}."
            )
        return float(given) * sum(norms)
    bound = float(sum(kernel.tags.diag_bound * norm for (kernel, _), norm in zip(terms, norms, strict=True)))
    if not math.isfinite(bound):
        raise IncompatibleError(
            "The bound needs the largest value of k(x, x) over all inputs, and the kernel is not bounded. "
            "Give it as kernel_bound, or use a bounded kernel such as Gaussian."
        )
    return bound


def _norm(operator: Array | None) -> float:
    if operator is None:
        return 1.0
    matrix = host(operator)
    return float(np.max(np.abs(matrix)) if matrix.ndim == 1 else np.linalg.norm(matrix, 2))


def _squared_norm(estimator: BaseEstimator) -> float:
    """Return the squared norm of the model in the space of its kernel."""
    expansion = estimator.model_.expansion
    if expansion.coef.shape[0] == 0:
        return 0.0
    images = expansion.kernel.gram(expansion.X, expansion.X).matmul(expansion.coef)
    return float(np.sum(host(expansion.coef) * host(images)))


def _left_out_risk(estimator: BaseEstimator, X: Inputs, y: Outputs) -> tuple[float, float]:
    """Return the mean loss of left-out samples, with its standard error."""
    training_set, spec = training_set_of(estimator, X, y), estimator.model_.spec
    folds = [np.array([i]) for i in range(training_set.n_samples)]
    problem = training_set.problem(spec.loss, spec.lam)
    (held,) = held_out(problem, [spec.loss], [spec.lam], folds, spec.tol)
    losses = host(problem.loss.value(host(training_set.targets.rows) - host(held.predictions)))
    return float(np.mean(losses)), float(np.std(losses, ddof=1) / math.sqrt(len(losses)))


def _value(profile: Profile, t: float) -> float:
    return float(profile.value(np.array([float(t)]))[0])


def _slope(profile: Profile, s: float) -> float:
    return float(profile.slope(np.array([s]))[0])
