"""Cost-sensitive classification for every ratio of costs in one fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from fenchel._array import Array, Outputs, as_like, device, host, is_host, namespace
from fenchel._progress import tracked
from fenchel.approximations import Approximation
from fenchel.data.frames import column_names, in_container
from fenchel.kernels import Gaussian, KernelLike, is_pairwise
from fenchel.losses import CostSensitiveHinge, Loss
from fenchel.model.forms import InputForm, OutputForm, plain
from fenchel.model.input_gaps import fills_gaps, is_open, with_medians
from fenchel.model.levels import LevelCodec, LevelTask, as_levels, level_quadrature
from fenchel.model.machine import Fitted, KernelMachine
from fenchel.model.sample import Sample
from fenchel.model.spec import Spec
from fenchel.model.vectors import with_values
from fenchel.representations import Coordinates
from fenchel.solvers import Solver

__all__ = ["CostCurve", "CostSensitiveClassifier"]


@dataclass(frozen=True)
class Signs(LevelTask):
    """Labels of two classes, as 1 and -1 at every cost."""

    def sample(self, owner: BaseEstimator, X: Array, y: Outputs, sample_weight: Array | None = None) -> Sample:
        """Return checked data; the classes are set on the owner."""
        if y is None:
            raise ValueError(f"{self.owner} requires y to be passed, but the target y is None.")
        names, (y, seen) = column_names(y), _known_labels(plain(y, "y"))
        tests = {"is_pairwise": is_pairwise, "takes_missing": fills_gaps, "is_open": is_open}
        form = {name: test(self.kernel) for name, test in tests.items()}
        if is_host(X):
            X, y, inputs = InputForm.learn(owner, X, y, **form)
        else:
            X, _, inputs = InputForm.learn(owner, X, **form)
            y = np.asarray(y if is_host(y) else host(y))
            if y.shape != (X.shape[0],):
                raise ValueError(f"y must have shape ({X.shape[0]},), one label for each sample. Got {y.shape}.")
        with np.errstate(all="ignore"):  # labels of any size
            check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}: y has "
                f"{len(classes)} classes."
            )
        if len(classes) < 2:
            raise ValueError(f"y must hold two classes. Got one class only, {classes.tolist()[0]!r}.")
        vars(owner)["classes_"] = classes
        values = np.where(y == classes[1], 1.0, -1.0)
        values[~seen] = np.nan
        sample = with_values(Sample.of(X, values, inputs, OutputForm(names=names), sample_weight))
        return with_medians(sample, self.kernel)

    def learn(self, sample: Sample) -> tuple[LevelCodec, Coordinates]:
        """Return the labels at every cost."""
        values = as_like(np.repeat(sample.y[:, None], len(self.nodes()[0]), axis=1), sample.X)
        return self.coordinates(values, sample)


def _known_labels(y: Outputs) -> tuple[Outputs, np.ndarray]:
    """Return labels with one that is known in place of each missing one, and which are known."""
    labels = np.asarray(y if is_host(y) else host(y))
    is_missing = [(isinstance(label, float) and label != label) or label is None for label in labels.ravel().tolist()]
    seen = ~np.array(is_missing, dtype=bool)
    if seen.all() or not seen.any():
        return y, seen
    return np.where(seen.reshape(labels.shape), labels, labels.ravel()[seen][0]), seen


@dataclass(frozen=True)
class CostCurve:
    """Error rates and expected cost of a classifier at each cost; arrays of shape (costs,).

    Attributes
    ----------
    costs : array
        Costs of an error on a positive sample.
    false_positive_rate, true_positive_rate : array
        Fractions of the negative and of the positive samples that are classified as positive: the points of a ROC
        curve.
    expected_cost : array
        Mean cost of the errors over the sample.
    """

    costs: np.ndarray
    false_positive_rate: np.ndarray
    true_positive_rate: np.ndarray
    expected_cost: np.ndarray


class CostSensitiveClassifier(ClassifierMixin, KernelMachine):
    r"""Support vector machines for all misclassification costs in one model, with a certified duality gap.

    .. math:: \min_h \; \frac1n \sum_i \int_0^1 |\theta - \mathbb 1_{y_i = -1}| \max(0, 1 - y_i \, h(x_i)(\theta)) \,
        d\theta + \frac\lambda2 \|h\|^2,

    with :math:`h` in the space of the kernel :math:`(k(x, z) + c) \, g(\theta, \theta')`. An error on a positive sample
    costs :math:`\theta`, one on a negative sample :math:`1 - \theta`.

    Parameters
    ----------
    kernel : kernel, str or callable, default="gaussian"
        Kernel :math:`k` of the inputs.
    level_kernel : kernel, str, callable or None, default=None
        Kernel :math:`g` of the costs; ``None`` means ``Gaussian(10.0)``. A narrow kernel fits each cost separately.
    lam : float, default=1e-3
        Weight of the squared norm.
    levels : int or array of shape (m,), default=20
        Costs at which the loss is evaluated: their number, or an increasing array of costs, which get equal weights.
    quadrature : {"gauss_legendre", "uniform"}, default="gauss_legendre"
        Quadrature rule for the costs.
    intercept : float, default=1.0
        The constant :math:`c` added to the kernel of the inputs. It gives the model a lightly penalised intercept for
        each cost; with 0 there is none.
    solver : Solver or str, default="auto"
        ``"auto"`` or a solver's name or instance.
    tol : float, default=1e-6
        The relative duality gap at which the solver stops.
    max_iter : int or None, default=None
        Maximum number of iterations; ``None`` means the solver's default.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` replaces the kernel of the inputs by one with 500 features.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels; the second one is the positive class.
    levels_, level_weights_ : array of shape (m,)
        The costs and their weights, whose sum is 1.
    dual_coef_, primal_objective_, dual_objective_, duality_gap_, n_iter_, status_, support_, sparsity_, history_
        As for ``OperatorKernelRegressor``.

    Notes
    -----
    With a kernel of the costs that is 1 on the diagonal and 0 elsewhere, the model at a cost :math:`\theta_j` of weight
    :math:`w_j` is the support vector machine with :math:`C = w_j / (\lambda n)` and class weights :math:`\theta_j` and
    :math:`1 - \theta_j`; the unpenalised intercept of scikit-learn's ``SVC`` is the limit of a large ``intercept``.

    References
    ----------
    [Laforgue2019]_, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import CostSensitiveClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 2))
    >>> y = X[:, 0] + 0.5 * rng.standard_normal(100) > 0
    >>> model = CostSensitiveClassifier().fit(X, y)
    >>> calls = [int(model.predict(X, cost).sum()) for cost in (0.1, 0.5, 0.9)]  # a missed positive costs more and more
    >>> calls == sorted(calls), bool(model.duality_gap_ <= 1e-6)
    (True, True)
    """

    classes_: np.ndarray
    levels_ = Fitted[np.ndarray]("codec.levels")
    level_weights_ = Fitted[np.ndarray]("codec.weights")

    def __init__(
        self,
        kernel: KernelLike = "gaussian",
        level_kernel: KernelLike | None = None,
        lam: float = 1e-3,
        levels: int | ArrayLike = 20,
        quadrature: str = "gauss_legendre",
        intercept: float = 1.0,
        solver: Solver | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        approximation: Approximation | None = None,
        certificate: str = "approximate",
    ) -> None:
        self.kernel = kernel
        self.level_kernel = level_kernel
        self.lam = lam
        self.levels = levels
        self.quadrature = quadrature
        self.intercept = intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.approximation = approximation
        self.certificate = certificate

    @tracked
    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n, features)
            Inputs, or their Gram matrix with ``kernel="precomputed"``.
        y : array of shape (n,)
            Labels of two classes; the larger label is the positive class.
        sample_weight : array of shape (n,) or None, default=None
            Sample weights; a sample of weight 2 counts twice.

        Returns
        -------
        self : CostSensitiveClassifier
            The fitted model.
        """
        return self._learned(X, y, sample_weight)

    def decision_function(self, X: Array, cost: ArrayLike = 0.5) -> Array:
        """Compute the decision function: positive values mean the positive class.

        Parameters
        ----------
        X : array of shape (n, features)
            Inputs, or their Gram matrix with the training inputs.
        cost : float or array of shape (q,), default=0.5
            Cost of an error on a positive sample, in (0, 1); an error on a negative sample costs ``1 - cost``.

        Returns
        -------
        values : array of shape (n,), or (n, q) for several costs
            The values.
        """
        costs = as_levels(cost, "cost")
        X = self._read(X)
        values = namespace(X).astype(self.model_.read(X, costs)[:, :, 0], X.dtype, copy=False)
        return values[:, 0] if np.ndim(cost) == 0 else values

    @in_container
    def predict(self, X: Array, cost: ArrayLike = 0.5) -> Array:
        """Predict labels at one or several costs.

        Parameters
        ----------
        X, cost
            As for ``decision_function``.

        Returns
        -------
        labels : array of shape (n,), or (n, q) for several costs
            Labels.
        """
        is_positive = self.decision_function(X, cost) > 0
        if is_host(X):
            return self.classes_[is_positive.astype(int)]
        xp = namespace(is_positive)
        labels = xp.asarray(self.classes_, device=device(is_positive))
        return xp.where(is_positive, labels[1], labels[0])

    def _output_names(self, cost: ArrayLike = 0.5) -> Sequence[object] | None:
        return super()._output_names() if np.ndim(cost) == 0 else np.ravel(cost).tolist()

    def cost_curve(self, X: Array, y: Array, costs: ArrayLike | None = None) -> CostCurve:
        """Return error rates and expected costs on a sample as functions of the cost.

        Parameters
        ----------
        X, y
            A sample, as for ``fit``, that contains both classes.
        costs : array of shape (q,) or None, default=None
            Costs; ``None`` means 0.01, 0.02, ..., 0.99.

        Returns
        -------
        curve : CostCurve
            False and true positive rates, and expected costs.
        """
        at = np.arange(1, 100) / 100 if costs is None else as_levels(costs, "costs")
        called = host(self.decision_function(X, at)) > 0
        labels = np.asarray(y if is_host(y) else host(y))
        unknown = np.setdiff1d(labels, self.classes_)
        if len(labels) != len(called) or len(unknown) or len(np.unique(labels)) < 2:
            raise ValueError(
                f"y must hold both labels {self.classes_.tolist()} and no others, one for each of the {len(called)} "
                f"samples. Got {len(labels)} labels, of {np.unique(labels).tolist()}."
            )
        is_positive = labels == self.classes_[1]
        false, true = called[~is_positive].mean(axis=0), called[is_positive].mean(axis=0)
        share = is_positive.mean()
        return CostCurve(at, false, true, at * share * (1 - true) + (1 - at) * (1 - share) * false)

    def _spec(self) -> Spec:
        name = type(self).__name__
        return Spec.of(self, CostSensitiveHinge(level_quadrature(name, self.levels, self.quadrature)[0]))

    def _pair(self, loss: Loss, lam: float) -> dict[str, Any]:
        return {"lam": lam}  # there is one loss

    def _task(self, **form: Any) -> Signs:
        kernel = Gaussian(10.0) if self.level_kernel is None else self.level_kernel
        name = type(self).__name__
        return Signs(name, self.kernel, kernel, self.levels, self.quadrature, self.intercept)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags.multi_class = False
        tags.array_api_support = True
        return tags
