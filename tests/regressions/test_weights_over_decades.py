"""Weights spread over twelve decades: fits and searches end after a bounded number of steps, and say how."""

import warnings

import numpy as np
import pytest

from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonSVR, Norm
from fenchel.resample import held_out
from fenchel.solvers import DouglasRachford

N = 60
X = np.random.default_rng(0).standard_normal((N, 3))
Y = np.column_stack([np.sin(X[:, 0]) * X[:, 1], X[:, 2] ** 2])
WEIGHTS = {
    "over decades": 10.0 ** np.random.default_rng(1).uniform(-6, 6, N),
    "three count": np.where(np.arange(N) < N - 3, 1e-12, 1.0),
    "one counts": np.where(np.arange(N) < 1, 1e12, 1.0),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("loss", [EpsilonSVR(0.1), Norm()], ids=repr)
def test_fits_are_certified(weights, loss):
    model = OperatorKernelRegressor(Gaussian(0.5), loss=loss, lam=1e-4).fit(X, Y, sample_weight=WEIGHTS[weights])
    assert model.duality_gap_ <= 1e-6


@pytest.mark.parametrize("cv", [5, 30])
def test_folds_take_a_bounded_number_of_steps(monkeypatch, cv):
    steps, solve_all = [], DouglasRachford.solve_all

    def watched(self, problems, *args, **kwargs):
        solutions = solve_all(self, problems, *args, **kwargs)
        steps.extend(solution.n_iter for solution in solutions)
        return solutions

    monkeypatch.setattr(DouglasRachford, "solve_all", watched)
    monkeypatch.setattr(held_out, "_MOST_STEPS", 50)
    search = OperatorKernelRegressorCV(Gaussian(0.5), losses=[EpsilonSVR(0.1)], lams=[1e-7, 1e-5], cv=cv)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        search.fit(X, Y, sample_weight=WEIGHTS["three count"])
    assert max(steps[: 2 * cv]) == 50
    assert search.cv_gaps_.max() > 1e-6
    assert any("pairs of the grid have a gap above tol" in str(each.message) for each in said)
