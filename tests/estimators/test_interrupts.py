"""``KeyboardInterrupt`` in the middle of a solve: the best certified point is kept, and the model says so."""

import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fenchel import (
    CostSensitiveClassifier,
    FunctionalRegressor,
    KernelAutoencoder,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
    StructuredPredictor,
    path,
)
from fenchel.estimators import layers
from fenchel.kernels import Gaussian
from fenchel.losses import Huber
from fenchel.model.training_set import TrainingSet
from fenchel.operators import Dense
from fenchel.problem import DualProblem
from fenchel.resample.surface import solve_grid
from fenchel.search.checkpoint import Checkpoint
from fenchel.search.search import Search
from fenchel.solvers import APGD, BCD, PGD, BoxNewton, DouglasRachford, Krylov, RowNewton, Status, watched
from fenchel.solvers.auto import _Relay
from fenchel.solvers.solver import keeping_best

TIGHT = {"tol": 1e-14}


@pytest.fixture
def sample(rng):
    X = rng.uniform(-2, 2, (40, 2))
    return X, np.sin(2 * X) + 0.1 * rng.standard_normal((40, 2))


def interrupting(at):
    """Return a watcher that interrupts at a certificate, and the gaps that it has seen."""
    seen = []

    def watch(n_iter, certificate):
        seen.append(abs(certificate.relative_gap))
        if len(seen) == at:
            raise KeyboardInterrupt

    return watch, seen


def recording(at):
    """Return ``Checkpoint.record``, interrupted after so many pairs."""
    record, seen = Checkpoint.record, []

    def stop(store, *pair):
        record(store, *pair)
        seen.append(pair)
        if len(seen) == at:
            raise KeyboardInterrupt

    return stop


def interrupted(model, *data, at=3):
    """Return the model, interrupted at a certificate, and the gaps before that."""
    watch, seen = interrupting(at)
    with watched(watch), pytest.warns(ConvergenceWarning, match="best point that was certified"):
        model.fit(*data)
    assert "interrupted" in model.status_
    return model, seen[: at - 1]


@pytest.mark.parametrize(
    "solver", [APGD(), PGD(), BCD(), DouglasRachford(), RowNewton(), Krylov(n_components=5), "auto"], ids=str
)
def test_a_fit_keeps_the_best_point(sample, solver):
    X, Y = sample
    settings = {"loss": Huber(0.05), "lam": 1e-4, "solver": solver, **TIGHT}
    model, gaps = interrupted(OperatorKernelRegressor(Gaussian(1.0), **settings), X, Y)
    assert abs(model.duality_gap_) <= (1 + 1e-9) * min(gaps)
    np.testing.assert_allclose(model.predict(X), Gaussian(1.0)(X) @ model.dual_coef_ / (1e-4 * 40), atol=1e-8)


def test_a_box_keeps_the_best_point(sample):
    X, Y = sample
    model, _ = interrupted(QuantileFunctionRegressor(levels=3, solver=BoxNewton(), **TIGHT), X, Y[:, 0])
    assert np.isfinite(model.predict(X, [0.1, 0.5])).all()


@pytest.mark.parametrize(
    ("model", "outputs"),
    [
        (FunctionalRegressor(loss=Huber(0.05, p=1), **TIGHT), "curves"),
        (StructuredPredictor(loss=Huber(0.05), output_kernel=Gaussian(1.0), **TIGHT), "curves"),
        (LossTrickPredictor(Gaussian(1.0), lam=1e-4, surrogate=Huber(0.05), **TIGHT), "curves"),
        (QuantileFunctionRegressor(levels=4, **TIGHT), "numbers"),
        (CostSensitiveClassifier(levels=4, **TIGHT), "classes"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_estimator_keeps_the_best_point(sample, model, outputs):
    X, Y = sample
    y = {"curves": Y, "numbers": Y[:, 0], "classes": Y[:, 0] > 0}[outputs]
    model, gaps = interrupted(model, X, y)
    assert abs(model.duality_gap_) <= (1 + 1e-9) * min(gaps) and len(model.predict(X)) == 40


def test_a_solver_of_a_relay_that_has_not_begun(sample, monkeypatch):
    """The second solver of a relay is interrupted before its first point: that of the first one is kept."""
    X, Y = sample

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(DouglasRachford, "init", stop)
    relay = _Relay(DualProblem.build(Dense(Gaussian(1.0)(X)), Y, Huber(0.05), 1e-4), None, 1e-14, None)
    relay.run(APGD(max_iter=20), "the first", 1e-14)
    with pytest.raises(KeyboardInterrupt):
        relay.run(DouglasRachford(), "the second", 1e-14)
    with keeping_best():
        assert relay.run(DouglasRachford(), "the second", 1e-14) is Status.INTERRUPTED
    assert relay.is_over and relay.solution().solver == "APGD" and relay.solution().status is Status.INTERRUPTED


def test_float32_that_is_interrupted_in_float64(sample, monkeypatch):
    """The result in float32 is kept where the refinement has not come to a point."""
    X, Y = (part.astype(np.float32) for part in sample)
    model = OperatorKernelRegressor(Gaussian(1.0), loss=Huber(0.05), lam=1e-4, tol=1e-16)  # float32 cannot reach it
    learn = TrainingSet.learn

    def stop(task, sample, spec):
        if sample.X.dtype == np.float64:
            raise KeyboardInterrupt
        return learn(task, sample, spec)

    monkeypatch.setattr(TrainingSet, "learn", stop)
    with pytest.warns(ConvergenceWarning, match="best point that was certified"):
        model.fit(X, Y)
    assert model.duality_gap_ < 1e-3 and "interrupted" in model.status_


def test_an_interrupt_before_the_first_point_is_raised(sample):
    with watched(interrupting(1)[0]), pytest.raises(KeyboardInterrupt):
        OperatorKernelRegressor(loss="epsilon_svr", solver=PGD()).fit(*sample)


def test_the_last_fit_of_a_search_keeps_the_best_point(sample, monkeypatch):
    X, Y = sample
    is_searched = []

    def watch(n_iter, certificate):
        if is_searched and n_iter > 0:
            raise KeyboardInterrupt

    model = OperatorKernelRegressorCV(Gaussian(1.0), losses=[Huber(0.05)], lams=[1e-4], cv=2, tol=1e-14)
    collect = Search.collect
    monkeypatch.setattr(Search, "collect", lambda *args: (collect(*args), is_searched.append(True))[0])
    with watched(watch), pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    assert any("best point that was certified" in str(one.message) for one in caught)
    assert "interrupted" in model.status_ and model.cv_errors_.shape == (1, 1)


@pytest.mark.parametrize("has_file", [False, True])
def test_a_search_says_what_is_done(sample, tmp_path, monkeypatch, has_file):
    file = tmp_path / "errors.npz"
    losses = [Huber(0.1), Huber(0.3), Huber(1.0)]
    model = OperatorKernelRegressorCV(
        "gaussian", lams=[1e-2, 1e-1], losses=losses, checkpoint=file if has_file else None
    )

    monkeypatch.setattr(Checkpoint, "record", recording(3))
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(*sample)
    (note,) = caught.value.__notes__
    assert note.startswith("3 of 6 pairs of the grid were done.")
    assert ("1 of 3 losses are in the checkpoint" if has_file else "Set checkpoint to keep") in note
    assert not hasattr(model, "dual_coef_")


def test_a_path_keeps_what_is_solved(sample, monkeypatch):
    X, Y = sample

    def stop(*args):
        yield from islice(solve_grid(*args), 3)
        raise KeyboardInterrupt

    monkeypatch.setattr("fenchel.search.path.solve_grid", stop)
    with pytest.warns(ConvergenceWarning, match="3 of 4 pairs of the path are solved"):
        surface = path(OperatorKernelRegressor(), X, Y, [1e-2, 1e-1], [Huber(0.1), Huber(1.0)])
    assert np.sum(np.isnan(surface.gaps)) == 1 and np.nanmax(surface.gaps) <= 1e-6
    assert surface.model(0, 1).duality_gap_ <= 1e-6
    (i,), (j,) = np.nonzero(np.isnan(surface.gaps))
    with pytest.raises(ValueError, match=r"The path has no solution for the pair"):
        surface.model(i, j)


def test_an_autoencoder_keeps_its_best_layers(sample, monkeypatch):
    calls = []
    evaluate = layers.Reduced.__call__

    def stop(self, one):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return evaluate(self, one)

    monkeypatch.setattr(layers.Reduced, "__call__", stop)
    with pytest.warns(ConvergenceWarning, match="these are the best layers so far"):
        model = KernelAutoencoder(1, "gaussian", random_state=0).fit(sample[0])
    assert "interrupted" in model.inner_status_ and abs(model.duality_gap_) <= 1e-6
    assert model.objective_ <= model.objective_history_[0]


def grid_search(file):
    losses = [Huber(kappa) for kappa in (0.1, 0.3, 1.0)]
    return OperatorKernelRegressorCV("gaussian", lams=[1e-2, 1e-1], losses=losses, checkpoint=file)


def waves():
    X = np.linspace(0, 3, 40)[:, None]
    return X, np.hstack([np.sin(X), np.cos(X)])


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from tests.estimators.test_interrupts import grid_search, waves

def kill(done, total):
    if done > 0.6 * total:
        os.kill(os.getpid(), signal.SIGKILL)

grid_search(sys.argv[1]).set_params(progress=kill).fit(*waves())
"""


def test_a_search_survives_kill_9(tmp_path):
    """A process that is killed by SIGKILL leaves a checkpoint of its finished losses, from which the next goes on."""
    file, root = tmp_path / "errors.npz", Path(__file__).parents[2]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(file), str(root)], check=False)
    assert killed.returncode == -signal.SIGKILL and [path.name for path in tmp_path.iterdir()] == ["errors.npz"]
    solved = []
    for checkpoint in (file, tmp_path / "whole.npz"):
        watch, seen = interrupting(None)
        with watched(watch):
            errors = grid_search(checkpoint).fit(*waves()).cv_errors_
        solved.append((len(seen), errors))
    (resumed, found), (whole, wanted) = solved
    assert resumed < whole  # the errors of the finished losses came from the file
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
