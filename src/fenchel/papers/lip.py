"""Lip acceleration from EMG: leave-one-out error against kappa ([Laforgue2020]_, Figure 8).

The data are 32 curves and four outliers: the outputs of records 7, 9, 18 and 26, multiplied by -1.2. The kernel is the
mean over time of exp(-7 |x(t) - z(t)|); the paper omits the minus sign and the bandwidth. Outputs are coefficients on
2 m sines and cosines, and the operator has eigenvalues 1 / (1 + i)^2. lam is chosen by the leave-one-out error of the
square loss. kappa is then swept at this lam: 10 800 fits, all on one eigendecomposition.
"""

import numpy as np

from fenchel.datasets import load_lip_emg
from fenchel.estimators import OperatorKernelRegressorCV
from fenchel.losses import Huber, Loss, Square
from fenchel.papers.comparison import FROM_PAPER, Comparison
from fenchel.papers.experiment import Result, Unit
from fenchel.report import figures as plots

__all__ = ["draw", "summary", "units"]

DATA = ("lip_emg",)
LAMS = np.logspace(-3, 0, 10).tolist()
KAPPAS = np.linspace(0.05, 2, 50)
TOLERANCE = 1e-3
LOOKED = "lam and kappa are those of the lowest leave-one-out error, which is the one reported, as in the figure."

# for each m: ridge error, lowest Huber error, and its kappa
PUBLISHED = {
    4: (0.84141, 0.81163, 0.289),
    5: (0.79179, 0.76448, 0.567),
    6: (0.78656, 0.76163, 0.567),
    7: (0.78201, 0.75458, 0.607),
    15: (0.77263, 0.74907, 0.687),
}


def units(quick: bool = False) -> list[Unit]:
    """Return one unit for each number of basis functions; all of them together take seconds."""
    return [Unit(f"lip-{m}", _curve, (m,)) for m in PUBLISHED]


def summary(results: Result) -> tuple[list[Comparison], dict[int, Result]]:
    """Compare with the published numbers; also return the error curves."""
    rows, curves = [], {found["m"]: found for found in results.values()}
    for m, found in curves.items():
        published, best = PUBLISHED[m], int(np.argmin(found["huber"]))
        note = f"lam {found['lam']:.3g}; largest gap {found['gap']:.1e}"
        least = f"m = {m}, lowest error of Huber", float(found["huber"][best]), note
        place = f"m = {m}, kappa of the lowest error", float(KAPPAS[best]), "a grid point"
        ridge = f"m = {m}, error of ridge", found["ridge"], note
        for target, (name, ours, said) in zip(published, (ridge, least, place), strict=True):
            row = Comparison(name, target, ours, TOLERANCE, said, looked_at_test=LOOKED, target=FROM_PAPER)
            rows.append(row)
    return rows, curves


def _curve(m: int) -> Result:
    """Return the leave-one-out errors for 2 m basis functions."""
    data, outliers = load_lip_emg(), [7, 9, 18, 26]
    X, Y, t = np.vstack([data.X, data.X[outliers]]), np.vstack([data.Y, -1.2 * data.Y[outliers]]), data.t
    K = np.stack([np.mean(np.exp(-7 * np.abs(x - X)), axis=1) for x in X])
    order = np.arange(m)
    phase = 2 * np.pi * order[:, None] * t
    basis = np.sqrt(2) * np.vstack([np.cos(phase), np.sin(phase)])
    eigenvalues = np.tile(1 / (1 + order) ** 2, 2).astype(float)

    def errors(_: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        return np.asarray(np.mean((Y - predicted @ basis) ** 2, axis=1))

    def search(lams: list[float], losses: list[Loss]) -> OperatorKernelRegressorCV:
        model = OperatorKernelRegressorCV("precomputed", eigenvalues, lams, losses, cv="loo", scoring=errors)
        return model.fit(K, Y @ basis.T / len(t))

    ridge = search(LAMS, [Square()])
    huber = search([ridge.best_lam_], [Huber(float(kappa)) for kappa in KAPPAS])
    return {
        "m": m,
        "lam": ridge.best_lam_,
        "ridge": float(ridge.cv_errors_.min()),
        "huber": huber.cv_errors_[:, 0],
        "gap": float(huber.cv_gaps_.max()),
    }


def draw(curves: dict[int, Result]) -> plots.Figure:
    """Redraw the figure of the paper: leave-one-out error against kappa for each number of basis functions."""
    fig, (ax,) = plots.figure(1)
    lines = {f"m = {m}": c["huber"] for m, c in curves.items()}
    plots.plot_lines(lines, ax, x=KAPPAS, x_label="kappa", y_label="leave-one-out error")
    for line, curve in zip(ax.get_lines(), list(curves.values()), strict=False):
        ax.axhline(curve["ridge"], color=line.get_color(), linestyle=":", linewidth=1)
    ax.set_xscale("linear")
    ax.set_title("dotted: square loss")
    return fig
