import io
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, cross_val_predict

import fenchel
from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.kernels import Diagonal, Gaussian
from fenchel.losses import EpsilonRidge, Huber, Square
from fenchel.search.checkpoint import Checkpoint

LAMS = [1e-1, 1e-4, 1e-2]
LOSSES = [Square(), Huber(0.3), EpsilonRidge(0.2), Huber(0.3, p=1)]
TIGHT = 1e-10


@pytest.fixture
def sample(rng):
    X = rng.standard_normal((30, 2))
    Y = np.sin(X @ rng.standard_normal((2, 5))) + 0.1 * rng.standard_normal((30, 5))
    Y[:3] += 4
    return X, Y


@pytest.mark.parametrize("columns", [1, 5])
def test_path_is_every_fit(sample, columns):
    X, Y = sample[0], sample[1][:, :columns]
    seen = []
    found = fenchel.path(
        OperatorKernelRegressor(Gaussian(0.5), tol=TIGHT), X, Y, LAMS, LOSSES, progress=lambda *done: seen.append(done)
    )
    assert found.gaps.shape == (4, 3)
    assert np.all(found.gaps <= TIGHT)
    done, total = zip(*seen, strict=True)
    assert done[-1] == total[0] and len(set(total)) == 1 and list(done) == sorted(set(done))
    assert np.all(found.primal_objectives - found.dual_objectives >= -1e-12)
    predictions = found.predict(X)
    assert predictions.shape == (4, 3, 30, columns)
    for i, loss in enumerate(LOSSES):
        for j, lam in enumerate(LAMS):
            alone = OperatorKernelRegressor(Gaussian(0.5), loss=clone(loss), lam=lam, tol=TIGHT).fit(X, Y)
            model = found.model(i, j)
            assert model.primal_objective_ == pytest.approx(alone.primal_objective_, rel=1e-8)
            np.testing.assert_allclose(predictions[i, j], alone.predict(X), atol=2e-4)
            assert (model.lam, repr(model.loss)) == (lam, repr(loss))
            assert found.sparsity[i, j] == model.sparsity_


def test_approximate_leave_one_out(sample, tmp_path):
    """Exact for the square loss; for Huber's the means were off by .2, 4.1 and .8 %, and the choice is the same."""
    X, Y = sample
    settings = {"lams": LAMS, "losses": [Square(), Huber(0.3)], "aggregate": "median", "tol": TIGHT}
    exact, near = (
        OperatorKernelRegressorCV(Gaussian(0.5), cv=cv, checkpoint=tmp_path / cv, **settings).fit(X, Y)
        for cv in ("loo", "approximate-loo")
    )
    np.testing.assert_allclose(near.fold_errors_[0], exact.fold_errors_[0], rtol=1e-9)
    ratios = near.fold_errors_[1].mean(axis=1) / exact.fold_errors_[1].mean(axis=1)
    assert np.all(np.abs(ratios - 1) <= [0.004, 0.06, 0.012])
    assert np.all(ratios != 1)
    assert (repr(near.best_loss_), near.best_lam_) == (repr(exact.best_loss_), exact.best_lam_)
    np.testing.assert_allclose(near.predict(X), exact.predict(X), atol=1e-9)
    with pytest.raises(ValueError, match="belongs to other data or another grid"):
        clone(near).set_params(checkpoint=tmp_path / "loo").fit(X, Y)


def test_path_takes_weights_and_the_estimators_loss(sample, rng):
    X, Y = sample
    weights = rng.integers(0, 3, 30)
    found = fenchel.path(OperatorKernelRegressor(loss="huber", tol=TIGHT), X, Y, [1e-2], sample_weight=weights)
    alone = OperatorKernelRegressor(loss="huber", lam=1e-2, tol=TIGHT).fit(X, Y, sample_weight=weights)
    assert found.primal_objectives[0, 0] == pytest.approx(alone.primal_objective_, rel=1e-8)
    np.testing.assert_allclose(found.model(0, 0).predict(X), alone.predict(X), atol=1e-4)
    assert found.model(0, 0).dual_coef_.shape == (30, 5)


def _folds_of_sorted(Y):
    """Return the fold of each sample where the samples, sorted by their outputs, are dealt to four shuffled folds."""
    order, folds = np.argsort(Y[:, 0]), np.empty(len(Y), dtype=int)
    for k, (_, test) in enumerate(KFold(4, shuffle=True, random_state=0).split(Y)):
        folds[order[test]] = k
    return folds


@pytest.mark.parametrize("cv", [4, KFold(3, shuffle=True, random_state=0), "loo"])
def test_cross_validation_is_refitting(sample, cv):
    """The errors equal those of models refitted from scratch on each training part."""
    X, Y = sample
    lams, losses = [1e-1, 1e-3], [Square(), Huber(0.3)]
    model = OperatorKernelRegressorCV(Gaussian(0.5), lams=lams, losses=losses, cv=cv, tol=1e-9).fit(X, Y)
    splitter = KFold(30) if cv == "loo" else PredefinedSplit(_folds_of_sorted(Y)) if cv == 4 else cv
    for i, loss in enumerate(losses):
        for j, lam in enumerate(lams):
            fits = OperatorKernelRegressor(Gaussian(0.5), loss=clone(loss), lam=lam, tol=1e-9)
            squares = np.sum((Y - cross_val_predict(fits, X, Y, cv=splitter)) ** 2, axis=1)
            wanted = [np.mean(squares[test]) for _, test in splitter.split(X)]
            np.testing.assert_allclose(model.fold_errors_[i, j], wanted, rtol=1e-3)
    np.testing.assert_allclose(model.cv_errors_, model.fold_errors_.mean(axis=2))
    assert np.all(model.cv_gaps_ <= 1e-9)
    i, j = np.unravel_index(np.argmin(model.cv_errors_), (2, 2))
    assert (repr(model.best_loss_), model.best_lam_) == (repr(losses[i]), lams[j])
    refit = OperatorKernelRegressor(Gaussian(0.5), loss=clone(losses[i]), lam=lams[j], tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), refit.predict(X), atol=1e-3)
    assert model.duality_gap_ <= 1e-9
    assert model.dual_coef_.shape == Y.shape


@pytest.mark.parametrize(
    ("search", "outputs"),
    [
        (OperatorKernelRegressorCV(Gaussian(20.0), lams=[1e-4, 1e2]), "y"),
        (fenchel.FunctionalRegressorCV(Gaussian(20.0), lams=[1e-4, 1e2], center=False), "curves"),
        (fenchel.StructuredPredictorCV(Gaussian(20.0), lams=[1e-4, 1e2], decoder="threshold"), "labels"),
        (fenchel.QuantileFunctionRegressorCV(Gaussian(20.0), lams=[1e-3, 1e2], levels=3), "y"),
        (fenchel.LossTrickPredictor(Gaussian(20.0), lams=[1e-4, 1e2]), "y"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_folds_of_sorted_samples_are_shuffled(search, outputs):
    """In the order of the samples each fold is an end or a gap of the line, where the mean predicts best."""
    x = np.linspace(0, 4, 60)
    y = np.sin(4 * x) + 2 * x
    samples = {"y": y, "curves": np.stack([y, y, y], axis=1), "labels": np.stack([y > 2, y > 4], axis=1) * 1.0}
    model = clone(search).fit(x[:, None], samples[outputs])
    assert np.argmin(model.cv_errors_) == 0
    again = clone(search).fit(x[:, None], samples[outputs])
    np.testing.assert_array_equal(again.cv_errors_, model.cv_errors_)
    in_order = clone(search).set_params(cv=KFold(5)).fit(x[:, None], samples[outputs])
    assert in_order.cv_errors_.min() > 1.5 * model.cv_errors_.min()


@pytest.mark.parametrize(
    "search",
    [
        OperatorKernelRegressorCV("gaussian", lams=LAMS, cv=3),
        fenchel.FunctionalRegressorCV("gaussian", lams=LAMS, cv=3),
        fenchel.StructuredPredictorCV("gaussian", lams=LAMS, cv=3, decoder="training_set"),
        fenchel.QuantileFunctionRegressorCV("gaussian", lams=[0.1, 1.0], cv=3, levels=5),
    ],
    ids=lambda search: type(search).__name__,
)
def test_groups_are_held_out_together(search, sample):
    X, Y = sample
    Y = Y[:, 0] if isinstance(search, fenchel.QuantileFunctionRegressorCV) else Y
    groups = np.repeat(np.arange(10), 3).astype(str)
    weights = np.where(np.arange(30) == 4, 0.0, 1.0)  # a sample that does not count is in no fold
    parts = list(GroupKFold(3).split(X, Y, groups))
    found = clone(search).set_params(cv=GroupKFold(3)).fit(X, Y, sample_weight=weights, groups=groups)
    other = clone(search).set_params(cv=parts).fit(X, Y, sample_weight=weights)
    assert np.array_equal(found.fold_errors_, other.fold_errors_)


def test_kernels_are_compared_without_the_replicates_of_a_sample(rng):
    """Ten replicates of each input share an error: with them held out, the model is smoother."""
    X, groups = np.repeat(rng.uniform(-2, 2, (15, 1)), 10, axis=0), np.repeat(np.arange(15), 10)
    y = X[:, 0] + np.repeat(rng.standard_normal(15), 10) + 0.05 * rng.standard_normal(150)
    x = X + 0.02 * rng.standard_normal(X.shape)
    search = OperatorKernelRegressorCV(losses=["square"])
    leaking, apart = clone(search).fit(x, y), clone(search).fit(x, y, groups=groups)
    assert apart.score(x, y) < 0.9 < 0.95 < leaking.score(x, y)
    assert apart.cv_errors_.min() > 3 * leaking.cv_errors_.min()
    with pytest.raises(ValueError, match=r"groups must have shape \(150,\)"):
        search.fit(x, y, groups=groups[:-1])
    for missing in (np.where(groups == 3, np.nan, groups), np.where(groups == 3, None, groups.astype(str))):
        with pytest.raises(ValueError, match=r"a label for each sample\. That of sample 30 is missing"):
            clone(search).set_params(cv=KFold(3)).fit(x, y, groups=missing)
    with pytest.raises(ValueError, match="use cv=LeaveOneGroupOut"):
        clone(search).set_params(cv="loo").fit(x, y, groups=groups)


def test_the_median_is_not_moved_by_outliers(rng):
    """With gross errors in the sample, the mean over left-out samples prefers a useless model to a good one."""
    X = np.linspace(-2, 2, 60)[:, None]
    Y = np.hstack([np.sin(2 * X), np.cos(2 * X)]) + 0.05 * rng.standard_normal((60, 2))
    clean = Y.copy()
    Y[::7] = 30 * rng.standard_normal((9, 2))
    settings = {"lams": np.logspace(-5, 1, 7), "losses": [Square(), Huber(0.1)]}
    median = OperatorKernelRegressorCV(Gaussian(2.0), aggregate="median", **settings).fit(X, Y)
    assert repr(median.best_loss_) == "Huber(kappa=0.1)"
    assert np.mean((median.predict(X) - clean)[np.arange(60) % 7 != 0] ** 2) < 0.02
    loo, folds = (
        OperatorKernelRegressorCV(Gaussian(2.0), aggregate=name, cv="loo", **settings).fit(X, Y)
        for name in ("median", "fold_median")
    )
    np.testing.assert_allclose(loo.cv_errors_, folds.cv_errors_, rtol=1e-9)  # one sample in each fold
    np.testing.assert_allclose(np.median(loo.fold_errors_, axis=2), loo.cv_errors_, rtol=1e-9)


def test_checkpoint_goes_on_where_it_stopped(sample, tmp_path, monkeypatch):
    X, Y = sample
    file = tmp_path / "errors.npz"
    settings = {"lams": [1e-2, 1e-1], "losses": [Huber(0.1), Huber(0.3), Huber(1.0)], "checkpoint": file}
    whole = OperatorKernelRegressorCV(**{**settings, "checkpoint": None}).fit(X, Y)

    record, seen = Checkpoint.record, []

    def stop(store, *pair):
        record(store, *pair)
        seen.append(pair[:2])
        if len(seen) == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Checkpoint, "record", stop)
        OperatorKernelRegressorCV(**settings).fit(X, Y)
    monkeypatch.setattr(Checkpoint, "record", stop)
    resumed = OperatorKernelRegressorCV(**settings).fit(X, Y)
    assert {loss for loss, _ in seen[4:]} == {1, 2}  # the first loss came from the file
    assert np.array_equal(resumed.cv_errors_, whole.cv_errors_)
    assert [path.name for path in tmp_path.iterdir()] == ["errors.npz"]  # no half-written file is left
    with pytest.raises(ValueError, match="belongs to other data or another grid"):
        OperatorKernelRegressorCV(**settings).fit(X, Y + 1)


def test_threads_write_one_checkpoint(sample, tmp_path):
    X, Y = sample
    losses = [Huber(kappa) for kappa in np.linspace(0.1, 2.0, 12)]
    settings = {"lams": [1e-1], "losses": losses, "cv": 2}
    alone = OperatorKernelRegressorCV(**settings).fit(X, Y)
    for trial in range(10):
        seen = []
        model = OperatorKernelRegressorCV(**settings, n_jobs=4, checkpoint=tmp_path / f"{trial}.npz")
        model.set_params(progress=lambda done, total, seen=seen: seen.append(done)).fit(X, Y)
        assert seen == sorted(set(seen)) and seen[-1] == 1000
        with np.load(tmp_path / f"{trial}.npz") as stored:  # all that is known of every loss
            assert np.array_equal(stored["errors"], alone.fold_errors_)
            assert np.array_equal(stored["gaps"], alone.cv_gaps_)
            assert np.array_equal(stored["scores"], alone.cv_errors_)
    assert len(list(tmp_path.iterdir())) == 10


def test_a_checkpoint_never_holds_a_part_of_a_pair(tmp_path):
    """Threads that save see each other's pairs with errors and scores, or with neither."""
    store = Checkpoint(tmp_path / "errors.npz", "key", (4, 200, 1))

    def work(loss):
        for lam in range(200):
            store.record(loss, lam, [1.0], 1.0, 1.0)
            store.save(loss)
        with np.load(tmp_path / "errors.npz") as stored:
            assert np.array_equal(np.isnan(stored["errors"][:, :, 0]), np.isnan(stored["scores"]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert Checkpoint(tmp_path / "errors.npz", "key", (4, 200, 1)).todo == []


def damaged(content):
    """Yield what can become of a checkpoint, and a word of what is said."""
    for other in (b"", b"garbage, not an archive", content[: len(content) // 2]):
        yield other, "File is not a zip file"
    yield content[:100] + b"x" * 50 + content[150:], ""
    with np.load(io.BytesIO(content)) as stored:
        arrays = dict(stored)
    for name in arrays:
        yield archived({key: value for key, value in arrays.items() if key != name}), name
    for name in ("errors", "gaps", "scores"):
        yield archived({**arrays, name: arrays[name][:1]}), "do not fit"
        yield archived({**arrays, name: arrays[name].astype(str)}), "do not fit"
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
        archive.writestr("key.npy", huge.getvalue())
    yield buffer.getvalue(), "declares"


def archived(arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_a_damaged_checkpoint_is_named(sample, tmp_path):
    X, Y = sample
    file = tmp_path / "errors.npz"
    model = OperatorKernelRegressorCV(lams=[1e-2, 1e-1], losses=[Huber(0.1), Huber(1.0)], cv=2, checkpoint=file)
    model.fit(X, Y)
    whole = file.read_bytes()
    for content, word in damaged(whole):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"errors\.npz is damaged \(.*\)\. Remove it or use another file") as error:
            model.fit(X, Y)
        assert word in str(error.value)
        assert "\n" not in str(error.value)
        assert file.read_bytes() == content  # nothing is written over it
    with pytest.raises(ValueError, match="is not a regular file"):
        clone(model).set_params(checkpoint=tmp_path).fit(X, Y)


def test_threads_change_nothing(sample):
    X, Y = sample
    one, two = (OperatorKernelRegressorCV(losses=LOSSES, lams=LAMS, n_jobs=n).fit(X, Y) for n in (1, 2))
    np.testing.assert_allclose(one.cv_errors_, two.cv_errors_, rtol=1e-10)


def test_gram_matrices_on_both_sides(sample):
    X, Y = sample
    K = Gaussian(0.5)(X)
    points = OperatorKernelRegressorCV(Gaussian(0.5), lams=LAMS, losses=[Huber(0.3)]).fit(X, Y)
    gram = OperatorKernelRegressorCV("precomputed", lams=LAMS, losses=[Huber(0.3)]).fit(K, Y)
    np.testing.assert_allclose(gram.cv_errors_, points.cv_errors_, rtol=1e-6)
    np.testing.assert_allclose(gram.predict(K), points.predict(X), atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lams": []}, r"'lams' parameter must hold at least one number"),
        ({"lams": ["a"]}, r"'lams' parameter must be a sequence of numbers\. Got \['a'\]"),
        ({"lams": [[1e-2, 1.0]]}, r"'lams' parameter must be a sequence of numbers\. Got \[\[0\.01, 1\.0\]\]"),
        ({"lams": [1e-2, [1.0, 2.0]]}, r"'lams' parameter must be a sequence of numbers"),
        ({"lams": [1e-2, -1.0]}, r"'lams' parameter of the grid must be a float in \(0, inf\)\. Got -1\.0"),
        ({"losses": []}, r"'losses' parameter must hold at least one loss"),
        ({"losses": ["hubber"]}, r"Unknown loss 'hubber'"),
        (
            {"aggregate": "max"},
            r"'aggregate' parameter .* must be one of 'mean', .*'trimmed_mean', 'fold_median', 'auto'\. Got 'max'",
        ),
        ({"cv": "folds"}, r"'cv' parameter .* must be one of 'loo', 'approximate-loo'\. Got 'folds'"),
        (
            {"cv": "approximate-loo", "losses": [Huber(0.3, p=1)]},
            r"Approximate leave-one-out needs a loss of the Euclidean norm .* Got Huber\(.*p=1\)\. Use cv='loo'\.",
        ),
        (
            {"cv": "approximate-loo", "operator": Diagonal(np.arange(1.0, 6.0))},
            r"Approximate leave-one-out needs .* with an operator\. Use cv='loo'\.",
        ),
        ({"cv": 1}, r"'cv' parameter .* must be an int in \[2, inf\)\. Got 1"),
        ({"cv": 50}, r"cv=50 needs at least 50 samples\. Got n_samples = 30"),
    ],
    ids=str,
)
def test_bad_parameters(sample, parameters, message):
    with pytest.raises(ValueError, match=message):
        OperatorKernelRegressorCV(**parameters).fit(*sample)


def test_bad_losses_are_named(sample):
    with pytest.raises(TypeError, match=r"'losses' parameter must hold Loss instances or short names\. Got 3"):
        fenchel.path(OperatorKernelRegressor(), *sample, [1.0], [3])


def test_scoring_is_asked_for_the_error_of_each_held_out_sample():
    """The mean absolute error of the predictions out of sample, beside fits that leave one sample out."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((9, 2)), rng.standard_normal((9, 3))

    def absolute(y, predicted):
        np.testing.assert_allclose(y, Y)
        return np.mean(np.abs(y - predicted), axis=1)

    model = OperatorKernelRegressorCV("linear", lams=[0.1], losses=[Huber(0.5)], cv="loo", scoring=absolute, tol=1e-10)
    errors = []
    for i in range(9):
        rest = np.arange(9) != i
        left = OperatorKernelRegressor("linear", loss=Huber(0.5), lam=0.1, tol=1e-10).fit(X[rest], Y[rest])
        errors.append(np.mean(np.abs(left.predict(X[i : i + 1]) - Y[i])))
    assert model.fit(X, Y).cv_errors_[0, 0] == pytest.approx(np.mean(errors), rel=1e-5)
