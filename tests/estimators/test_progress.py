"""How far a fit has come: functions, the bar, scikit-learn's callbacks; searches that end with their best pair."""

import importlib.util
import pickle
import sys
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel
from fenchel import (
    ConformalRegressor,
    FieldRegressor,
    FunctionalRegressorCV,
    LearnedMetricRegressor,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressorCV,
    RobustRefit,
    StructuredPredictorCV,
)
from fenchel import _progress as progress
from fenchel.app.tables import TableRegressor
from fenchel.datasets import make_functional
from fenchel.kernels import Gaussian
from fenchel.losses import Huber, Square
from fenchel.search.checkpoint import Checkpoint
from fenchel.solvers import watched
from tests.estimators.test_every_estimator import drawn, every

callbacks = pytest.mark.skipif(
    importlib.util.find_spec("sklearn.callback") is None, reason="scikit-learn before 1.9 has no callbacks"
)
GRID = {"lams": [1e-1, 1e-2, 1e-3], "losses": [Huber(0.1), Huber(0.3)]}


def vectors(n=120, p=2):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sin(3 * X[:, :p]) + 0.1 * rng.standard_normal((n, p))


def numbers():
    X, Y = vectors()
    return X, Y[:, 0]


def labels():
    X, Y = vectors()
    return X, (Y > 0).astype(int)


def curves():
    data = make_functional(60, 20, random_state=0)
    return data.X, data.Y


def with_gaps():
    X, Y = vectors()
    Y[np.random.default_rng(1).random(Y.shape) < 0.2] = np.nan
    return X, Y


def outlying():
    X, Y = vectors()
    Y[:8] += 5
    return X, Y


SEARCHES = [  # every class that has a search without arguments
    (OperatorKernelRegressorCV(), vectors),
    (OperatorKernelRegressorCV(), with_gaps),
    (OperatorKernelRegressorCV(cv="loo"), vectors),
    (OperatorKernelRegressorCV(n_jobs=2, kernel="gaussian", **GRID), vectors),
    (FunctionalRegressorCV(), curves),
    (StructuredPredictorCV(), labels),
    (StructuredPredictorCV(task_loss=fenchel.metrics.hamming_losses), labels),
    (QuantileFunctionRegressorCV(), numbers),
    (QuantileFunctionRegressorCV("gaussian", n_jobs=2, lams=[1e-2, 1e-3], levels=3), numbers),
    (LossTrickPredictor(), numbers),
    (FieldRegressor(), vectors),
    (LearnedMetricRegressor(max_rounds=1), numbers),
    (ConformalRegressor(), vectors),
    (ConformalRegressor(method="cv+"), vectors),
    (RobustRefit(), outlying),
]
of_searches = pytest.mark.parametrize(
    ("model", "sample"), SEARCHES, ids=[f"{type(model).__name__}-{sample.__name__}" for model, sample in SEARCHES]
)


def fitted(model, *sample):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*sample)


def told(model, *sample):
    """Return the reports of a fit, with the CPU time of each as a share of all."""
    seen, start = [], time.process_time()
    fitted(model.set_params(progress=lambda *report: seen.append((*report, time.process_time() - start))), *sample)
    done, total, seconds = map(np.array, zip(*seen, strict=True))
    return done, total, seconds / (time.process_time() - start)


@of_searches
def test_work_is_told_in_many_small_steps(model, sample, capsys):
    """And nothing else is changed by it."""
    (X, y), listening = sample(), clone(model)
    done, total, _ = told(listening, X, y)
    assert np.all(total == 1000)
    assert np.all(np.diff(done) > 0) and done[-1] == 1000
    assert done[0] <= 100 and len(done) > 10
    assert np.max(np.diff(done)) <= 400
    np.testing.assert_array_equal(listening.predict(X[:5]), fitted(clone(model), X, y).predict(X[:5]))
    assert capsys.readouterr() == ("", "")


def test_work_takes_as_long_as_it_is_told():
    """The first report comes early, and what is told to be done is near the share of the time."""
    fitted(OperatorKernelRegressorCV(), *vectors(60))  # loads modules
    done, _, share = told(OperatorKernelRegressorCV(), *vectors(600, 3))
    assert share[0] < 0.1
    assert np.max(np.abs(done / 1000 - share)) < 0.35
    assert np.max(np.diff([0, *share, 1])) < 0.25


def test_a_fit_without_a_search_is_told_by_its_gap():
    seen = []
    with progress.reporting(lambda done, total: seen.append(done)):
        OperatorKernelRegressor(Gaussian(1.0), loss=Huber(0.05), lam=1e-5, solver="apgd", tol=1e-4).fit(*vectors())
    assert seen == sorted(set(seen)) and len(seen) > 5 and seen[-1] == 1000


def test_the_bar(capsys):
    model = OperatorKernelRegressorCV(progress=True).fit(*vectors())
    assert clone(model).progress is True and pickle.loads(pickle.dumps(model)).progress is True
    out, text = capsys.readouterr()
    assert out == ""
    lines = text.split("\r")
    assert lines[1].startswith("OperatorKernelRegressorCV [" + " " * 30 + "]   0% 0:00")
    assert lines[-1].startswith("OperatorKernelRegressorCV [" + "#" * 30 + "] 100% 0:0")
    assert text.count("\n") == 1 and text.endswith("\n")
    assert len({len(line.rstrip("\n")) for line in lines[1:]}) == 1  # each state covers the one before
    assert progress._clock(7265.4) == "2:01:05" and progress._clock(59.6) == "1:00"


def test_a_fit_that_fails_ends_the_line(capsys):
    X, Y = vectors()
    with pytest.raises(ValueError, match="infinity"):
        OperatorKernelRegressorCV(progress=True).fit(np.where(X > 0.9, np.inf, X), Y)
    assert capsys.readouterr().err.endswith("\n")
    assert progress.here().told is None


@pytest.mark.parametrize("value", ["yes", 1, [print]])
def test_progress_is_a_bool_or_a_function(value):
    with pytest.raises(TypeError, match=r"The 'progress' parameter of OperatorKernelRegressorCV must be a bool or a"):
        OperatorKernelRegressorCV(progress=value).fit(*vectors())


def test_a_path_is_told():
    seen = []
    fenchel.path(
        OperatorKernelRegressor(), *vectors(), [1e-1, 1e-2], [Square(), Huber(0.1)], progress=lambda *_: seen.append(_)
    )
    assert seen[-1] == (1000, 1000)


def test_shares_add_up():
    """Nested shares, from functions and iterators, some of which are never begun or never ended."""
    seen = []
    with progress.reporting(lambda done, total: seen.append(done / total)):
        with progress.part(0.5):
            for k in range(4):
                with progress.part(1 / (4 - k)):
                    progress.here().reach(0.5)
                    progress.here().reach(0.2)  # less than before changes nothing
                assert seen[-1] == pytest.approx(0.5 * (k + 1) / 4)
        items = progress.evenly(iter("abcde"), 5)
        assert next(items) + next(items) == "ab"
        assert seen[-1] == pytest.approx(0.5 + 0.5 * 2 / 5)
        assert list(items) == ["c", "d", "e"] and seen[-1] == 1
    seen.clear()
    with progress.reporting(lambda done, total: seen.append(done / total)):
        first, second = progress.here().split(2)
        with second.entered(), progress.reporting(lambda *_: None):  # a fit inside, with a listener of its own
            progress.here().reach(0.5)
            assert seen[-1] == pytest.approx(0.25)
        assert seen[-1] == pytest.approx(0.5)
        assert first.done == 0
    assert seen[-1] == 1
    assert progress.here().part(0.3) is progress.here()  # nobody follows: nothing is counted


def recording(monkeypatch, at):
    """Interrupt after so many pairs of a search."""
    record, seen = Checkpoint.record, []

    def stop(store, *pair):
        record(store, *pair)
        seen.append(pair)
        if len(seen) == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "record", stop)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_interrupted_search_fits_its_best_pair(monkeypatch, n_jobs):
    X, Y = vectors()
    whole = OperatorKernelRegressorCV("gaussian", **GRID).fit(X, Y)
    recording(monkeypatch, 4)
    with fenchel.keeping_best_pair(), pytest.warns(ConvergenceWarning, match="pairs (of the grid )?are known"):
        model = OperatorKernelRegressorCV("gaussian", **GRID, n_jobs=n_jobs).fit(X, Y)
    is_known = ~np.isnan(model.cv_errors_)
    assert is_known.sum() >= 4 and (n_jobs == 2 or is_known.sum() == 4)
    np.testing.assert_allclose(model.cv_errors_[is_known], whole.cv_errors_[is_known], rtol=1e-6)
    i, j = np.unravel_index(np.nanargmin(model.cv_errors_), model.cv_errors_.shape)
    assert (model.best_loss_.kappa, model.best_lam_) == (GRID["losses"][i].kappa, GRID["lams"][j])
    alone = OperatorKernelRegressor("gaussian", loss=Huber(model.best_loss_.kappa), lam=model.best_lam_).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-3)
    assert model.duality_gap_ <= 1e-6


@pytest.mark.parametrize(
    ("model", "sample"),
    [
        (OperatorKernelRegressorCV(), vectors),
        (FunctionalRegressorCV(), curves),  # in the search for the output kernel
        (StructuredPredictorCV("gaussian"), labels),
        (QuantileFunctionRegressorCV(), numbers),
        (QuantileFunctionRegressorCV("gaussian", lams=[1e-1, 1e-2, 1e-3, 1e-4], levels=3), numbers),
        (LossTrickPredictor(), numbers),
        (OperatorKernelRegressorCV("gaussian", losses=[Huber("auto")]), vectors),  # in the pilot
    ],
    ids=lambda part: type(part).__name__,
)
def test_every_search_fits_its_best_pair(monkeypatch, model, sample):
    X, y = sample()
    recording(monkeypatch, 3)
    with fenchel.keeping_best_pair(), pytest.warns(ConvergenceWarning, match="Interrupted: 3 of"):
        model = clone(model).fit(X, y)
    assert np.asarray(model.predict(X)).shape[0] == len(X) and model.duality_gap_ <= 1e-6


def test_an_interrupt_in_the_paths_of_quantiles_is_raised():
    """A path keeps what it has solved when it is interrupted; a search cannot use a part of a path."""
    seen = []

    def stop(n_iter, certificate):
        seen.append(n_iter)
        if len(seen) > 4 and n_iter == 0:
            raise KeyboardInterrupt

    with watched(stop), pytest.raises(KeyboardInterrupt):
        QuantileFunctionRegressorCV("gaussian", lams=[1e-1, 1e-2, 1e-3], levels=3).fit(*numbers())


def test_an_interrupt_before_the_first_pair_is_raised(monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "record", stop)
    with fenchel.keeping_best_pair(), pytest.raises(KeyboardInterrupt):
        OperatorKernelRegressorCV("gaussian", **GRID).fit(*vectors())


def test_an_interrupt_of_a_grid_that_is_extended(monkeypatch):
    """All pairs of the given grid are known: the best of those so far is fitted."""
    recording(monkeypatch, 14)
    X, _ = vectors(60)
    with fenchel.keeping_best_pair(), pytest.warns(ConvergenceWarning, match="Interrupted: all given pairs are known"):
        model = OperatorKernelRegressorCV("gaussian").fit(X, np.sin(X))
    assert model.cv_errors_.shape == (1, 14) and model.best_lam_ < 1e-6


def test_what_a_function_returns_does_not_matter():
    """Some progress bars return True when they have drawn themselves."""
    model = OperatorKernelRegressorCV("gaussian", **GRID, progress=lambda done, total: True).fit(*vectors())
    assert not np.isnan(model.cv_errors_).any() and model.duality_gap_ <= 1e-6


def test_a_listener_ends_a_fit_with_its_best_point():
    model = OperatorKernelRegressor(Gaussian(1.0), loss=Huber(0.05), lam=1e-5, solver="apgd", tol=1e-10)
    with (
        pytest.warns(ConvergenceWarning, match="best point that was certified"),
        progress.reporting(lambda done, total: True),
    ):
        model.fit(*vectors())
    assert "interrupted" in model.status_ and np.isfinite(model.duality_gap_)


class Watcher:
    """A callback of scikit-learn that keeps what it is told."""

    def __init__(self, stops_at=None):
        self.events = []
        self.stops_at = stops_at

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.events.append(("begin", context.task_name, X is not None))

    def on_fit_task_end(self, estimator, context, *, y=None, fitted_estimator=None):
        self.events.append(("end", context.task_name, fitted_estimator is not None))
        return context.task_id == self.stops_at and context.task_name == "work"


@callbacks
@every
def test_callbacks_of_every_estimator(estimator):
    X, y = drawn(estimator)
    watcher = Watcher()
    model = clone(estimator).set_callbacks(watcher)
    fitted(model, X, y)
    events = watcher.events
    assert events[0] == "setup" and events[-1] == "teardown" and events.count("teardown") == 1
    assert events[1] == ("begin", "fit", True) and events[-2] == ("end", "fit", True)
    assert events[2:-2] == [("begin", "work", True), ("end", "work", False)] * 100
    assert not {"_callback_fit_ctx", "_skl_callbacks_to_teardown"} & vars(model).keys()
    assert fitted(clone(model), X, y) is not model and events.count("teardown") == 2  # clones have the callbacks too
    n_events = len(events)
    fitted(model.set_callbacks(), X, y)
    assert len(events) == n_events


@callbacks
def test_callbacks_of_tables():
    X, y = numbers()
    watcher = Watcher()
    TableRegressor(OperatorKernelRegressor(), ["y"]).set_callbacks(watcher).fit({"x": X[:, 0], "y": y})
    assert watcher.events.count(("end", "work", False)) == 100


@callbacks
def test_callbacks_of_a_fit_that_fails():
    watcher = Watcher()
    with pytest.raises(ValueError, match="infinity"):
        OperatorKernelRegressorCV().set_callbacks(watcher).fit(np.full((10, 1), np.inf), np.ones(10))
    assert watcher.events == ["setup", ("begin", "fit", True), "teardown"]


@callbacks
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_callback_ends_the_search(n_jobs):
    """The best pair so far is then fitted to the end."""
    X, Y = vectors()
    model = OperatorKernelRegressorCV("gaussian", **GRID, n_jobs=n_jobs).set_callbacks(Watcher(stops_at=50))
    with pytest.warns(ConvergenceWarning, match="of 6 pairs of the grid are known, and the best of them is fitted"):
        model.fit(X, np.repeat(Y, 3, axis=1))
    assert 1 <= np.sum(~np.isnan(model.cv_errors_)) < 6 and model.duality_gap_ <= 1e-6


@callbacks
def test_a_callback_ends_the_search_inside_another_fit():
    X, Y = vectors()
    inner = OperatorKernelRegressorCV("gaussian", **GRID, progress=lambda *_: None)
    model = ConformalRegressor(inner).set_callbacks(Watcher(stops_at=20))
    with pytest.warns(ConvergenceWarning, match="pairs (of the grid )?are known"):
        model.fit(X, np.repeat(Y, 3, axis=1))
    assert model.estimator_.duality_gap_ <= 1e-6


@callbacks
@pytest.mark.parametrize(
    "model",
    [
        OperatorKernelRegressorCV(),
        ConformalRegressor(OperatorKernelRegressorCV()),
        make_pipeline(StandardScaler(), OperatorKernelRegressorCV()),
        GridSearchCV(OperatorKernelRegressorCV(), {"cv": [2, 3]}, cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_bar_of_scikit_learn(model, capsys, monkeypatch):
    rich = pytest.importorskip("rich")
    from rich.console import Console
    from sklearn.callback import ProgressBar

    monkeypatch.setattr(rich, "_console", Console(width=200))  # the shared one may be too narrow, as made earlier
    fitted(clone(model).set_callbacks(ProgressBar()), *vectors(60))
    text = capsys.readouterr().out
    assert type(model).__name__ in text
    assert all("100%" in line for line in text.splitlines() if "Regressor" in line or type(model).__name__ in line)


@callbacks
def test_callbacks_are_not_saved(tmp_path):
    pytest.importorskip("skops")
    X, y = numbers()
    for estimator in (OperatorKernelRegressorCV(), LossTrickPredictor()):
        model = fitted(estimator.set_callbacks(Watcher()), X, y)
        fenchel.save(model, tmp_path / "model.fenchel")
        same = fenchel.load(tmp_path / "model.fenchel")
        np.testing.assert_array_equal(same.predict(X), model.predict(X))
        assert not hasattr(same, "_skl_callbacks") and hasattr(model, "_skl_callbacks")


def test_callbacks_of_an_older_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)  # its import fails
    spec = importlib.util.spec_from_file_location("older", progress.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(NotImplementedError, match=r"set_callbacks needs scikit-learn 1\.9 or later"):
        module.CallbacksMixin().set_callbacks(Watcher())
