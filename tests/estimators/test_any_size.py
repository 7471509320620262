"""Searches on a part of a large sample, folds by products with one matrix, landmarks for fits that take too long."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from fenchel import (
    FunctionalRegressorCV,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressorCV,
    StructuredPredictorCV,
    load,
    save,
)
from fenchel.approximations import Nystrom
from fenchel.data.content import contents
from fenchel.kernels import Gaussian, as_operator_kernel
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.model.memory import check_fits, is_streamed, settled
from fenchel.model.spec import Spec
from fenchel.model.spectrum import Spectrum
from fenchel.operators import ConjugateGradients, Dense, KeptRows, Streamed, kronecker
from fenchel.problem import DualProblem
from fenchel.resample.folds import whole_part
from fenchel.resample.held_out import held_out
from fenchel.search import search
from fenchel.solvers import Krylov

N, P = 60, 3
KERNEL = Gaussian(0.3)
MATRIX = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.7]])


@pytest.fixture(name="sample")
def data(rng):
    X = rng.standard_normal((N, 2))
    return X, np.column_stack([np.sin(2 * X[:, 0]), X[:, 1], X[:, 0] * X[:, 1]]) + 0.1 * rng.standard_normal((N, P))


@pytest.fixture(name="folds")
def parts(rng):
    return np.array_split(rng.permutation(N), 4)


def streamed(X):
    return Streamed(KERNEL, X, features=lambda: Nystrom(20).approximate(KERNEL, X).features(X))


def masks_of(folds):
    return [np.isin(np.arange(N), fold, invert=True).astype(float)[:, None] for fold in folds]


def test_inverses_on_the_kept_rows(sample, folds, rng):
    """(d + s M F F' M)^-1 on each part, against the dense inverse of the block."""
    basis, masks = streamed(sample[0]).basis, masks_of(folds)
    B = rng.standard_normal((N, len(folds), P)) * np.stack(masks, axis=1)
    shift, scale = (rng.uniform(0.5, 2, (1, len(folds), 1)) for _ in range(2))
    found = KeptRows(basis, masks).inverse(scale, shift)(B)
    for k, mask in enumerate(masks):
        rows = np.flatnonzero(mask)
        part = shift[0, k, 0] * np.eye(len(rows)) + scale[0, k, 0] * basis.left[rows] @ basis.left[rows].T
        assert_allclose(found[rows, k], np.linalg.solve(part, B[rows, k]), rtol=0, atol=1e-10)
        assert not np.any(found[folds[k], k])


@pytest.mark.parametrize("matrix", [None, MATRIX], ids=["identity", "matrix"])
def test_systems_on_the_kept_rows(sample, folds, rng, matrix):
    """Each system is that of its block, and its product with the kernel is known for all rows."""
    X, B = sample[0], rng.standard_normal((N, len(folds), P))
    scalar, M = streamed(X), np.eye(P) if matrix is None else matrix
    shift, scale = (rng.uniform(0.5, 2, (1, len(folds), 1)) for _ in range(2))
    rows = KeptRows(scalar.basis, masks_of(folds))
    solver = ConjugateGradients(kronecker(scalar, matrix), scale, shift, rows=rows)
    found = solver(B)
    K = KERNEL(X)
    for k, fold in enumerate(folds):
        kept = np.setdiff1d(np.arange(N), fold)
        full = shift[0, k, 0] * np.eye(len(kept) * P) + scale[0, k, 0] * np.kron(K[np.ix_(kept, kept)], M)
        expected = np.linalg.solve(full, B[kept, k].ravel()).reshape(-1, P)
        assert_allclose(found[kept, k], expected, rtol=0, atol=1e-9)
        assert_allclose(solver.product()[:, k], K[:, kept] @ expected @ M, rtol=0, atol=1e-8)


@pytest.mark.parametrize("loss", [Square(), Huber(0.2), EpsilonRidge(0.1), EpsilonSVR(0.1)], ids=repr)
@pytest.mark.parametrize("matrix", [None, MATRIX], ids=["identity", "matrix"])
@pytest.mark.parametrize("case", ["plain", "weights", "gaps"])
def test_folds_by_products_are_those_by_factorisations(sample, folds, rng, loss, matrix, case):
    X, Y = sample
    weights = rng.uniform(0.5, 2, N) if case == "weights" else None
    observed = (rng.uniform(size=Y.shape) < 0.8).astype(float) if case == "gaps" else None
    targets = Y if observed is None else Y * observed

    def predictions(gram, tol):
        problem = DualProblem.build(kronecker(gram, matrix), targets, Square(), 1.0, weights, None, observed)
        return {pair.lam: pair for pair in held_out(problem, [loss], [1e-3, 1e-1, 1e-2], folds, tol)}

    tol = 1e-4 if case == "gaps" else 1e-6  # single missing outputs are constraints, which the splitting meets slowly
    found, expected = predictions(streamed(X), tol), predictions(Dense(KERNEL(X)), 1e-10)
    for lam, pair in found.items():
        assert pair.gap <= tol
        assert_allclose(pair.predictions, expected[lam].predictions, rtol=0, atol=10 * tol**0.5)
        errors = [np.mean((one.predictions - Y) ** 2) for one in (pair, expected[lam])]
        assert errors[0] == pytest.approx(errors[1], rel=2e-3)


def test_a_search_on_a_part(sample, monkeypatch):
    """Loss and lam are those of a fit on the part, at its ridge lam n; the model is that of the whole sample."""
    X, Y = sample
    monkeypatch.setattr("fenchel.search.search.MOST_SEARCHED", 40)
    model = OperatorKernelRegressorCV().fit(X, Y)
    assert model.n_searched_ == 40 and model.dual_coef_.shape == (N, P) and model.duality_gap_ <= 1e-6
    shuffled = np.random.default_rng(3).permutation(N)
    other = OperatorKernelRegressorCV().fit(X[shuffled], Y[shuffled])
    assert other.best_lam_ == pytest.approx(model.best_lam_, rel=1e-9)
    assert_allclose(other.predict(X), model.predict(X), rtol=0, atol=1e-5)
    given = OperatorKernelRegressorCV(lams=[1e-4, 1e-3, 1e-2], losses=["square"]).fit(X, Y)
    assert given.lams_ == [1e-4, 1e-3, 1e-2] and given.n_searched_ == 40
    every = OperatorKernelRegressorCV(cv=KFold(4, shuffle=True, random_state=0)).fit(X, Y)
    assert every.n_searched_ == N


def test_a_part_has_whole_groups(sample, monkeypatch, rng):
    """Groups of five: 40 of 60 samples are eight groups; without labels the part cuts groups in two."""
    X, Y = sample
    groups = rng.permutation(np.repeat(np.arange(N // 5), 5))
    places = whole_part(contents(Y, X), 42, groups)
    assert len(places) == 40 and all(np.sum(groups[places] == one) in (0, 5) for one in range(N // 5))
    alone = whole_part(contents(Y, X), 42)
    assert len(alone) == 42 and any(np.sum(groups[alone] == one) not in (0, 5) for one in range(N // 5))
    monkeypatch.setattr("fenchel.search.search.MOST_SEARCHED", 42)
    assert OperatorKernelRegressorCV(cv=2).fit(X, Y, groups=groups).n_searched_ == 40


@pytest.mark.parametrize("case", ["curves", "objects", "gram"])
def test_parts_of_curves_and_objects(sample, monkeypatch, case):
    X, Y = sample
    monkeypatch.setattr("fenchel.search.search.MOST_SEARCHED", 40)
    if case == "curves":
        model = FunctionalRegressorCV().fit(X, np.hstack([Y, Y[:, ::-1]]))
        assert model.predict(X).shape == (N, 2 * P)
    elif case == "objects":
        labels = (Y > 0).astype(int)
        model = StructuredPredictorCV(output_kernel="linear", losses=["square"]).fit(X, labels)
        assert set(np.unique(model.predict(X))) <= {0, 1}
    else:
        settings = {"output_kernel": "precomputed", "losses": ["square"], "lams": [1e-3, 1e-2], "center": False}
        model = StructuredPredictorCV("precomputed", **settings).fit(KERNEL(X), KERNEL(Y))
    assert model.n_searched_ == 40 and model.dual_coef_.shape[0] == N and model.duality_gap_ <= 1e-6


@pytest.mark.parametrize("loss", [Square(), Huber(0.2)], ids=repr)
def test_a_small_lam_needs_a_stored_matrix(rng, loss):
    """Conjugate gradients take ever more steps as lam falls, a factorisation does not."""
    X, kernel = rng.standard_normal((5000, 2)), as_operator_kernel(KERNEL)
    spec = Spec.of(OperatorKernelRegressor(), loss)
    assert is_streamed(X, kernel, replace(spec, lam=1e-6), 2)
    assert not is_streamed(X, kernel, replace(spec, lam=1e-12), 2)


@pytest.mark.parametrize(("gamma", "lam", "is_fast"), [(0.013, 5e-7, True), (0.1, 1e-7, False)])
def test_the_spectrum_says_where_passes_are_few(rng, gamma, lam, is_fast):
    """A wide kernel has few large eigenvalues, which features remove; many of a narrower one are left to the passes."""
    X = rng.standard_normal((3000, 10))
    spec = replace(Spec.of(OperatorKernelRegressor(), Huber(0.5)), lam=lam)
    kernel = as_operator_kernel(Gaussian(gamma))
    assert is_streamed(X, kernel, spec, 5, lambda: Spectrum.of(Gaussian(gamma), X)) == is_fast


def test_no_spectrum_is_computed_where_a_factorisation_takes_no_longer(rng):
    X, spec = rng.standard_normal((900, 2)), replace(Spec.of(OperatorKernelRegressor(), Huber(0.5)), lam=1e-3)
    assert not is_streamed(X, as_operator_kernel(KERNEL), spec, 2, lambda: pytest.fail("not worth while"))


def test_landmarks_fit_where_a_stored_matrix_does_not(rng, monkeypatch):
    """Landmarks chosen for want of memory are fewer than the samples, so that the fit is not refused."""
    monkeypatch.setattr("fenchel.model.memory.free_memory", lambda like: 3 * 2**30)
    monkeypatch.setattr("fenchel._check.free_memory", lambda like: 3 * 2**30)
    X, kernel = rng.standard_normal((9000, 2)), as_operator_kernel(KERNEL)
    spec = replace(Spec.of(OperatorKernelRegressor(), Square(), approximation="auto"), lam=1e-17)
    assert settled(X, kernel, spec, 2).approximation.n_components < 9000
    check_fits(X, kernel, spec, 2)


def test_passes_grow_as_the_root_of_lam(rng):
    """Between two lams below 1e-6 the passes of a fit grow as estimated, up to a factor of two."""
    X = rng.uniform(-2, 2, (600, 4))
    passes = {}
    for lam in (1e-6, 1e-8):
        gram = Streamed(KERNEL, X, features=lambda: Nystrom(150).approximate(KERNEL, X).features(X))
        problem = DualProblem.build(gram, np.sin(X[:, :2]), Square(), lam)
        assert Krylov(tiles="float64").solve(problem).certificate.relative_gap <= 1e-6
        passes[lam] = gram.n_passes
    estimates = [Krylov().estimate(600, 2, Square(), lam).n_steps for lam in (1e-6, 1e-8)]
    assert 0.5 <= passes[1e-8] / passes[1e-6] / (estimates[1] / estimates[0]) <= 2


@pytest.mark.parametrize(
    "model", [LossTrickPredictor(), QuantileFunctionRegressorCV(), QuantileFunctionRegressorCV("gaussian", levels=3)]
)
def test_parts_of_other_searches(sample, monkeypatch, model):
    X, Y = sample
    exact = clone(model).fit(X, Y[:, 0])
    monkeypatch.setattr("fenchel.search.search.MOST_SEARCHED", 40)
    model.fit(X, Y[:, 0])
    assert model.n_searched_ == 40 and exact.n_searched_ == N and model.dual_coef_.shape[0] == N
    assert model.duality_gap_ <= 1e-6
    given = clone(model).set_params(lams=[1e-3, 1e-2]).fit(X, Y[:, 0])
    assert given.lams_ == [1e-3, 1e-2] and given.best_lam_ in (1e-3, 1e-2)


def test_folds_of_a_matrix_that_is_not_factorised(sample, monkeypatch):
    """A splitter sees all samples; the pairs that it compares are certified to a gap that tells them apart."""
    X, Y = sample
    monkeypatch.setattr("fenchel.model.memory._CERTAIN", 0.0)
    settings = {"cv": KFold(4, shuffle=True, random_state=0), "losses": ["square", Huber(0.2)]}
    found = OperatorKernelRegressorCV(KERNEL, **settings, lams=[1e-4, 1e-3, 1e-2]).fit(X, Y)
    monkeypatch.undo()
    exact = OperatorKernelRegressorCV(KERNEL, **settings, lams=[1e-4, 1e-3, 1e-2]).fit(X, Y)
    assert found.best_lam_ == exact.best_lam_
    assert 0 < np.max(found.cv_gaps_) <= 5e-3
    assert_allclose(found.cv_errors_, exact.cv_errors_, rtol=0.02)
    assert found.duality_gap_ <= 1e-6


def test_landmarks_where_an_exact_fit_takes_too_long(sample, monkeypatch, tmp_path):
    X, Y = sample
    monkeypatch.setattr("fenchel.search.search.MOST_SEARCHED", 40)
    assert OperatorKernelRegressorCV().fit(X, Y).certificate_ == "exact"
    monkeypatch.setattr("fenchel.model.memory._PATIENCE", 1e-6)
    with pytest.warns(ConvergenceWarning, match="that of the exact kernel"):
        model = OperatorKernelRegressorCV().fit(X, Y)
    assert model.certificate_ == "sampled" and "exact kernel is above tol" in model.status_
    with pytest.warns(ConvergenceWarning):
        assert OperatorKernelRegressorCV(certificate="exact").fit(X, Y).certificate_ == "exact"
    assert OperatorKernelRegressorCV(approximation=None).fit(X, Y).certificate_ == "exact"
    path = tmp_path / "model.skops"
    save(model, path)
    assert_allclose(load(path).predict(X), model.predict(X), rtol=0, atol=0)


def test_an_open_search_compares_pairs_at_a_loose_gap(rng, monkeypatch):
    X = rng.standard_normal((400, 3))
    Y = np.column_stack([np.sin(X[:, 0]) * X[:, 1], X[:, 2] ** 2]) + 0.1 * rng.standard_normal((400, 2))
    Y[::12] += 4.0
    exact = OperatorKernelRegressorCV(losses=["huber"]).fit(X, Y)
    assert exact.cv_gaps_.max() <= 1e-6
    monkeypatch.setattr(search, "_MANY", 400)
    model = OperatorKernelRegressorCV(losses=["huber"]).fit(X, Y)
    assert 1e-5 < model.cv_gaps_.max() <= 1e-3
    assert model.duality_gap_ <= 1e-6
    assert model.lams_ == exact.lams_
    assert_allclose(model.cv_errors_, exact.cv_errors_, rtol=0.02)
    assert exact.cv_errors_.ravel()[np.argmin(model.cv_errors_)] <= 1.005 * exact.cv_errors_.min()
    given = OperatorKernelRegressorCV(losses=["huber"], lams=model.lams_).fit(X, Y)
    assert given.cv_gaps_.max() <= 1e-6
