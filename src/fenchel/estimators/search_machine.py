"""What the estimators that choose loss and lam by held-out errors have in common."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from fenchel.estimators.kernel_choice import KernelChoice
from fenchel.estimators.machine import Fitted, KernelMachine
from fenchel.estimators.search import SearchResult
from fenchel.losses import Loss
from fenchel.model.fit import solve, warned
from fenchel.model.spec import Spec
from fenchel.model.training_set import TrainingSet

__all__ = ["Found", "SearchMachine"]


@dataclass(frozen=True)
class Found:
    """What a search has found: the errors of the grid, the best pair and its kernel."""

    result: SearchResult | None  # None if only a kernel was searched for
    kernel: Any
    trials: dict[str, list[Any]] | None = None  # of the kernel search


class SearchMachine(KernelMachine):
    """An estimator that chooses loss and lam by held-out errors; its model is that of the best pair."""

    found_: Found
    best_estimator_: Any

    best_kernel_ = Fitted[Any]("kernel", of="found_")
    best_loss_ = Fitted[Loss]("result.loss", of="found_")
    best_lam_ = Fitted[float]("result.lam", of="found_")
    cv_errors_ = Fitted[np.ndarray]("result.cv_errors", of="found_")
    fold_errors_ = Fitted[np.ndarray]("result.fold_errors", of="found_")
    cv_gaps_ = Fitted[np.ndarray]("result.cv_gaps", of="found_")
    lams_ = Fitted[list[float]]("result.lams", of="found_")
    losses_ = Fitted[list[Loss]]("result.losses", of="found_")

    @property
    def search_(self) -> dict[str, list[Any]] | None:
        """Results of the kernel search, ``None`` for a given kernel."""
        return self.found_.trials

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the model, which is that of the best estimator: files hold it once."""
        state: dict[str, Any] = super().__getstate__()
        best = state.get("best_estimator_")
        is_shared = best is not None and vars(best).get("model_") is state.get("model_")
        return {name: value for name, value in state.items() if name != "model_"} if is_shared else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        best = state.get("best_estimator_")
        if best is not None and "model_" not in state:
            self.model_ = best.model_

    def _search_spec(self) -> Spec:
        """Return the settings of the fits of the search; losses and lam are those of its grid."""
        return Spec.of(self, "square").for_search()

    def _fit_best(
        self,
        estimator: KernelMachine,
        training_set: TrainingSet,
        result: SearchResult,
        choice: KernelChoice | None = None,
    ) -> Self:
        """Fit the best pair on the whole sample, and keep the model, the errors of the search and the estimator."""
        found = Found(result, estimator.kernel, None if choice is None else choice.trials)
        best = estimator.set_params(**estimator._pair(result.loss, result.lam))
        fit = solve(training_set, replace(best._spec(), loss=clone(result.loss), lam=result.lam))
        result.warn_at_end()
        for name in ("n_features_in_", "feature_names_in_"):
            if name in vars(self):
                setattr(best, name, getattr(self, name))
        self.found_, self.best_estimator_ = found, best._kept(warned(fit))
        self.model_ = best.model_
        return self
