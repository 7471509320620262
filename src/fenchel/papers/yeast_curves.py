"""YEAST: test error against lam, epsilon and kappa ([Laforgue2020]_, Figures 3 and 4).

The data are the first 300 rows of the authors' file, which are the first 300 of the official test part. There are three
random splits with a third for testing. The input kernel is Gaussian with gamma 1 and the output kernel is linear, so
the dual has 14 columns. The published numbers were read from the authors' saved results. Their runs stop early, after
60 to 500 epochs, hence the tolerance.
"""

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from fenchel.datasets import load_yeast
from fenchel.estimators import OperatorKernelRegressor
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Loss, Square
from fenchel.papers.comparison import FROM_PAPER, Comparison
from fenchel.papers.experiment import Result, Unit
from fenchel.report import figures as plots

__all__ = ["draw", "errors", "summary", "units"]

DATA = ("yeast",)
LAMS = np.logspace(-8, -1, 20)
EPSILONS = np.linspace(0.1, 1, 10)
KAPPAS = np.logspace(-3, 1, 16)
TOLERANCE = 5e-3

LOSSES: dict[str, list[Loss]] = {
    "ridge": [Square()],
    "epsilon-ridge": [EpsilonRidge(float(epsilon)) for epsilon in EPSILONS],
    "epsilon-SVR": [EpsilonSVR(float(epsilon)) for epsilon in EPSILONS],
    "Huber": [Huber(float(kappa)) for kappa in KAPPAS],
}

LOOKED = "The loss parameter and lam are those of the lowest test error, as for the published numbers."
PUBLISHED_BEST = {"ridge": 2.1029, "epsilon-ridge": 2.1045, "epsilon-SVR": 2.0828, "Huber": 2.0759}
PUBLISHED_SMALL_LAM = {"ridge": 2.2177, "epsilon-ridge": 2.1568, "epsilon-SVR": 2.1559, "Huber": 2.2154}


def units(quick: bool = False) -> list[Unit]:
    """Return one unit for each loss; together they take half a minute."""
    return [Unit(f"yeast-curves-{name}", _surface, (name,)) for name in LOSSES]


def _surface(name: str) -> Result:
    return {"loss": name, **errors(LOSSES[name], LAMS)}


def errors(losses: list[Loss], lams: np.ndarray) -> dict[str, np.ndarray]:
    """Return the mean test error and sparsity, and the largest gap, over the splits, of shape (losses, lams)."""
    data = load_yeast()
    X, Y = data.X_test[:300], data.Y_test[:300]
    splits = [train_test_split(X, Y, test_size=1 / 3, random_state=seed) for seed in range(3)]
    out = {name: np.zeros((len(losses), len(lams))) for name in ("error", "sparsity", "gap")}
    for i, loss in enumerate(losses):
        for j, lam in enumerate(lams):
            for X_train, X_test, Y_train, Y_test in splits:
                model = OperatorKernelRegressor(Gaussian(1.0), loss=clone(loss), lam=float(lam)).fit(X_train, Y_train)
                out["error"][i, j] += np.mean(np.sum((Y_test - model.predict(X_test)) ** 2, axis=1)) / len(splits)
                out["sparsity"][i, j] += model.sparsity_ / len(splits)
                out["gap"][i, j] = max(out["gap"][i, j], model.duality_gap_)
    return out


def summary(results: Result) -> tuple[list[Comparison], dict[str, dict[str, np.ndarray]]]:
    """Compare with the published numbers; also return the error surfaces."""
    surfaces = {
        found["loss"]: {key: np.array(found[key]) for key in ("error", "sparsity", "gap")} for found in results.values()
    }
    rows = [
        _lowest(f"{name}, lowest test error", name, surface, PUBLISHED_BEST, len(LAMS))
        for name, surface in surfaces.items()
    ]
    rows += [
        _lowest(f"{name}, lowest test error at lam 1e-8", name, surface, PUBLISHED_SMALL_LAM, 1)
        for name, surface in surfaces.items()
    ]
    return rows, surfaces


def _lowest(
    title: str, name: str, surface: dict[str, np.ndarray], published: dict[str, float], n_lams: int
) -> Comparison:
    """Compare the lowest error at the first lams with the published one."""
    i, j = divmod(int(np.argmin(surface["error"][:, :n_lams])), n_lams)
    note = f"{LOSSES[name][i]!r} at lam {LAMS[j]:.3g}"
    note += f"; largest gap {surface['gap'].max():.1e}" if n_lams > 1 else ""
    ours = float(surface["error"][i, j])
    return Comparison(title, published[name], ours, TOLERANCE, note, looked_at_test=LOOKED, target=FROM_PAPER)


def draw(surfaces: dict[str, dict[str, np.ndarray]]) -> plots.Figure:
    """Redraw the two figures of the paper: test error and sparsity against lam for each epsilon and kappa."""
    fig, axes = plots.figure(4, width=5.0)
    for ax, name in zip(axes, ("epsilon-ridge", "epsilon-SVR", "Huber"), strict=False):
        labels = [f"{next(iter(loss.get_params().values())):.3g}" for loss in LOSSES[name]]
        lines = dict(zip(labels, surfaces[name]["error"], strict=True))
        lines["ridge"] = surfaces["ridge"]["error"][0]
        plots.plot_lines(lines, ax, x=LAMS, x_label="lam", y_label="test error")
        ax.set_title(name)
    labels = [f"{loss.get_params()['epsilon']:.3g}" for loss in LOSSES["epsilon-ridge"]]
    sparsity = dict(zip(labels, surfaces["epsilon-ridge"]["sparsity"], strict=True))
    plots.plot_lines(sparsity, axes[3], x=LAMS, x_label="lam", y_label="share of null duals")
    axes[3].set_title("epsilon-ridge")
    return fig
