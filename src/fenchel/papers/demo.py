"""Demonstration: regression of curves on curves, with clean and contaminated training data."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold

from fenchel.datasets import contaminate, make_functional
from fenchel.estimators import FunctionalRegressorCV
from fenchel.kernels import FunctionalGaussian
from fenchel.losses import EpsilonRidge, Huber, Loss, Square
from fenchel.metrics import curve_errors, curve_scorer
from fenchel.report import figures as plots

__all__ = ["CLEAN", "CURVES", "PANELS", "POINTS", "Demo", "DemoRow", "findings", "run"]

N_TRAIN, N_TEST, N_POINTS, NOISE = 100, 300, 50, 0.05
LAMS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
KAPPAS = (0.1, 0.2, 0.4, 0.8)  # above the norm of the noise, so that noise alone is not clipped
EPSILONS = (0.03, 0.1, 0.3)
LOSSES: dict[str, list[Loss]] = {
    "square": [Square()],
    "Huber p=2": [Huber(kappa) for kappa in KAPPAS],
    "Huber p=1": [Huber(kappa, p=1) for kappa in KAPPAS],
    "eps-ridge p=2": [EpsilonRidge(epsilon) for epsilon in EPSILONS],
    "eps-ridge p=inf": [EpsilonRidge(epsilon, p=np.inf) for epsilon in EPSILONS],
}

CLEAN, CURVES, POINTS = "clean", "wrong curves", "wrong points"
DATA: dict[str, dict[str, Any]] = {
    CLEAN: {"kind": "label", "share": 0.0},
    CURVES: {"kind": "global", "share": 0.1, "intensity": 4.0},  # one curve in ten is another kind of curve
    POINTS: {"kind": "local", "share": 0.3, "point_share": 0.1},  # three in ten are wrong at a tenth of their points
}


@dataclass(frozen=True)
class DemoRow:
    """One model on one data set, with loss and lam chosen on the training curves."""

    data: str
    model: str
    chosen: str
    error: float  # mean squared distance to the true curves of the test sample
    gap: float | None
    nulls: float | None  # share of zero dual variables
    seconds: float  # selection and fit
    fitted: Any


@dataclass(frozen=True)
class Demo:
    """Fitted models and their data."""

    rows: list[DemoRow]
    t: np.ndarray
    train: dict[str, np.ndarray]  # training curves of each data set
    is_outlier: dict[str, np.ndarray]  # which curves were contaminated
    is_outlier_point: dict[str, np.ndarray]
    X_test: np.ndarray
    truth: np.ndarray  # test curves without noise

    def row(self, data: str, model: str) -> DemoRow:
        """Return the row of a model on a data set."""
        return next(row for row in self.rows if (row.data, row.model) == (data, model))


def models(X: np.ndarray) -> dict[str, Any]:
    """Return the models, each with a grid from which the median held-out error selects."""
    ours = {
        f"fenchel {name}": FunctionalRegressorCV(None, lams=LAMS, losses=losses, cv=KFold(5), aggregate="median")
        for name, losses in LOSSES.items()
    }
    scorer = curve_scorer("median")
    # the same input kernel for both: ours is a mean over points, that of scikit-learn a sum over columns
    gamma = FunctionalGaussian("median").resolve(X).gamma / X.shape[1]
    ridge = GridSearchCV(
        KernelRidge(kernel="rbf", gamma=gamma), {"alpha": [N_TRAIN * lam for lam in LAMS]}, scoring=scorer
    )
    linear = GridSearchCV(Ridge(), {"alpha": np.logspace(-2, 4, 7)}, scoring=scorer)
    return {**ours, "sklearn KernelRidge": ridge, "sklearn linear Ridge": linear}


def run(progress: Callable[[int, int], None] | None = None) -> Demo:
    """Select and fit every model on every data set; ``progress(done, total)`` is called after each fit."""
    train = make_functional(N_TRAIN, N_POINTS, "nonlinear", noise=NOISE, random_state=0)
    test = make_functional(N_TEST, N_POINTS, "nonlinear", random_state=1)
    demo = Demo([], train.t, {}, {}, {}, test.X, test.truth)
    total = len(DATA) * len(models(train.X))
    for data, wrong in DATA.items():
        found = contaminate(train.Y, random_state=0, **wrong)
        demo.train[data], demo.is_outlier[data] = found.Y, found.is_outlier
        demo.is_outlier_point[data] = found.is_outlier_point
        for name, model in models(train.X).items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("error", ConvergenceWarning)
                model.fit(train.X, found.Y)
            seconds = time.perf_counter() - start
            error = float(np.mean(curve_errors(test.truth, model.predict(test.X))))
            demo.rows.append(_row(data, name, model, error, seconds))
            if progress is not None:
                progress(len(demo.rows), total)
    return demo


def _row(data: str, name: str, model: Any, error: float, seconds: float) -> DemoRow:
    if isinstance(model, GridSearchCV):
        return DemoRow(data, name, f"alpha {model.best_params_['alpha']:.2g}", error, None, None, seconds, model)
    settings = model.best_loss_.get_params()
    parts = [f"{key} {settings[key]:g}" for key in ("kappa", "epsilon") if key in settings]
    chosen = ", ".join([*parts, f"lam {model.best_lam_:.0e}"])
    nulls = float(np.mean(model.dual_coef_ == 0))
    return DemoRow(data, name, chosen, error, model.duality_gap_, nulls, seconds, model)


def findings(demo: Demo) -> list[str]:
    """Summarise the results in sentences."""

    def times(data: str, loss: str) -> float:
        """Return the ratio of the error of a loss to its error on clean data."""
        return demo.row(data, f"fenchel {loss}").error / demo.row(CLEAN, f"fenchel {loss}").error

    def clipped(scores: np.ndarray, is_wrong: np.ndarray, what: str) -> str:
        """Say how many of the wrong items, and of the others, are clipped."""
        found, others = scores >= plots.CLIPPED, ~is_wrong
        right, false = np.sum(found & is_wrong), np.sum(found & others)
        return f"clips {right} of the {is_wrong.sum()} wrong {what} and {false} of the {others.sum()} others"

    by_curve = demo.row(CURVES, "fenchel Huber p=2").fitted.outlier_score_
    by_point = demo.row(POINTS, "fenchel Huber p=1").fitted.point_outlier_score_
    square, sparse = demo.row(CLEAN, "fenchel square"), demo.row(CLEAN, "fenchel eps-ridge p=inf")
    gaps = [row.gap for row in demo.rows if row.gap is not None]
    return [
        f"Wrong curves: {times(CURVES, 'square'):.0f} times the error on clean data with the square loss, "
        f"{times(CURVES, 'Huber p=2'):.1f} times with Huber p=2, which bounds the pull of whole curves. It "
        f"{clipped(by_curve, demo.is_outlier[CURVES], 'curves')}.",
        f"Wrong points: {times(POINTS, 'square'):.1f} times with the square loss, {times(POINTS, 'Huber p=2'):.1f} "
        f"times with Huber p=2, {times(POINTS, 'Huber p=1'):.1f} times with Huber p=1, which bounds the pull of single "
        f"points. The last {clipped(by_point, demo.is_outlier_point[POINTS], 'points')}.",
        f"Clean data: epsilon-ridge with p=inf needs {1 - (sparse.nulls or 0):.0%} of the dual variables for an error "
        f"of {sparse.error:.4f}; the square loss has {square.error:.4f} with all of them.",
        f"The largest of the {len(gaps)} duality gaps is {max(gaps):.1e}.",
    ]


def _draw_errors(ax: plots.Axes, demo: Demo) -> str:
    names = list(dict.fromkeys(row.model for row in demo.rows))
    groups = {data: [row.error for row in demo.rows if row.data == data] for data in DATA}
    plots.plot_errors(groups, ax, names=names, label="mean squared error to the true test curves")
    plots.title_above(ax, "Test errors")
    return "Test error of every model on every data set."


def _draw_curves(ax: plots.Axes, demo: Demo) -> str:
    fitted = demo.row(POINTS, "fenchel Huber p=1").fitted
    plots.plot_curves(
        demo.truth[:3],
        ax,
        predicted=fitted.predict(demo.X_test[:3]),
        grid=demo.t,
        label="true test curve",
        predicted_label="Huber p=1",
    )
    ax.plot(demo.t, demo.row(POINTS, "fenchel square").fitted.predict(demo.X_test[:3]).T, ":", color="0.45")
    ax.plot([], [], ":", color="0.45", label="square")
    plots.legend_above(ax)
    plots.title_above(ax, "Predicted test curves")
    return "Three test curves and their predictions by models fitted to curves with wrong points."


def _draw_outlier_scores(ax: plots.Axes, demo: Demo) -> str:
    plots.plot_outlier_scores(demo.row(CURVES, "fenchel Huber p=2").fitted, ax, is_outlier=demo.is_outlier[CURVES])
    plots.title_above(ax, "Which training curves are wrong")
    return "Outlier scores of the training curves, Huber p=2, wrong curves. At 1 a curve is clipped."


def _draw_point_scores(ax: plots.Axes, demo: Demo) -> str:
    scores, rows = demo.row(POINTS, "fenchel Huber p=1").fitted.point_outlier_score_, slice(0, 40)
    plots.plot_point_scores(scores[rows], ax, is_outlier=demo.is_outlier_point[POINTS][rows], grid=demo.t)
    plots.title_above(ax, "Which points of training curves are wrong")
    return "Outlier scores of the points of forty training curves, Huber p=1. Circled: the points that were made wrong."


def _draw_surface(ax: plots.Axes, demo: Demo) -> str:
    plots.plot_surface(demo.row(POINTS, "fenchel Huber p=1").fitted, ax, label="median held-out error")
    plots.title_above(ax, "Choice of kappa and lam")
    return "Where kappa and lam of that model come from: five-fold cross-validation on the training curves."


def _draw_sparsity(ax: plots.Axes, demo: Demo) -> str:
    plots.plot_sparsity(demo.row(CLEAN, "fenchel eps-ridge p=inf").fitted, ax)
    plots.title_above(ax, "Sparsity of the dual variables")
    return "Dual variables of the epsilon-ridge loss with p=inf on clean data, one row for each training curve."


# functions that draw one panel on Axes and return its caption
PANELS: tuple[Callable[[Any, Demo], str], ...] = (
    _draw_errors,
    _draw_curves,
    _draw_outlier_scores,
    _draw_point_scores,
    _draw_surface,
    _draw_sparsity,
)
