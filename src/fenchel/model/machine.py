"""What the estimators of one dual problem share: parameters, a task, and after ``fit`` one value, ``model_``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from operator import attrgetter
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, overload

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, Inputs, Outputs
from fenchel._component import undone_on_failure
from fenchel._progress import CallbacksMixin
from fenchel.approximations import Approximation
from fenchel.data.frames import FramesOutMixin
from fenchel.data.functional import brings_points
from fenchel.kernels import OperatorKernel, ScalarKernel, is_pairwise
from fenchel.losses import Loss
from fenchel.model.codec import Task
from fenchel.model.fit import Fit, learn
from fenchel.model.model import Model
from fenchel.model.named_parts import NamedPartsMixin
from fenchel.model.sample import Sample
from fenchel.model.spec import Spec
from fenchel.model.training_set import TrainingSet
from fenchel.representations import Representation

__all__ = [
    "DualEstimator",
    "Fitted",
    "KernelMachine",
    "Near",
    "best_of",
    "is_machine",
    "keep",
    "kernel_of",
    "near_of",
    "sees_outputs",
    "set_pair",
    "spec_of",
    "task_of",
    "training_set_of",
    "unchanged",
]

T = TypeVar("T")
K = TypeVar("K", bound=Task, covariant=True)
Machine = TypeVar("Machine", bound="KernelMachine")
Near = Callable[[np.ndarray, np.ndarray], np.ndarray]  # values as they are closest to others


class Fitted(Generic[T]):
    """A fitted attribute, read from a value such as ``model_``; absent before ``fit``, and where the value has none."""

    def __init__(self, path: str, of: str = "model_") -> None:
        self.of = of
        self.read = attrgetter(path)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, machine: None, owner: type) -> Self: ...

    @overload
    def __get__(self, machine: object, owner: type | None = None) -> T: ...

    def __get__(self, machine: object | None, owner: type | None = None) -> Self | T:
        if machine is None:
            return self
        held = vars(machine).get(self.of)
        value = None if held is None else self.read(held)
        if value is None:
            raise AttributeError(f"{type(machine).__name__!r} object has no attribute {self.name!r}")
        found: T = value
        return found


class DualEstimator(CallbacksMixin, NamedPartsMixin, BaseEstimator):
    """An estimator with the solution of one dual problem in ``model_``."""

    dual_coef_ = Fitted[Array]("duals.coef")
    support_ = Fitted[np.ndarray]("duals.support")
    sparsity_ = Fitted[float]("duals.sparsity")
    outlier_score_ = Fitted[Array]("duals.outlier_score")
    point_outlier_score_ = Fitted[Array]("duals.point_outlier_score")
    primal_objective_ = Fitted[float]("record.primal")
    dual_objective_ = Fitted[float]("record.dual")
    duality_gap_ = Fitted[float]("record.gap")
    duality_gap_standard_error_ = Fitted[float]("record.standard_error")
    certificate_ = Fitted[str]("record.kind")
    n_iter_ = Fitted[int]("record.n_iter")
    status_ = Fitted[str]("record.status")
    history_ = Fitted[list[tuple[int, float]]]("record.history")
    solver_info_ = Fitted[dict[str, object]]("record.solver_info")


class KernelMachine(FramesOutMixin, DualEstimator, ABC):
    """An estimator that fits one dual problem."""

    model_: Model
    takes_sparse: ClassVar[bool] = False
    loss_argument: ClassVar[str] = "loss"  # name of the parameter that holds the loss

    loss_ = Fitted[Loss]("spec.loss")
    representation_ = Fitted[Representation]("codec.representation")
    X_fit_ = Fitted[Array]("expansion.X")

    kernel: Any

    @property
    def approximation_(self) -> Approximation | None:
        """The approximation with the actual number of features."""
        check_is_fitted(self)
        return self.model_.approximation

    @abstractmethod
    def _task(self, *form: Any, **named: Any) -> Task:
        """Return what kind of data this estimator takes, with its parameters; with arguments of ``fit``."""

    def _spec(self) -> Spec:
        """Return the dual problem and its solver."""
        return Spec.of(self, getattr(self, self.loss_argument), self.loss_argument)

    def _pair(self, loss: Loss, lam: float) -> dict[str, Any]:
        """Return the parameters of one pair of a grid."""
        return {self.loss_argument: clone(loss), "lam": lam}

    def _learned(self, X: Inputs, y: Outputs, sample_weight: Array | None = None, **form: Any) -> Self:
        """Fit, with the names of X that scikit-learn writes on its way."""
        task, spec = self._task(**form), self._spec()
        with undone_on_failure(self):
            return self._kept(learn(task, task.sample(self, X, y, sample_weight), spec))

    def _kept(self, fit: Fit) -> Self:
        """Keep what remains of a fit."""
        self.model_ = fit.model()
        return self

    def _read(self, X: Outputs) -> Array:
        """Return new inputs in the form of the training inputs."""
        check_is_fitted(self)
        return self.model_.inputs.read(self, X)

    def _output_names(self, *args: Any, **kwargs: Any) -> Sequence[object] | None:
        return self.model_.outputs.names

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        tags.input_tags.pairwise = is_pairwise(self.kernel)
        return tags


class _HasTask(Protocol[K]):
    def _task(self, **form: Any) -> K: ...


def task_of(machine: _HasTask[K], **form: Any) -> K:
    """Return what kind of data a machine takes, with its parameters and with arguments of ``fit``."""
    return machine._task(**form)


def spec_of(machine: KernelMachine) -> Spec:
    """Return the dual problem of a machine, and its solver."""
    return machine._spec()


def set_pair(machine: Machine, loss: Loss, lam: float) -> Machine:
    """Set the parameters of a machine to one pair of a grid."""
    return machine.set_params(**machine._pair(loss, lam))


def keep(machine: Machine, fit: Fit) -> Machine:
    """Make a fit that of a machine."""
    return machine._kept(fit)


def is_machine(estimator: BaseEstimator) -> bool:
    """Whether an estimator solves a single dual problem and makes point predictions."""
    is_ours = isinstance(estimator, KernelMachine) and is_regressor(estimator)
    return is_ours and not hasattr(estimator, "predict_interval")


def best_of(estimator: BaseEstimator) -> BaseEstimator:
    """Return the best estimator of a search, and any other estimator as it is."""
    return vars(estimator).get("best_estimator_", estimator)


def sees_outputs(estimator: BaseEstimator) -> bool:
    """Whether the kernel of a fitted estimator was learned from the outputs, and is no longer honest without some."""
    kernel = getattr(best_of(estimator), "kernel", None)
    return isinstance(kernel, ScalarKernel) and kernel.tags.sees_outputs


def near_of(estimator: BaseEstimator) -> Near:
    """Return ``Codec.near`` of a fitted estimator: of a machine, of the last step of a pipeline, of the best estimator.

    Outputs of other estimators have one name each.
    """
    while estimator is not None:
        held = vars(estimator)
        if isinstance(held.get("model_"), Model):
            return held["model_"].codec.near
        kept = held.get("best_estimator_", held.get("estimator_"))
        estimator = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else kept
    return unchanged


def unchanged(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return values that have one name each."""
    return values


def training_set_of(machine: KernelMachine, X: Outputs, y: Outputs, sample_weight: Array | None = None) -> TrainingSet:
    """Return data as a fitted machine sees them: checked as in ``fit``, in its coordinates, with its kernel."""
    check_is_fitted(machine)
    grid = machine.model_.codec.grid
    task = task_of(machine, **({} if grid is None or brings_points(y) else {"grid": grid}))
    return machine.model_.training_set(task.sample(copy(machine), X, y, sample_weight))


def kernel_of(machine: KernelMachine) -> OperatorKernel:
    """Return the kernel of a fitted machine as it was given, before its parameters were taken from the sample."""
    model = machine.model_
    return task_of(machine).kernel_of(Sample(machine.X_fit_, None, model.inputs, model.outputs), model.codec)
