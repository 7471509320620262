"""The harness that compares commits: it finds planted changes, and its cases reach every estimator and loss."""

import inspect
import warnings

import pytest

import fenchel
from fenchel import OperatorKernelRegressor, losses
from tests.oracles.against_release import LARGER, VERDICTS, compare, main, recorded, verdict
from tests.oracles.release_cases import CASES, NAMES
from tests.oracles.release_data import sample_of

ONE = [case for case in CASES if case.name == "flat: OperatorKernelRegressor(loss='huber', lam=1e-2)"]


class Perturbed(OperatorKernelRegressor):
    def predict(self, X):
        return super().predict(X) * (1 + 1e-6)


class Rounded(OperatorKernelRegressor):
    def predict(self, X):
        return super().predict(X) * (1 + 1e-12)


class Other(OperatorKernelRegressor):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.loss_ = losses.Square()
        return self


class Warned(OperatorKernelRegressor):
    def fit(self, X, y, sample_weight=None):
        warnings.warn("Something is odd. Do this.", stacklevel=2)
        return super().fit(X, y, sample_weight)


class Raising(OperatorKernelRegressor):
    def predict(self, X):
        raise ValueError("no")


@pytest.mark.parametrize(
    ("changed", "worst"),
    [
        (OperatorKernelRegressor, "bits"),
        (Rounded, "1e-8"),
        (Perturbed, "moved"),
        (Other, "choice differs"),
        (Warned, "warning differs"),
        (Raising, "error text differs"),
    ],
)
def test_finds_a_planted_change(changed, worst, monkeypatch):
    before = recorded(ONE)
    monkeypatch.setitem(NAMES, "OperatorKernelRegressor", changed)
    ((name, found, lines),) = compare(before, recorded(ONE))
    assert (name, found) == (ONE[0].name, worst)
    assert bool(lines) == (worst not in VERDICTS[:2])


def test_command(tmp_path, monkeypatch, capsys):
    given = [str(tmp_path / "release.json.gz"), "--only", ONE[0].name]
    assert main(["record", *given]) == main(["compare", *given]) == 0
    monkeypatch.setitem(NAMES, "OperatorKernelRegressor", Perturbed)
    assert main(["compare", *given]) == 1
    assert "predict: moved 1.0e-06" in capsys.readouterr().out
    assert main(["compare", *given, "--allow", "/predict"]) == 1  # the score moved too
    assert main(["compare", *given, "--allow", "/predict", "--allow", "/score"]) == 0


def test_a_saved_model_may_grow_a_little():
    def size(n):
        return {"form": "float64[]", "digest": str(n), "largest": n, "numbers": [n]}

    assert verdict("saved.bytes", size(1000.0), size(999.0 * LARGER))[0] == "bits"
    assert verdict("saved.bytes", size(1000.0), size(1001.0 * LARGER))[0] == "moved"


def test_a_case_that_is_gone_differs():
    before = recorded(ONE)
    assert compare(before, {})[0][1] == "choice differs"
    assert compare({}, before)[0][1] == "choice differs"


def test_every_case_has_its_own_name_and_sample():
    assert len({case.name for case in CASES}) == len(CASES) > 300
    for name in {case.data for case in CASES} - {"fdata"}:  # scikit-fda takes seconds to load
        sample_of(name)


def test_cases_reach_every_estimator_and_loss():
    text = "\n".join(case.expression for case in CASES)
    rooms = [fenchel, losses]
    names = {name for room in rooms for name in room.__all__ if inspect.isclass(getattr(room, name))}
    results = {
        "CostCurve",
        "ExcessRiskBound",
        "FrequencySearch",
        "GeneralizationBound",
        "KernelWeights",
        "PredictionBand",
        "PredictionSet",
    }
    bases = {"Loss", "PointLoss", "RegularizationPath", "CostSensitiveHinge", "ScalarFunction"}
    assert [name for name in sorted(names - results - bases) if f"{name}(" not in text and f"{name}." not in text] == []
