"""The benchmark that others can run: one small problem, by every solver that is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fenchel

FOLDER = Path(__file__).parents[1] / "benchmarks" / "benchopt"
pytest.importorskip("benchopt")


def test_solvers_agree_on_a_small_problem(tmp_path):
    pandas = pytest.importorskip("pandas")
    if not FOLDER.exists():
        pytest.skip("no benchmarks beside the tests")
    folder = shutil.copytree(FOLDER, tmp_path / "kernel_regression")
    source = str(Path(fenchel.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": source, "BENCHOPT_CONDA_CMD": "none"}
    wanted = [
        "-d",
        "simulated[n_samples=200,n_outputs=3]",
        "-o",
        "*[loss=huber,lam=0.01]",
        "-n",
        "40",
        "-r",
        "1",
        "--no-plot",
    ]
    command = [sys.executable, "-m", "benchopt", "run", str(folder), *wanted, "--no-plot", "--no-html"]
    found = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert found.returncode == 0, found.stdout + found.stderr
    table = pandas.read_parquet(next((folder / "outputs").glob("*.parquet")))
    best = table.groupby("solver_name")[["objective_value", "objective_relative_gap"]].min()
    assert {"fenchel", "L-BFGS", "cvxpy"} <= set(best.index)
    assert best.loc["fenchel", "objective_relative_gap"] < 1e-10
    assert best.loc["cvxpy", "objective_relative_gap"] < 1e-4
    values = best["objective_value"]
    assert values["fenchel"] == pytest.approx(values["cvxpy"], rel=1e-6)
    assert values["L-BFGS"] == pytest.approx(values["cvxpy"], rel=1e-3)
