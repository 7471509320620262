"""Contents of the page about a fitted model, as plain numbers: certificate, history, scores, samples, surface."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_is_fitted

from fenchel._array import host
from fenchel.app.tables import TableRegressor
from fenchel.app.tables.outliers import outliers_of_table
from fenchel.data.frames import with_arrays
from fenchel.datasets.tables import Table
from fenchel.estimators.search_machine import SearchMachine
from fenchel.metrics import Scores
from fenchel.metrics.scores import mean_of_columns
from fenchel.model.machine import DualEstimator
from fenchel.model.model import Model
from fenchel.outliers.report import OutlierReport
from fenchel.report.figures import CLIPPED
from fenchel.report.surface import Surface

__all__ = ["ModelFacts", "Pairs"]


@dataclass(frozen=True)
class Pairs:
    """Observed and predicted outputs of some samples, (k, p); NaN means not observed."""

    rows: np.ndarray  # labels of the samples
    observed: np.ndarray
    predicted: np.ndarray
    names: list[str]  # of the outputs
    grid: np.ndarray | None  # points of curves
    text: str
    linear: np.ndarray | None = None  # predictions of a linear model

    @property
    def has_units(self) -> bool:
        """Whether there are several outputs, each with a unit of its own."""
        return self.grid is None and self.observed.shape[1] > 1

    @property
    def units(self) -> np.ndarray:
        """Deviations of several outputs, (p,), by which none vanishes beside another; 1 for one output and curves."""
        if not self.has_units:
            return np.ones(self.observed.shape[1])
        sizes = np.sqrt(mean_of_columns((self.observed - mean_of_columns(self.observed)) ** 2))
        return np.where(sizes > 0, sizes, 1.0)

    @property
    def error_name(self) -> str:
        """What ``errors`` are."""
        return "root mean squared error" + (", in deviations of each target" if self.has_units else "")

    @property
    def errors(self) -> np.ndarray:
        """Root mean squared error of each sample over the observed values, in units of the outputs."""
        seen = ~np.isnan(self.observed)
        squares = np.where(seen, (self.observed - self.predicted) / self.units, 0.0) ** 2
        return np.sqrt(squares.sum(axis=1) / np.maximum(seen.sum(axis=1), 1))

    def scores(self, mean: np.ndarray) -> Scores:
        """Return the scores of the predictions, compared with those of the mean of the training outputs."""
        return Scores.of(self.observed, self.predicted, mean, self.grid, self.linear)


@dataclass(frozen=True)
class ModelFacts:
    """Facts about a fitted model; ``None`` for those that it does not have."""

    estimator: BaseEstimator  # with the certificate
    table: TableRegressor | None
    rows: np.ndarray  # labels of the training samples, (n,)
    scores: np.ndarray | None  # outlier scores, (n,)
    duals: np.ndarray  # (n, p)
    errors: Surface | None
    gaps: Surface | None
    training: Pairs | None  # samples of the support

    @classmethod
    def of(cls, model: BaseEstimator) -> "ModelFacts":
        """Return the facts about a fitted estimator or a fitted ``TableRegressor``."""
        check_is_fitted(model)
        table = model if isinstance(model, TableRegressor) else None
        estimator = model if table is None else table.estimator_
        if not isinstance(estimator, DualEstimator):
            raise TypeError(
                f"A report needs an estimator with a certificate. Got {type(model).__name__}, which has no "
                "duality_gap_; for a search take its best_estimator_."
            )
        duals = host(estimator.dual_coef_)
        rows = np.arange(len(duals)) if table is None else table.rows_
        scores = getattr(estimator, "outlier_score_", None)
        return cls(
            estimator,
            table,
            rows,
            None if scores is None else host(scores),
            duals.reshape(len(duals), -1),
            Surface.of(estimator, "errors") if _is_search(estimator) else None,
            Surface.of(estimator, "gaps") if _is_search(estimator) else None,
            _training_pairs(estimator, table, rows),
        )

    @property
    def is_certified(self) -> bool:
        """Whether the gap is within tol."""
        return bool(self.estimator.duality_gap_ <= self.estimator.tol)

    @property
    def is_search(self) -> bool:
        """Whether loss and lam were chosen by a search."""
        return _is_search(self.estimator)

    @property
    def has_outliers(self) -> bool:
        """Whether the loss clips some samples."""
        return self.scores is not None and bool(np.any(self.scores >= CLIPPED))

    def kinds(self) -> dict[str, int]:
        """Return the number of samples whose dual variable is zero, inside its bound, or on its bound."""
        null = np.all(self.duals == 0, axis=1)
        clipped = np.zeros(len(null), dtype=bool) if self.scores is None else (self.scores >= CLIPPED) & ~null
        found = {"null": int(null.sum()), "inside": int((~null & ~clipped).sum()), "on the bound": int(clipped.sum())}
        if self.scores is None:  # there is no bound
            return {"null": found["null"], "not null": found["inside"]}
        return found

    def suspects(self) -> np.ndarray:
        """Return the indices of all samples, highest score first; clipped samples are ordered by their error."""
        scores = np.zeros(len(self.rows)) if self.scores is None else np.where(self.scores >= CLIPPED, 1.0, self.scores)
        errors = np.zeros(len(self.rows))
        if self.training is not None:
            errors[np.asarray(self.estimator.support_)] = self.training.errors
        return np.lexsort((-errors, -scores))

    def outliers(self, data: object) -> tuple[OutlierReport, np.ndarray] | None:
        """Return the report on the rows of the training table, and their numbers; ``None`` for any other table."""
        return None if self.table is None or data is None else outliers_of_table(self.table, data)

    def settings(self) -> list[tuple[str, str]]:
        """Return the parameters that differ from their defaults."""
        default = type(self.estimator)().get_params(deep=False)
        found = []
        for name, value in self.estimator.get_params(deep=False).items():
            text = " ".join(repr(value).split())
            if text != " ".join(repr(default[name]).split()):
                found.append((name, text if len(text) < 160 else text[:160] + "…"))
        return found

    def fit_quality(self, pairs: Pairs | None) -> list[tuple[str, Scores]]:
        """Return the scores on the training samples and, if they are different samples, on the pairs."""
        if self.table is not None:
            quality = [(f"{self.table.train_scores_.n_rows} training rows", self.table.train_scores_)]
            mean = self.table.target_mean_
        elif self.training is not None:
            mean = mean_of_columns(self.training.observed)
            quality = [(self.training.text, self.training.scores(mean))]
        else:
            return []
        if pairs is not None and pairs is not self.training and not np.array_equal(pairs.rows, self.rows):
            quality.append((pairs.text, pairs.scores(mean)))
        return quality

    def compared(self, data: Table) -> Pairs:
        """Return the observed and predicted targets of the rows of a table."""
        if self.table is None:
            raise TypeError("data can only be compared with a model of a table. This model has no columns.")
        X, observed, rows = self.table.sample(data)
        predicted = host(with_arrays(self.estimator).predict(X)).reshape(len(X), -1) + self.table.offset_
        grid = _grid(self.estimator.grid_ if self.table.curves else None, observed.shape[1])
        about = f"{len(rows)} rows of {Path(data.name).name}"  # pages are shared: do not reveal folders
        linear = self.table.predict_linear(X)
        return Pairs(rows, observed, predicted, self.table.target_names_, grid, about, linear)


def _is_search(estimator: DualEstimator) -> bool:
    return isinstance(estimator, SearchMachine) and vars(estimator).get("found_") is not None


def _training_pairs(estimator: BaseEstimator, table: TableRegressor | None, rows: np.ndarray) -> Pairs | None:
    """Return the training samples that the model keeps, with its predictions, if its outputs are numbers.

    A model keeps only the inputs of its support, which includes every sample with a positive outlier score.
    """
    model = estimator.model_
    if not is_regressor(estimator) or not isinstance(model, Model) or model.targets.n_samples != len(rows):
        return None
    support = model.duals.support
    if support is None or not len(support):
        return None
    targets, seen = model.targets, model.targets.observed
    observed = host(model.codec.restored(targets.unscaled(targets.rows))).reshape(len(rows), -1)
    if seen is not None:
        observed = np.where(host(seen) > 0, observed, np.nan)
    predicted = host(model.read(estimator.X_fit_)).reshape(len(support), -1)
    observed = model.codec.near(observed[support], predicted)
    if table is not None:
        observed, predicted = observed + table.offset_, predicted + table.offset_
    names = [f"output {k + 1}" for k in range(observed.shape[1])] if table is None else table.target_names_
    grid = _grid(model.codec.grid, observed.shape[1])
    kept = f"{len(support)} training samples"
    if len(support) < len(rows):
        kept = f"{len(support)} of {len(rows)} training samples, those that the model keeps"
    return Pairs(rows[support], observed, predicted, names, grid, kept)


def _grid(grid: np.ndarray | None, size: int) -> np.ndarray | None:
    """Return the points of single-channel curves, else ``None``."""
    return grid if grid is not None and len(grid) == size else None
