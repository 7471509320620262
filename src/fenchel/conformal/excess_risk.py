"""Bound on the excess task risk of the loss trick."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Outputs, host
from fenchel._check import Interval, check_parameter
from fenchel.conformal.bounds import depends_on_sample, largest_kernel_norm
from fenchel.estimators import LossTrickPredictor
from fenchel.exceptions import IncompatibleError
from fenchel.losses.loss import is_square

__all__ = ["ExcessRiskBound", "excess_risk_bound"]


@dataclass(frozen=True)
class ExcessRiskBound:
    r"""Bound on the excess task risk that holds with probability ``1 - delta`` over the draw of the training sample.

    Attributes
    ----------
    bound : float
        The bound on the expected task loss minus that of the best predictor.
    sample_error, penalty_error : float
        Its two parts: the error due to the size of the sample, and that due to ``lam``.
    constant : float
        The constant :math:`c_\Delta` of the task loss.
    delta : float
        Probability that the bound fails.
    """

    bound: float
    sample_error: float
    penalty_error: float
    constant: float
    delta: float


def excess_risk_bound(
    estimator: Any, delta: float, target_norm: float, outputs: Outputs, kernel_bound: float | None = None
) -> ExcessRiskBound:
    r"""Bound the task risk of a fitted ``LossTrickPredictor`` minus that of Bayes' rule.

    If the conditional mean :math:`g^*` of the features of the output is in the space of the kernel, with norm at most
    B, then with probability :math:`1 - \delta`

    .. math:: \mathcal E(\hat f) - \mathcal E(f^*) \le 2 c_\Delta \Bigl[ (Q \gamma + B \gamma^2) \, t
        \sqrt{\frac1{4 \lambda} + \frac{\gamma^2 t}{\lambda^2}} + \frac{\sqrt\lambda}2 B \Bigr], \qquad
        t = \frac{2 L}{n} + \sqrt{\frac{2 L}{n}}, \quad L = \log \frac4\delta ,

    where :math:`c_\Delta` and Q are those of ``task_loss.embedding`` and :math:`\gamma^2` bounds k(x, x). The rate
    :math:`n^{-1/4}` follows for :math:`\lambda = \gamma^2 n^{-1/2}`.

    Bounds of this kind are loose, often by orders of magnitude.

    Parameters
    ----------
    estimator : LossTrickPredictor
        A fitted model with the square surrogate, a kernel and a ``lam`` that do not depend on the sample, and samples
        of equal weight. Its decoder must find the best prediction; ``"training_set"`` does if the training outputs
        are all possible outputs.
    delta : float
        Probability that the bound does not hold, in (0, 1).
    target_norm : float
        Upper bound B on the norm of :math:`g^*`. It is a property of the unknown distribution, not of the sample.
    outputs : array or list
        All possible outputs; for numbers it is enough to have the extremes.
    kernel_bound : float or None, default=None
        Upper bound on k(x, x). ``None`` uses the bound of the kernel, if it is bounded.

    Returns
    -------
    bound : ExcessRiskBound
        The bound and its parts.

    Notes
    -----
    This is Theorem 5 of [Ciliberto2016]_, from its Lemma 18 for any :math:`\lambda`, with two steps sharpened:
    :math:`\sigma / (\sigma + \lambda)^2 \le 1 / 4 \lambda`, and one event for each of two deviations. It is never above
    Lemma 18. The printed proof of Theorem 5 sets :math:`\lambda = \kappa^2 n^{-1/4}` where its last lines need
    :math:`n^{-1/2}`, and drops the norm of :math:`g^*` from the last term.

    References
    ----------
    [Ciliberto2016]_, Thm 5 and Lemma 18; [SmaleZhou2007]_, Lemma 2.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LossTrickPredictor, excess_risk_bound
    >>> from fenchel.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(-3, 3, (400, 1))
    >>> model = LossTrickPredictor(Gaussian(1.0), "zero_one", lam=0.05).fit(X, X[:, 0] > 0)
    >>> found = excess_risk_bound(model, delta=0.05, target_norm=2.0, outputs=[False, True])
    >>> bool(found.bound == found.sample_error + found.penalty_error)
    True
    """
    if not isinstance(estimator, LossTrickPredictor):
        raise TypeError(f"excess_risk_bound takes a fitted LossTrickPredictor. Got {estimator!r}.")
    check_is_fitted(estimator)
    check_parameter("excess_risk_bound", "delta", delta, Interval(0, 1))
    check_parameter("excess_risk_bound", "target_norm", target_norm, Interval(0, math.inf, "left"))
    _check(estimator)
    embedding = estimator.task_loss_.embedding(outputs)
    lam, n = estimator.lam_, estimator.model_.targets.n_samples
    gamma, log = math.sqrt(largest_kernel_norm(estimator, kernel_bound)), math.log(4 / delta)
    deviation = 2 * log / n + math.sqrt(2 * log / n)
    resolvent = math.sqrt(1 / (4 * lam) + gamma**2 * deviation / lam**2)
    moments = gamma * (embedding.feature_bound + gamma * target_norm)
    sample_error = 2 * embedding.constant * moments * deviation * resolvent
    penalty_error = embedding.constant * math.sqrt(lam) * target_norm
    return ExcessRiskBound(sample_error + penalty_error, sample_error, penalty_error, embedding.constant, float(delta))


def _check(estimator: LossTrickPredictor) -> None:
    """Raise if an assumption of the theorem is not met."""
    spec, weights = estimator.model_.spec, estimator.model_.weights
    if not is_square(spec.loss):
        raise IncompatibleError(f"The bound is for the square surrogate. Got {spec.loss!r}.")
    if estimator.lams is not None:
        raise IncompatibleError("The bound is for a lam that does not depend on the sample. Give lam instead of lams.")
    if estimator.certificate_ != "exact" or estimator.approximation_ is not None or depends_on_sample(estimator):
        raise IncompatibleError(
            f"The bound is for a kernel that does not depend on the sample. Got {estimator.kernel!r} with "
            f"approximation={estimator.approximation_!r}. Give numbers for its bandwidth and scales."
        )
    if weights is not None and float(np.ptp(host(weights))) > 0:
        raise IncompatibleError("The bound is for samples of equal weight. Fit without sample_weight.")
