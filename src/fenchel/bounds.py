"""Generalisation bounds for fitted models, from algorithmic stability."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, host
from fenchel._check import Interval, check_parameter
from fenchel._component import state_of
from fenchel.exceptions import IncompatibleError
from fenchel.held_out import held_out
from fenchel.kernels import ScalarKernel
from fenchel.losses import Loss
from fenchel.losses.profile import Profile

__all__ = ["GeneralizationBound", "generalization_bound"]

_HALVINGS = 200


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
        The bound M of Assumption 7.
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
    estimator: Any,
    delta: float,
    output_bound: float,
    kernel_bound: float | None = None,
    X: Any = None,
    y: Any = None,
) -> GeneralizationBound:
    r"""Bound the risk of a fitted model by the stability of its algorithm.

    With probability :math:`1 - \delta` over the draw of n independent training samples,

    .. math:: R(h) \le \hat R_n(h) + 2\beta + (4 n \beta + M) \sqrt{\frac{\ln(1/\delta)}{2n}},
        \qquad \beta = \frac{C^2 \gamma^2}{\lambda n} .

    For a loss f of the norm of the residual, :math:`\|h(x)\| \le T := \gamma \sqrt{2 f(M_Y) / \lambda}`, from which
    :math:`M = f(M_Y + T)` and :math:`C = f'(M_Y + T)`. The theorem is about the exact minimiser. The model is within
    :math:`\gamma\sqrt{2 g / \lambda}` of it, where g is the duality gap, and twice C times that is added.

    Bounds of this kind are loose, often by orders of magnitude. With ``X`` and ``y`` the leave-one-out estimate of the
    same risk is reported for comparison.

    Parameters
    ----------
    estimator : OperatorKernelRegressor or FunctionalRegressor
        A fitted model whose kernel, centre and scale do not depend on the sample, with a loss of the norm of the
        residual and samples of equal weight.
    delta : float
        Probability that the bound does not hold, in (0, 1).
    output_bound : float
        Upper bound :math:`M_Y` on the norm of any output (for a curve, its norm in L²).
    kernel_bound : float or None, default=None
        Upper bound on k(x, x). ``None`` uses the bound of the kernel, if it is bounded.
    X, y : array or None, default=None
        The training data, for the leave-one-out estimate.

    Returns
    -------
    bound : GeneralizationBound
        The bound and its components.

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
    check_is_fitted(estimator)
    check_parameter("generalization_bound", "delta", delta, Interval(0, 1))
    check_parameter("generalization_bound", "output_bound", output_bound, Interval(0, math.inf, "left"))
    profile = _checked_profile(estimator)
    lam, n = float(estimator.lam), int(estimator.dual_coef_.shape[0])
    gamma = math.sqrt(_kernel_bound(estimator, kernel_bound))
    reach = output_bound + gamma * math.sqrt(2 * _value(profile, output_bound) / lam)
    largest, lipschitz = _value(profile, reach), derivative(profile, reach)
    stability = lipschitz**2 * gamma**2 / (lam * n)
    gap = max(0.0, estimator.primal_objective_ - estimator.dual_objective_)
    optimization = 2 * lipschitz * gamma * math.sqrt(2 * gap / lam)
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


def _checked_profile(estimator: Any) -> Profile:
    """Return the profile of the loss; raise if an assumption of the theorems is not met."""
    loss: Loss = estimator.loss_
    if loss.profile is None or not math.isinf(loss.profile.radius):
        raise IncompatibleError(
            f"The bound is for losses of the norm of a residual that are finite everywhere. Got {loss!r}. Use Square, "
            "Huber, EpsilonRidge or EpsilonSVR with p=2."
        )
    if estimator.certificate_ != "exact" or estimator.approximation_ is not None:
        raise IncompatibleError(
            "The bound is for kernels that do not depend on the sample, and landmarks or random features do. "
            "Use approximation=None."
        )
    moved = [name for name in ("center", "scale") if getattr(estimator, name, False) is not False]
    if moved:
        raise IncompatibleError(
            f"The bound is for outputs in their original units: {' and '.join(moved)} depend on the sample. Use "
            f"{', '.join(f'{name}=False' for name in moved)}."
        )
    if _depends_on_sample(estimator):
        raise IncompatibleError(
            f"The bound is for a kernel that does not depend on the sample. Got {estimator.kernel!r}. Give numbers for "
            "its bandwidth and scales."
        )
    weights = getattr(estimator.representation_, "weights_", None)
    if weights is not None and float(np.ptp(host(weights))) > 0:
        raise IncompatibleError("The bound is for samples of equal weight. Fit without sample_weight.")
    return loss.profile


def _depends_on_sample(estimator: Any) -> bool:
    """Whether the parameters of the kernel depend on the sample."""
    X = estimator.X_fit_
    if not isinstance(estimator.kernel, ScalarKernel) or estimator.kernel.is_pairwise or X.shape[0] < 4:
        return False
    parts = [state_of(estimator.kernel.resolve(part)) for part in (X, X[: X.shape[0] // 2, ...])]
    return parts[0] != parts[1]  # their reprs show only the ends of long arrays


def _kernel_bound(estimator: Any, given: float | None) -> float:
    """Return the largest operator norm of K(x, x)."""
    terms = getattr(estimator._expansion.kernel, "terms", None)
    if terms is None:
        raise IncompatibleError("The bound is for sums of separable kernels.")
    norms = [_norm(operator) for _, operator in terms]
    if given is not None:
        check_parameter("generalization_bound", "kernel_bound", given, Interval(0, math.inf))
        return float(given) * sum(norms)
    bound = float(sum(kernel.diag_bound * norm for (kernel, _), norm in zip(terms, norms, strict=True)))
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


def _squared_norm(estimator: Any) -> float:
    """Return the squared norm of the model in the space of its kernel."""
    expansion = estimator._expansion
    if expansion.coef.shape[0] == 0:
        return 0.0
    images = expansion.kernel.gram(expansion.X, expansion.X).matmul(expansion.coef)
    return float(np.sum(host(expansion.coef) * host(images)))


def _left_out_risk(estimator: Any, X: Any, y: Any) -> tuple[float, float]:
    """Return the mean loss of left-out samples, with its standard error."""
    fresh = clone(estimator)
    settings = fresh._settings()
    training_set = fresh._encode(X, y, None, settings, double=True).training_set
    problem = training_set.problem(estimator.loss_, float(estimator.lam))
    folds = [np.array([i]) for i in range(training_set.n_samples)]
    (held,) = held_out(problem, [estimator.loss_], [float(estimator.lam)], folds, settings.tol)
    losses = host(estimator.loss_.value(host(training_set.targets) - host(held.predictions)))
    return float(np.mean(losses)), float(np.std(losses, ddof=1) / math.sqrt(len(losses)))


def _value(profile: Profile, t: float) -> float:
    return float(profile.value(np.array([float(t)]))[0])


def _slope(profile: Profile, s: float) -> float:
    return float(profile.slope(np.array([s]))[0])
