"""Simulated near-infrared spectra: calibration beside PLS, and false alarms of outlier reports.

``python benchmarks/calibration.py errors`` prints the root mean squared errors of docs/coming_from_pls.rst,
``python benchmarks/calibration.py alarms`` the flags of docs/outliers.rst among spectra of which none is wrong.
"""

import argparse
import warnings

import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import OperatorKernelRegressorCV, OutlierReport
from fenchel.kernels import Gaussian

NM = np.linspace(1100, 2500, 141)
CENTRES, WIDTHS = np.array([[1450], [1720], [1940], [2300]]), np.array([[60], [50], [70], [80]])
FDR = 0.05
COMPONENTS = {"n_components": range(1, 13)}
CASES = {  # samples, share of stray light, spread of gain and offset, wrong reference values
    "Beer's law, 30 spectra": (30, 0.0, 0.0, 0),
    "gain and offset": (100, 0.0, 0.1, 0),
    "gain, offset, stray light": (100, 0.1, 0.1, 0),
    "the same, 10 of 100 references wrong": (100, 0.1, 0.1, 10),
}


def spectra(
    rng: np.random.Generator, n: int, stray: float = 0.0, scatter: float = 0.1
) -> tuple[np.ndarray, np.ndarray]:
    """Return absorbances (n, 141), with a share of stray light, random gain and offset, and four mass fractions."""
    Y = rng.dirichlet(4 * np.ones(4), n)
    A = -np.log10((1 - stray) * 10 ** -(2 * Y @ np.exp(-(((NM - CENTRES) / WIDTHS) ** 2))) + stray)
    gain, offset = rng.lognormal(0, scatter, (n, 1)), scatter * rng.normal(size=(n, 1))
    return gain * A + offset + 0.003 * rng.normal(size=A.shape), Y


def snv(X: np.ndarray) -> np.ndarray:
    """Return the standard normal variates of spectra."""
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)


def errors(draws: int) -> None:
    """Print the errors of the first two fractions at 300 new spectra, mean over draws."""
    models = {
        "PLS": GridSearchCV(PLSRegression(scale=False), COMPONENTS, scoring="neg_mean_squared_error"),
        "linear": make_pipeline(StandardScaler(with_std=False), OperatorKernelRegressorCV("linear", center=True)),
        "Gaussian": OperatorKernelRegressorCV(Gaussian("median"), center=True),
        "no argument": OperatorKernelRegressorCV(),
    }
    print("spectra", *models, sep=" | ")
    for name, (n, stray, scatter, n_wrong) in CASES.items():
        found = np.zeros((draws, len(models)))
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            X, Y = spectra(rng, n + 300, stray, scatter)
            X, Y = snv(X) if scatter else X, Y[:, :2]
            given = Y[:n].copy()
            given[:n_wrong] += rng.choice([-0.5, 0.5], (n_wrong, 2))
            for k, model in enumerate(models.values()):
                predicted = model.fit(X[:n], given).predict(X[n:])
                found[draw, k] = np.sqrt(np.mean((predicted - Y[n:]) ** 2))
        print(name, *(f"{value:.4f}" for value in found.mean(axis=0)), sep=" | ", flush=True)


def alarms(draws: int, n: int = 100) -> None:
    """Print the share of draws with a flag, and flags for each draw: of curves alone, and of a model of one output."""
    print("spectra | curves alone: draws with a flag, flags | given a model: draws with a flag, flags")
    for name, scatter, spread in (("equal noise", 0.0, 0.0), ("gain, offset", 0.1, 0.0), ("unequal noise", 0.0, 1.0)):
        flags = np.zeros((draws, 2))
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            X, Y = spectra(rng, n, scatter=scatter)
            X = X + 0.02 * spread * rng.lognormal(0, 1, (n, 1)) * rng.normal(size=X.shape)
            y = Y[:, 0] + 0.01 * rng.normal(size=n)
            given = OutlierReport.of(OperatorKernelRegressorCV().fit(X, y), X, y)
            flags[draw] = [report.flagged(FDR).sum() for report in (OutlierReport.of_curves(X, NM), given)]
        print(name, *(f"{np.mean(one > 0):.2f} {np.mean(one):.1f}" for one in flags.T), sep=" | ", flush=True)


def main() -> None:
    """Run one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("errors", "alarms"))
    parser.add_argument("--draws", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    {"errors": errors, "alarms": alarms}[arguments.table](arguments.draws)


if __name__ == "__main__":
    main()
