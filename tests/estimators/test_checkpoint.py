"""A long fit whose process is killed goes on where it stood."""

import logging
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian
from fenchel.losses import Huber
from fenchel.solvers import Krylov, watched
from fenchel.solvers import state_file as checkpoint

MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])

KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from tests.estimators.test_checkpoint import data, model
from fenchel.solvers import state_file as checkpoint, watched

checkpoint._SHARE = 1e9  # every step is written

def kill(n_iter, certificate):
    if certificate.relative_gap <= 1e-4:
        os.kill(os.getpid(), signal.SIGKILL)

with watched(kill):
    model(sys.argv[1]).fit(*data())
"""


def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (150, 2))
    Y = np.stack([np.sin(3 * X[:, 0]), X[:, 0] * X[:, 1]], axis=1)
    Y[::10] += 3
    return X, Y


def model(checkpoint=None, **parameters):
    settings = {"operator": MATRIX, "loss": Huber(0.2), "lam": 1e-5, "tol": 1e-8, **parameters}
    return OperatorKernelRegressor(
        Gaussian(2.0), **settings, solver=Krylov(n_components=8, tiles="float64", checkpoint=checkpoint)
    )


def n_passes(caplog):
    """Return the passes over the kernel that the last message tells of."""
    return int(re.match(r"Krylov: (\d+) passes", caplog.messages[-1]).group(1))


def test_a_killed_fit_goes_on(tmp_path, caplog):
    """With far fewer passes than a fit from the beginning, and to the same solution."""
    file, root = tmp_path / "fit.npz", Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", KILLED, str(file), str(root)], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL and [path.name for path in tmp_path.iterdir()] == ["fit.npz"]
    with caplog.at_level(logging.INFO, "fenchel"):
        whole = model().fit(*data())
        passes = n_passes(caplog)
        caplog.clear()
        resumed = model(file).fit(*data())
    assert caplog.messages[0] == f"Krylov: resuming from {file}"
    assert n_passes(caplog) < 0.8 * passes
    assert resumed.history_[0][1] < 0.1 * whole.history_[0][1]
    assert resumed.duality_gap_ <= 1e-8 and resumed.certificate_ == "exact"
    assert_allclose(resumed.primal_objective_, whole.primal_objective_, rtol=2e-8)


def test_a_finished_fit_is_refined(tmp_path, monkeypatch):
    file = tmp_path / "fit.npz"
    monkeypatch.setattr(checkpoint, "_SHARE", 1e9)  # every state is written
    first = model(file, tol=1e-3).fit(*data())
    refined = model(file, tol=1e-6).fit(*data())
    assert refined.duality_gap_ <= 1e-6 and refined.history_[0][1] < 0.1 * first.history_[0][1]


@pytest.mark.parametrize("change", [{"lam": 2e-5}, {"loss": Huber(0.3)}, {"operator": None}, "X", "weights"], ids=str)
def test_another_problem_is_an_error(tmp_path, change):
    file, (X, Y), weights = tmp_path / "fit.npz", data(), None
    interrupted(file)
    if change == "X":
        X[7, 1] = np.nextafter(X[7, 1], 3)
    if change == "weights":
        weights = np.linspace(1, 2, len(X))
    with pytest.raises(ValueError, match="belongs to another problem"):
        model(file, **(change if isinstance(change, dict) else {})).fit(X, Y, weights)


def test_a_damaged_file_is_an_error(tmp_path):
    file = tmp_path / "fit.npz"
    interrupted(file)
    file.write_bytes(file.read_bytes()[:700])
    with pytest.raises(ValueError, match="is damaged"):
        model(file).fit(*data())
    with pytest.raises(ValueError, match="not a regular file"):
        model(tmp_path).fit(*data())


def test_short_numbers_are_refused(tmp_path):
    X, Y = data()
    with pytest.raises(IncompatibleError, match="a checkpoint needs data in float64"):
        model(tmp_path / "fit.npz").fit(X.astype("float32"), Y)


def interrupted(file):
    """Leave the file of a fit that ended at its first certificate."""

    def stop(n_iter, certificate):
        raise RuntimeError("enough")

    with watched(stop), pytest.raises(RuntimeError, match="enough"):
        model(file).fit(*data())


def test_a_fit_with_features_goes_on(tmp_path, monkeypatch):
    """The state of the splitting is that of the problem with features, whose solution it leads to."""
    monkeypatch.setattr(checkpoint, "_SHARE", 1e9)  # every step is written
    file, features = tmp_path / "fit.npz", Nystrom(20, "uniform")
    whole = model(approximation=features).fit(*data())
    first = model(file, approximation=features, tol=1e-3).fit(*data())
    resumed = model(file, approximation=features).fit(*data())
    assert first.n_iter_ < whole.n_iter_ and resumed.history_[0][1] < 0.1 * whole.history_[0][1]
    assert_allclose(resumed.primal_objective_, whole.primal_objective_, rtol=2e-8)
    with pytest.raises(ValueError, match="belongs to another problem"):
        model(file, approximation=Nystrom(19, "uniform")).fit(*data())
