"""The demonstration: robust multi-output regression, on clean and on contaminated data."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVR
from sklearn.utils import Bunch

from fenchel.data import make_multioutput
from fenchel.estimators import OperatorKernelRegressor
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber

__all__ = ["DemoRow", "run"]

N_TRAIN, N_TEST, LAM, GAMMA = 300, 500, 1e-3, 1.0


@dataclass(frozen=True)
class DemoRow:
    """One model on one data set."""

    data: str
    model: str
    error: float  # mean squared distance to the noise-free outputs
    gap: float | None
    sparsity: float | None
    seconds: float
    scores: np.ndarray | None = None  # outlier scores of the training samples


def models() -> dict[str, Any]:
    """Return the models that are compared: ours, and scikit-learn's at the same regularisation."""
    ours = {"square": "square", "Huber": Huber(0.5), "epsilon-ridge": EpsilonRidge(0.3), "epsilon-SVR": EpsilonSVR(0.3)}
    kernel = Gaussian(GAMMA)
    peers = {
        "scikit-learn KernelRidge": KernelRidge(alpha=LAM * N_TRAIN, kernel="rbf", gamma=GAMMA),
        # lam n |h|^2 / 2 + sum of losses, C times smaller: C = 1 / (lam n)
        "scikit-learn SVR, one for each output": MultiOutputRegressor(
            SVR(C=1 / (LAM * N_TRAIN), epsilon=0.15, gamma=GAMMA)
        ),
    }
    fits = {f"fenchel {name}": OperatorKernelRegressor(kernel, loss=loss, lam=LAM) for name, loss in ours.items()}
    return {**fits, **peers}


def run() -> tuple[list[DemoRow], Bunch]:
    """Fit every model on clean data and with 15 % outliers; return the rows and the contaminated sample."""
    rows = []
    for label, share in (("clean", 0.0), ("15 % outliers", 0.15)):
        sample = make_multioutput(N_TRAIN + N_TEST, outliers=share, random_state=0)
        X, Y = sample.X[:N_TRAIN], sample.Y[:N_TRAIN]
        for name, model in models().items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("error", ConvergenceWarning)
                model.fit(X, Y)
            seconds = time.perf_counter() - start
            distance = model.predict(sample.X[N_TRAIN:]) - sample.truth[N_TRAIN:]
            rows.append(
                DemoRow(
                    label,
                    name,
                    float(np.mean(np.sum(distance**2, axis=1))),
                    getattr(model, "duality_gap_", None),
                    getattr(model, "sparsity_", None),
                    seconds,
                    getattr(model, "outlier_score_", None),
                )
            )
    return rows, Bunch(is_outlier=sample.is_outlier[:N_TRAIN])
