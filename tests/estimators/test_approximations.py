"""Kernels approximated by a few features: against their formula, the exact fit, and what they must not need."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import fenchel
from fenchel import (
    CostSensitiveClassifier,
    FunctionalRegressor,
    FunctionalRegressorCV,
    KernelAutoencoder,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
    StructuredPredictor,
    _check,
)
from fenchel.approximations import Nystrom, PSparsified, RandomFeatures
from fenchel.exceptions import IncompatibleError, NotFeasibleError, SlowFitWarning
from fenchel.kernels import Aligned, Diagonal, Gaussian, KernelTags, Laplacian, Linear, Polynomial, ScalarKernel
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.model import memory
from fenchel.operators import thin
from fenchel.search import choice as kernel_choice
from fenchel.solvers.costs import Cost

N = 40


@pytest.fixture
def sample(rng):
    X = rng.standard_normal((N, 3))
    return X, np.tanh(X @ rng.standard_normal((3, 2))) + 0.1 * rng.standard_normal((N, 2))


@pytest.mark.parametrize("landmarks", ["rpcholesky", "uniform", "kmeans++", "leverage"])
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplacian(0.5)], ids=repr)
def test_the_formula(sample, kernel, landmarks):
    """k(x, Z) k(Z, Z)^+ k(Z, z) at the points that were drawn, and never more than the kernel itself."""
    X, _ = sample
    approximate = Nystrom(9, landmarks).approximate(kernel, X)
    Z = approximate.points
    assert {tuple(row) for row in Z} <= {tuple(row) for row in X} and len({tuple(row) for row in Z}) == 9
    expected = kernel(X, Z) @ np.linalg.pinv(kernel(Z)) @ kernel(Z, X)
    assert_allclose(approximate(X), expected, rtol=0, atol=1e-10)
    assert_allclose(approximate(X[:4], X[5:]), expected[:4, 5:], rtol=0, atol=1e-10)
    assert_allclose(approximate.diag(X), np.diag(expected), rtol=0, atol=1e-10)
    assert np.linalg.eigvalsh(kernel(X) - approximate(X))[0] >= -1e-10


@pytest.mark.parametrize("loss", [Square(), Huber(0.2), EpsilonRidge(0.1), EpsilonSVR(0.1), Huber(0.2, p=1)], ids=repr)
@pytest.mark.parametrize("operator", [None, "covariance"])
def test_all_samples_as_landmarks_give_the_exact_fit(sample, loss, operator):
    X, Y = sample
    settings = {"kernel": Laplacian(0.5), "operator": operator, "loss": loss, "lam": 1e-3, "tol": 1e-10}
    exact = OperatorKernelRegressor(**settings).fit(X, Y)
    near = OperatorKernelRegressor(**settings, approximation=Nystrom(N)).fit(X, Y)
    assert_allclose(near.predict(X), exact.predict(X), rtol=0, atol=1e-6)
    assert (exact.certificate_, near.certificate_) == ("exact", "approximate")


def test_the_certificate_is_that_of_the_approximate_kernel(sample):
    X, Y = sample
    model = OperatorKernelRegressor(Gaussian(0.3), loss=Huber(0.2), lam=1e-3, approximation=Nystrom(12)).fit(X, Y)
    a, h, n = model.dual_coef_, model.predict(X), N
    K = Nystrom(12).approximate(Gaussian(0.3), X)(X)
    assert_allclose(h, K @ a / (1e-3 * n), rtol=0, atol=1e-9)
    primal = Huber(0.2).value(Y - h).mean() + np.sum(a * h) / (2 * n)
    dual = (np.sum(a * Y, axis=1) - Huber(0.2).conjugate(a)).mean() - np.sum(a * h) / (2 * n)
    assert (primal - dual) / primal == pytest.approx(model.duality_gap_, abs=1e-9)
    assert model.duality_gap_ <= 1e-6


@pytest.mark.parametrize("loss", [Square(), Huber(0.3)], ids=repr)
def test_auto_leaves_an_exact_gap_far_below_the_statistical_error(rng, loss):
    """The exact gap, from the dense matrix, against a tenth of the standard error of the mean loss."""
    X = rng.uniform(-2, 2, (600, 2))
    Y = np.sin(X @ rng.standard_normal((2, 2))) + 0.3 * rng.standard_normal((600, 2))
    sizes = []
    for lam in (1e-2, 1e-5):
        model = OperatorKernelRegressor(Gaussian(1.0), loss=loss, lam=lam, approximation=Nystrom("auto")).fit(X, Y)
        a, K, values = model.dual_coef_, Gaussian(1.0)(X), loss.value(Y - model.predict(X))
        dual = np.mean(np.sum(a * Y, axis=1) - loss.conjugate(a)) - np.sum(a * (K @ a)) / (2 * lam * 600**2)
        assert 0 < model.primal_objective_ - dual < 0.1 * np.std(values) / np.sqrt(600)
        sizes.append(model.approximation_.n_components)
    assert sizes[0] < sizes[1] == model.model_.expansion.features_coef.shape[0]
    search = OperatorKernelRegressorCV(Gaussian(1.0), lams=[1e-2, 1e-5], losses=[loss], approximation=Nystrom("auto"))
    assert search.fit(X, Y).approximation_.n_components == sizes[1]


def test_pivots_explain_more_than_uniform_landmarks(rng):
    """A cluster of 95 % of the points and the rest scattered: uniform landmarks fall into the cluster."""
    X = np.r_[0.05 * rng.standard_normal((190, 2)), 4 * rng.standard_normal((10, 2))]

    def unexplained(landmarks, seed):
        return 200 - Nystrom(15, landmarks, random_state=seed).approximate(Gaussian(1.0), X).diag(X).sum()

    pivots, uniform = (np.mean([unexplained(name, s) for s in range(10)]) for name in ("rpcholesky", "uniform"))
    assert pivots < 0.3 * uniform


def test_samples_without_weight_are_no_landmarks(sample):
    X, Y = sample
    weights = np.r_[np.zeros(30), np.ones(10)]
    model = OperatorKernelRegressor(Gaussian(0.3), approximation=Nystrom(30)).fit(X, Y, sample_weight=weights)
    exact = OperatorKernelRegressor(Gaussian(0.3)).fit(X[30:], Y[30:])
    assert_allclose(model.predict(X), exact.predict(X), rtol=0, atol=1e-6)


@pytest.mark.parametrize("landmarks", ["rpcholesky", "uniform"])
@pytest.mark.parametrize("n_null", [N - 5, N])
def test_null_samples_are_landmarks_like_others(sample, n_null, landmarks):
    """A linear kernel is zero at zero rows: more landmarks than other rows are still the exact kernel."""
    X, Y = sample
    X = np.where(np.arange(N)[:, None] < n_null, 0.0, X)
    approximate = Nystrom(N, landmarks).approximate(Linear(), X)
    assert_allclose(approximate(X), X @ X.T, rtol=1e-10, atol=1e-12)
    assert OperatorKernelRegressor("linear", loss="huber", approximation=Nystrom(20)).fit(X, Y).duality_gap_ <= 1e-6


@pytest.mark.parametrize("landmarks", ["rpcholesky", "uniform"])
def test_overflow_of_the_kernel_is_named(sample, landmarks):
    X, Y = sample
    model = OperatorKernelRegressor(Polynomial(3), approximation=Nystrom(9, landmarks))
    with pytest.raises(ValueError, match=r"The Gram matrix of Polynomial.* must be finite.*scale the inputs"):
        model.fit(1e120 * X, Y)


@pytest.mark.parametrize("kernel, approximation", [(Linear(), None), (Gaussian(0.5), Nystrom(9))])
@pytest.mark.parametrize("loss", [Huber(0.5), EpsilonSVR(1e3)], ids=repr)
def test_a_model_of_features_without_support_is_zero(sample, kernel, approximation, loss):
    """Null targets, or targets within the insensitive zone, leave no coefficients to make features of."""
    X, Y = sample
    model = OperatorKernelRegressor(kernel, loss=loss, approximation=approximation)
    model.fit(X, Y if isinstance(loss, EpsilonSVR) else 0 * Y)
    assert len(model.support_) == 0 and model.duality_gap_ == 0
    assert_array_equal(model.predict(X[:5]), np.zeros((5, 2)))


def test_no_gram_matrix_is_made(rng, monkeypatch):
    """Room for a fifth of the matrix of 3000 samples is enough."""
    monkeypatch.setattr(_check, "_free_memory", lambda: 8 * 3000**2 // 5)
    X = rng.uniform(-1, 1, (3000, 2))
    y = np.sin(3 * X[:, 0])
    with pytest.raises(NotFeasibleError, match=r"A fit of 3000 samples.*Nystrom\(140\).*solver='krylov'"):
        OperatorKernelRegressor(solver="douglas_rachford").fit(X, y)
    model = OperatorKernelRegressor(Gaussian(1.0), loss="huber", lam=1e-6, approximation=Nystrom(40)).fit(X, y)
    assert model.score(X, y) > 0.999
    assert model.model_.expansion.features_coef.shape[0] <= 40


def test_what_needs_a_large_matrix_of_a_thin_kernel_asks_for_memory_first(sample, monkeypatch):
    """The kernel of three features fits; the inverse of leave-one-out, and weights of all outputs, do not."""
    X, Y = sample
    monkeypatch.setattr(_check, "_free_memory", lambda: 8 * N * (3 * 7 + 2 * 24))
    OperatorKernelRegressor("linear", loss="huber").fit(X, Y)
    monkeypatch.setattr(np, "eye", None)
    with pytest.raises(NotFeasibleError, match="inverse of 40 rows"):
        OperatorKernelRegressorCV("linear", losses=["huber"], lams=[1.0], cv="approximate-loo").fit(X, Y)
    for surrogate in ("square", "huber"):
        with pytest.raises(NotFeasibleError, match="A fit of 40 samples"):
            LossTrickPredictor("linear", surrogate=surrogate).fit(X, Y)


def test_other_estimators(rng, sample, tmp_path):
    X, Y = sample
    curves = np.cumsum(rng.standard_normal((N, 6)), axis=1)
    models = [
        OperatorKernelRegressorCV(Gaussian(0.3), lams=[1e-4, 1e-2], approximation=Nystrom(12)).fit(X, Y),
        OperatorKernelRegressorCV(Gaussian(0.3), lams=[1e-4, 1e-2], losses=["huber"], cv="loo",
                                  approximation=Nystrom(12)).fit(X, Y),
        FunctionalRegressor(Gaussian(0.3), loss=Huber(0.2, p=1), approximation=Nystrom(12)).fit(X, curves),
        FunctionalRegressorCV(Gaussian(0.3), lams=[1e-3], approximation=Nystrom(12)).fit(X, curves),
        StructuredPredictor(Gaussian(0.3), decoder="threshold", approximation=Nystrom(12)).fit(X, 1.0 * (Y > 0)),
        QuantileFunctionRegressor(Gaussian(0.3), levels=4, approximation=Nystrom(12)).fit(X, Y[:, 0]),
        CostSensitiveClassifier(Gaussian(0.3), levels=4, approximation=Nystrom(12)).fit(X, np.sign(Y[:, 0])),
        OperatorKernelRegressor("auto", approximation=RandomFeatures(12)).fit(X, Y),
        OperatorKernelRegressor(Gaussian(0.3), loss="huber", approximation=PSparsified(12, 0.1)).fit(X, Y),
    ]  # fmt: skip
    for k, model in enumerate(models):
        assert model.duality_gap_ <= 1e-6 and model.certificate_ == "approximate"
        fenchel.save(model, tmp_path / str(k))
        assert_array_equal(fenchel.load(tmp_path / str(k)).predict(X[:5]), model.predict(X[:5]))


def test_held_out_predictions_are_those_of_refits(sample):
    """Folds of the thin kernel, with landmarks of the whole sample, against fits on its Gram matrix."""
    X, Y = sample
    search = OperatorKernelRegressorCV(Gaussian(0.3), lams=[1e-3], losses=[Huber(0.2)], cv="loo", tol=1e-9,
                                       approximation=Nystrom(12)).fit(X, Y)  # fmt: skip
    K = Nystrom(12).approximate(Gaussian(0.3), X)(X)
    K = (K + K.T) / 2
    errors = []
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        model = OperatorKernelRegressor("precomputed", loss=Huber(0.2), lam=1e-3, tol=1e-9)
        model.fit(K[np.ix_(rest, rest)], Y[rest])
        errors.append(np.sum((Y[i] - model.predict(K[[i]][:, rest])[0]) ** 2))
    assert search.cv_errors_[0, 0] == pytest.approx(np.mean(errors), rel=1e-5)


def test_torch(sample):
    torch = pytest.importorskip("torch")
    X, Y = sample
    settings = {"kernel": Gaussian(0.3), "loss": Huber(0.2), "approximation": Nystrom(12)}
    here, there = (OperatorKernelRegressor(**settings).fit(a, b) for a, b in ((X, Y), map(torch.asarray, (X, Y))))
    assert isinstance(there.predict(torch.asarray(X)), torch.Tensor)
    assert_allclose(there.predict(torch.asarray(X)).numpy(), here.predict(X), rtol=0, atol=1e-6)


def test_refusals(sample):
    X, Y = sample
    with pytest.raises(IncompatibleError, match="approximates scalar kernels on points"):
        OperatorKernelRegressor("precomputed", approximation=Nystrom(5)).fit(Gaussian()(X), Y)
    with pytest.raises(IncompatibleError, match="approximates scalar kernels on points"):
        OperatorKernelRegressor(Aligned(anchored=True), approximation=Nystrom(5)).fit(X, Y)
    with pytest.raises(ValueError, match="The 'n_components' parameter of Nystrom must be an int in"):
        OperatorKernelRegressor(approximation=Nystrom(0)).fit(X, Y)
    with pytest.raises(TypeError, match="must be a Approximation instance or a short name"):
        OperatorKernelRegressor(approximation=Gaussian()).fit(X, Y)


class Landmarks(ScalarKernel):
    """A Nyström approximation on the first points of the sample, written by a user as one class."""

    def __init__(self, kernel=None, count=5, points=None):
        self.kernel = kernel
        self.count = count
        self.points = points

    def resolve(self, X, weights=None):
        return Landmarks(self.kernel.resolve(X, weights), self.count, X[: self.count])

    @property
    def tags(self):
        return KernelTags(has_features=True)

    def features(self, X):
        if self.points is None:
            return np.zeros((len(X), self.count))  # how many, before the landmarks are known
        return np.linalg.solve(np.linalg.cholesky(self.kernel(self.points)), self.kernel(self.points, X)).T

    def __call__(self, X, Z=None):
        return self.features(X) @ self.features(X if Z is None else Z).T

    def diag(self, X):
        return np.sum(self.features(X) ** 2, axis=1)


@pytest.mark.parametrize("operator", [None, [[1.0, 0.3], [0.3, 0.5]]], ids=["identity", "matrix"])
@pytest.mark.parametrize("loss", [Square(), Huber(0.2), EpsilonSVR(0.1)], ids=repr)
def test_an_approximation_is_one_class(sample, loss, operator):
    """Against the fit on its matrix k(X, Z) k(Z, Z)^-1 k(Z, X); weights and folds take it as any other kernel."""
    X, Y = sample
    K, weights = Gaussian(0.3)(X, X), np.linspace(0.5, 2, N)
    matrix = K[:, :5] @ np.linalg.solve(K[:5, :5], K[:5])
    settings = {"loss": loss, "lam": 1e-2, "tol": 1e-10, "operator": operator}
    model = OperatorKernelRegressor(Landmarks(Gaussian(0.3)), **settings).fit(X, Y, sample_weight=weights)
    dense = OperatorKernelRegressor("precomputed", **settings).fit((matrix + matrix.T) / 2, Y, sample_weight=weights)
    assert model.duality_gap_ <= 1e-10
    assert model.primal_objective_ == pytest.approx(dense.primal_objective_, rel=1e-8)
    search = OperatorKernelRegressorCV(Landmarks(Gaussian(0.3)), losses=[loss], lams=[1e-2, 1e-3], operator=operator)
    assert np.all(search.fit(X, Y).cv_gaps_ <= 1e-6)


def test_sketched_outputs_against_dense_matrices(sample):
    """Distances to outputs from their Gram matrix; the model is that of outputs projected on twelve landmarks."""
    X, Y = sample
    Y = np.round(2 * Y)
    inner, outer, lam = Gaussian(0.3), Gaussian(0.4), 1e-3
    model = StructuredPredictor(inner, outer, lam=lam, output_approximation=Nystrom(12)).fit(X, Y)
    Z = Nystrom(12).approximate(outer, Y).points
    weights = np.linalg.solve(inner(X) + lam * N * np.eye(N), inner(X, X[:5]))  # of the outputs in a prediction
    C = np.linalg.pinv(outer(Z)) @ outer(Z, Y) @ weights  # of the landmarks
    distances = np.sum(C * (outer(Z) @ C), axis=0)[:, None] + 1 - 2 * C.T @ outer(Z, Y)
    assert_allclose(model.decision_scores(X[:5], Y), distances, rtol=0, atol=1e-6)
    assert model.representation_.targets_.shape == (N, 12)
    left_out = 1 - np.sum(outer(Y, Z) @ np.linalg.pinv(outer(Z)) * outer(Y, Z), axis=1)
    assert model.representation_.representation_error_ == pytest.approx(left_out.mean(), rel=1e-6)


@pytest.mark.parametrize("approximation", [None, Nystrom(N)])
def test_all_outputs_as_landmarks_give_the_exact_fit(sample, approximation, tmp_path):
    """Outputs are words, under a kernel that counts common letters."""
    X, Y = sample
    words = [
        "".join(sorted(set("abcdef"[int(abs(3 * a)) % 6] for a in (*row, *x)))) for row, x in zip(Y, X, strict=True)
    ]
    settings = {"loss": Huber(0.4), "center": True, "approximation": approximation}
    exact, thin = (
        StructuredPredictor(Gaussian(0.3), common_letters, output_approximation=one, **settings).fit(X, words)
        for one in (None, Nystrom(N))
    )
    assert_allclose(thin.decision_scores(X[:9]), exact.decision_scores(X[:9]), rtol=0, atol=1e-5)
    assert list(thin.predict(X)) == list(exact.predict(X))
    fenchel.save(thin, tmp_path / "model", trusted=[common_letters])
    assert list(fenchel.load(tmp_path / "model", trusted=[common_letters]).predict(X)) == list(thin.predict(X))


def common_letters(words, others):
    return np.array([[float(len(set(a) & set(b))) for b in others] for a in words])


def test_refusals_of_output_approximations(sample):
    X, Y = sample
    with pytest.raises(IncompatibleError, match=r"of the outputs\. Use a kernel on the outputs themselves"):
        StructuredPredictor(output_kernel="precomputed", output_approximation=Nystrom(5)).fit(X, Y @ Y.T)
    with pytest.raises(IncompatibleError, match=r"Nystrom\(n_components='auto'\) cannot approximate"):
        StructuredPredictor(output_kernel=Gaussian(), output_approximation=Nystrom("auto")).fit(X, Y)
    with pytest.raises(IncompatibleError, match="needs point values"):
        StructuredPredictor(loss=Huber(1.0, p=1), output_approximation=Nystrom(2)).fit(X, Y)


class TestMemory:
    """What a fit allocates is planned, with the free memory of the machine as a number."""

    @pytest.fixture
    def large(self, rng):
        X = rng.uniform(-1, 1, (1500, 2))
        return X, np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(1500)

    @pytest.mark.parametrize("loss", ["square", Huber(0.1)], ids=repr)
    def test_a_matrix_that_does_not_fit_is_not_stored(self, large, loss, monkeypatch):
        """Room for a fifth of the matrix: the default is the exact model, and predictions are made in blocks."""
        stored = OperatorKernelRegressor(Gaussian(2.0), loss=loss, lam=1e-4).fit(*large)
        monkeypatch.setattr(_check, "_free_memory", lambda: 8 * 1500**2 // 5)
        model = OperatorKernelRegressor(Gaussian(2.0), loss=loss, lam=1e-4).fit(*large)
        assert model.solver_info_["solver"] == "Krylov" and "not stored" in model.solver_info_["reason"]
        assert model.certificate_ == "exact" and model.duality_gap_ <= 1e-6
        assert model.primal_objective_ == pytest.approx(stored.primal_objective_, rel=3e-6)
        assert len(list(model.model_.expansion._blocks(large[0], None))) > 5
        assert_allclose(model.predict(large[0]), stored.predict(large[0]), rtol=0, atol=1e-2)

    def test_what_fits_nowhere_is_answered_with_what_would(self, large, monkeypatch):
        monkeypatch.setattr(_check, "_free_memory", lambda: 2 * 10**5)
        with pytest.raises(NotFeasibleError, match=r"(?m)fit of 1500 samples needs .* Fit on a part of the sample\.$"):
            OperatorKernelRegressor().fit(*large)
        monkeypatch.setattr(_check, "_free_memory", lambda: 8 * 700**2)
        X, Y = (rows[:700] for rows in large)
        model = OperatorKernelRegressorCV(lams=[1e-3], losses=["huber"]).fit(X, Y)  # its folds factorise nothing
        assert model.certificate_ == "exact" and model.duality_gap_ <= 1e-6

    def test_a_long_fit_is_announced(self, large, monkeypatch):
        monkeypatch.setattr(_check, "_free_memory", lambda: 8 * 1500**2 // 5)
        monkeypatch.setattr(memory.Krylov, "estimate", lambda *args: Cost(600.0, 0.0, 1.0))
        with pytest.warns(SlowFitWarning, match=r"takes about 10 minutes by conjugate gradients"):
            OperatorKernelRegressor(Gaussian(2.0)).fit(*large)
        OperatorKernelRegressor(Gaussian(2.0), solver="krylov").fit(*large)


@pytest.mark.parametrize("weights", [None, np.r_[np.zeros(3), np.linspace(0.5, 2, N - 3)]], ids=["plain", "weighted"])
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Gaussian(0.3) * Diagonal([2.0, 0.5])], ids=repr)
def test_many_features_are_made_orthogonal(sample, kernel, weights, monkeypatch):
    """A large fit works in other coordinates of the features; model and certificate are the same."""
    X, Y = sample
    model = OperatorKernelRegressor(kernel, loss=Huber(0.2), lam=1e-3, tol=1e-10, approximation=Nystrom(9))
    small = clone(model).fit(X, Y, sample_weight=weights)
    monkeypatch.setattr(thin, "_LARGE", 0)
    large = model.fit(X, Y, sample_weight=weights)
    assert large.duality_gap_ <= 1e-10
    assert_allclose(large.predict(X[:7] + 0.1), small.predict(X[:7] + 0.1), rtol=0, atol=1e-5)
    assert large.primal_objective_ == pytest.approx(small.primal_objective_, rel=1e-9)


def test_a_search_that_does_not_fit_says_so_before_it_begins(sample, monkeypatch):
    """The kernel is not even looked for."""
    X, Y = sample
    monkeypatch.setattr(kernel_choice, "search_kernel", None)
    monkeypatch.setattr(_check, "_free_memory", lambda: 8_000)
    with pytest.raises(NotFeasibleError, match=r"A fit of 40 samples"):
        OperatorKernelRegressorCV().fit(X, Y)


class TestLossTrick:
    """Weights and codes with few features: against their formulas, and against all samples as landmarks."""

    @staticmethod
    def model(**settings):
        return LossTrickPredictor(Gaussian(0.3), lam=1e-2, output_kernel=Gaussian(1.0), tol=1e-10, **settings)

    def test_weights_are_those_of_the_approximate_kernel(self, sample):
        X, Y = sample
        approximation = Nystrom(12)
        K = approximation.approximate(Gaussian(0.3), X)(X)
        weights = self.model(approximation=approximation).fit(X, Y).weights(X)
        assert_allclose(weights, np.linalg.solve(K + N * 1e-2 * np.eye(N), K).T, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("surrogate", [Huber(0.3), EpsilonSVR(0.1)], ids=repr)
    def test_all_outputs_as_landmarks_give_the_exact_weights(self, sample, surrogate):
        X, Y = sample
        exact = self.model(surrogate=surrogate).fit(X, Y, np.arange(N) % 3)
        near = self.model(surrogate=surrogate, approximation=Nystrom(N), output_approximation=Nystrom(N))
        assert_allclose(near.fit(X, Y, np.arange(N) % 3).weights(X), exact.weights(X), rtol=0, atol=1e-6)

    def test_few_output_features_are_those_of_the_structured_predictor(self, sample):
        """The expansion of the duals in the outputs gives back the predictions in the space of the features."""
        X, Y = sample
        settings = {"approximation": Nystrom(20), "output_approximation": Nystrom(8)}
        weights = self.model(surrogate=Huber(0.3), **settings).fit(X, Y).weights(X)
        other = StructuredPredictor(Gaussian(0.3), Gaussian(1.0), Huber(0.3), 1e-2, tol=1e-10, **settings).fit(X, Y)
        assert_allclose(weights @ other.representation_.targets_, other.embed(X), rtol=0, atol=1e-6)

    def test_a_choice_of_kernel_lam_and_a_relative_threshold(self, rng):
        X = rng.standard_normal((30, 2))
        y = np.sin(X[:, 0])
        for approximation in (None, Nystrom(15)):
            model = LossTrickPredictor(surrogate=Huber("auto"), output_approximation=approximation).fit(X, y)
            assert model.score(X, y) > -1e-3

    def test_the_square_loss_has_no_kernel_of_outputs(self, sample):
        with pytest.raises(IncompatibleError, match="surrogate='square' uses none"):
            self.model(output_approximation=Nystrom(5)).fit(*sample)


def test_autoencoder_on_features(sample):
    """All samples as landmarks give the exact network; few give that of a linear kernel on their features."""
    settings = {"loss": EpsilonRidge(0.1), "lam": 1e-2, "max_inner_iter": 5}
    X = sample[0]
    exact = KernelAutoencoder(2, Gaussian(0.3), **settings).fit(X)
    near = KernelAutoencoder(2, Gaussian(0.3), **settings, approximation=Nystrom(N)).fit(X)
    assert_allclose(near.reconstruct(X), exact.reconstruct(X), rtol=0, atol=1e-6)
    few = KernelAutoencoder(2, Gaussian(0.3), **settings, approximation=Nystrom(10)).fit(X)
    features = Nystrom(10).approximate(Gaussian(0.3), X).features(X)
    linear = KernelAutoencoder(2, "linear", **settings).fit(features)
    assert few.embed(X).shape == (N, 10) and few.representation_.representation_error_ > 0
    assert few.objective_ == pytest.approx(linear.objective_, rel=1e-6)
    missed = 1 - np.sum(features**2, axis=1)
    assert_allclose(few.reconstruct(X) ** 2, linear.reconstruct(features) ** 2 + missed, rtol=0, atol=1e-6)
