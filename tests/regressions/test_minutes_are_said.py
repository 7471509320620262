"""Fits with a stored matrix that take minutes say so before they begin, and so do searches that end with one."""

import logging
import warnings

import numpy as np
import pytest

from fenchel import KernelAutoencoder, OperatorKernelRegressor, QuantileFunctionRegressor, QuantileFunctionRegressorCV
from fenchel.exceptions import SlowFitWarning
from fenchel.kernels import Gaussian
from fenchel.losses import Huber
from fenchel.model import memory
from fenchel.solvers import DouglasRachford, auto

X = np.random.default_rng(0).standard_normal((40, 2))
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
SLOW = {
    "regressor": lambda: OperatorKernelRegressor(Gaussian(1.0), loss="huber", lam=1e-3).fit(X, Y),
    "quantiles": lambda: QuantileFunctionRegressor(Gaussian(1.0), lam=1e-2, levels=3).fit(X, Y),
    "autoencoder": lambda: KernelAutoencoder(1, lam=1e-3, loss=Huber(0.5), max_inner_iter=1).fit(X),
}


@pytest.mark.parametrize("name", SLOW)
def test_an_estimate_in_minutes_is_said_before_the_solver_begins(monkeypatch, caplog, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SlowFitWarning)
        SLOW[name]()
    monkeypatch.setattr(auto, "_LONG", 0.0)
    with (
        caplog.at_level(logging.INFO, logger="fenchel"),
        pytest.warns(SlowFitWarning, match="estimated to take 0 minutes by"),
    ):
        SLOW[name]()
    assert any("estimate" in record.message or "only solver" in record.message for record in caplog.records)


def test_a_solver_given_by_name_runs_without_a_warning(monkeypatch):
    monkeypatch.setattr(auto, "_LONG", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SlowFitWarning)
        OperatorKernelRegressor(Gaussian(1.0), loss="huber", lam=1e-3, solver=DouglasRachford()).fit(X, Y)


def test_a_search_of_quantiles_says_minutes_before_its_first_fit(monkeypatch):
    told = []
    monkeypatch.setattr(memory, "FLOPS", 9 * 40**3 / 120)  # an eigendecomposition takes two minutes
    search = QuantileFunctionRegressorCV(
        Gaussian(1.0), lams=[1e-2], levels=3, progress=lambda done, _: told.append(done)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", SlowFitWarning)
        with pytest.raises(SlowFitWarning, match="all 40 samples is estimated to take at least 2 minutes"):
            search.fit(X, Y)
    assert told == []
