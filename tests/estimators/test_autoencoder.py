"""KernelAutoencoder against kernel PCA, finite differences, StructuredPredictor on its codes, and hand values."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from fenchel import KernelAutoencoder, StructuredPredictor
from fenchel.approximations import Nystrom, RandomFeatures
from fenchel.decoders import Clamp, Preimage, TrainingSet
from fenchel.estimators.layers import Layers, Network, Reduced, descend, first_layers
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, GaussianTanimoto, Laplacian, Linear, Matern, Polynomial, Precomputed
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Norm, Square
from fenchel.representations import KernelOutputs
from fenchel.solvers import APGD, PGD, Auto

ROUND_OFF = 1e-10
GAMMA = 0.2


@pytest.fixture(name="X")
def curve(rng):
    """A curve in four dimensions, with noise."""
    t = rng.uniform(0, 6, 40)
    return np.column_stack([np.cos(t), np.sin(t), t / 3, 0.1 * t**2]) + 0.05 * rng.standard_normal((40, 4))


@pytest.fixture
def new(rng):
    return rng.standard_normal((7, 4))


def model(n_components=2, **settings):
    return KernelAutoencoder(n_components, **{"kernel": Gaussian(GAMMA), "lam": 1e-3, **settings})


def feature_distances(fitted, X, new):
    """Return |phi(x) - h(f(x))|^2 from nothing but kernel values: weights on the training points by least squares."""
    K = Gaussian(GAMMA)(X)
    products = fitted.representation_.decode(fitted.embed(new))  # <h(f(x)), phi(x_i)>
    weights = np.linalg.lstsq(K, products.T, rcond=1e-13)[0]
    return 1 - 2 * np.sum(weights * Gaussian(GAMMA)(X, new), axis=0) + np.sum(weights * (K @ weights), axis=0)


class TestKernelPCA:
    """With the square loss and a linear kernel on codes, no other codes are better than principal components."""

    @pytest.mark.parametrize("init", ["pca", "random"])
    @pytest.mark.parametrize("kernel", [Gaussian(GAMMA), "linear", Polynomial(2)], ids=repr)
    def test_train_error(self, X, kernel, init):
        fitted = model(
            3 if kernel != "linear" else 2, kernel=kernel, hidden_kernel="linear", lam=1e-9, center=True, init=init,
            inner_tol=1e-10, max_inner_iter=500, random_state=0,
        ).fit(X)  # fmt: skip
        K = fitted.representation_.kernel_(X)
        pca = KernelPCA(fitted.codes_.shape[1], kernel="precomputed").fit(K)
        centring = np.eye(len(X)) - 1 / len(X)
        theirs = (np.trace(centring @ K @ centring) - pca.eigenvalues_.sum()) / len(X)
        assert theirs * (1 - 1e-6) <= -fitted.score(X) <= 1.02 * theirs

    def test_codes_span_those_of_kernel_pca(self, X, new):
        fitted = model(2, hidden_kernel="linear", lam=1e-9, center=True, inner_tol=1e-12, max_inner_iter=500).fit(X)
        pca = KernelPCA(2, kernel="rbf", gamma=GAMMA).fit(X)
        ours, theirs = fitted.transform(X), pca.transform(X)
        mix = np.linalg.lstsq(ours, theirs, rcond=None)[0]
        assert_allclose(ours @ mix, theirs, atol=1e-4)
        assert_allclose(fitted.transform(new) @ mix, pca.transform(new), atol=1e-4)


class TestGradient:
    @pytest.mark.parametrize(
        ("loss", "kernel", "sizes"),
        [
            (Square(), Gaussian(0.3), (2,)),
            (Square(), Gaussian(0.3), (2, 3, 2)),
            (Huber(0.3), Gaussian(0.3), (2,)),
            (Huber(0.3), Gaussian(0.3), (3, 2)),
            (Huber(0.3), Polynomial(2, 0.5) + Linear(), (2,)),
            (Huber(0.3), Polynomial(2, 0.5) + Linear(), (3, 2)),
            (EpsilonRidge(0.4), Matern(1.0, 2.5), (2,)),
            (EpsilonRidge(0.4), Matern(1.0, 2.5), (2, 3, 2)),
            (Square(), Gaussian(0.3) * Polynomial(1, 1.0), (3, 2)),
        ],
        ids=repr,
    )
    def test_of_the_reduced_objective(self, X, loss, kernel, sizes):
        """Along a random direction and along itself, by a difference of fourth order."""
        random = np.random.default_rng(1)
        V = KernelOutputs(Gaussian(GAMMA)).fit(X).targets_
        layers = first_layers(V, sizes, kernel, "pca", np.random.RandomState(0))
        point = layers.flat()
        objective = Reduced(V, loss, 0.1, 1e-2, Auto(), 1e-14)
        gradient = layers.flat(objective(layers.moved(point))[1])
        size = np.linalg.norm(gradient)
        assert size > 1e-3
        directions = [random.standard_normal(point.shape) * np.abs(point), gradient]
        for direction in (one / np.linalg.norm(one) for one in directions):

            def value(t, direction=direction):
                return objective(layers.moved(point + t * direction))[0]

            step = 1e-4 * min(1.0, value(0.0) / size)
            ahead, further = (value(k * step) - value(-k * step) for k in (1, 2))
            difference = (8 * ahead - further) / (12 * step)
            assert difference == pytest.approx(gradient @ direction, abs=1e-6 * size)

    def test_by_a_step_in_every_coefficient(self, rng):
        """Central differences, entry by entry, on a small sample."""
        V, kernel = rng.standard_normal((6, 3)), Gaussian(0.5)
        layers = first_layers(V, (2, 2), kernel, "random", np.random.RandomState(0))
        objective = Reduced(V, Huber(0.5), 0.1, 0.05, Auto(), 1e-14)
        found, point, step = layers.flat(objective(layers)[1]), layers.flat(), 1e-5
        for k in range(len(point)):
            move = step * np.eye(len(point))[k]
            difference = objective(layers.moved(point + move))[0] - objective(layers.moved(point - move))[0]
            assert difference / (2 * step) == pytest.approx(found[k], abs=1e-7)


class TestObjective:
    @pytest.mark.parametrize("loss", [Square(), Huber(0.2), EpsilonRidge(0.2), EpsilonSVR(0.1)], ids=repr)
    @pytest.mark.parametrize("sizes", [2, (3, 1, 2)])
    def test_history_does_not_rise(self, X, loss, sizes):
        fitted = model(sizes, loss=loss, max_inner_iter=25).fit(X)
        history = np.array(fitted.objective_history_)
        assert len(history) == fitted.n_inner_iter_ + 1 > 3
        assert np.all(np.diff(history) <= ROUND_OFF * history[0])
        assert history[-1] < 0.99 * history[0]
        assert fitted.objective_ == pytest.approx(history[-1], abs=2e-5 * history[0])
        assert fitted.duality_gap_ <= 1e-6

    def test_is_the_sum_of_its_terms(self, X):
        fitted = model(2, loss=Huber(0.2), inner_lam=2e-3).fit(X)
        losses = Huber(0.2).value(fitted.representation_.targets_ - fitted.embed(X))
        weights = np.linalg.pinv(Gaussian(GAMMA)(X), rcond=1e-13, hermitian=True) @ fitted.codes_
        inner = np.sum(weights * fitted.codes_)  # phi' K phi with z = K phi
        G, A = fitted.hidden_kernel_(fitted.codes_), fitted.dual_coef_
        outer = np.sum((G @ A) * A) / (1e-3 * 40) ** 2
        assert fitted.objective_ == pytest.approx(losses.mean() + 1e-3 / 2 * outer + 2e-3 / 2 * inner, rel=1e-6)
        assert fitted.objective_ == pytest.approx(fitted.primal_objective_ + 2e-3 / 2 * inner, rel=1e-6)

    @pytest.mark.parametrize("loss", [Square(), Huber(0.2), EpsilonRidge(0.3)], ids=repr)
    @pytest.mark.parametrize("center", [False, True])
    def test_outer_layer_is_a_structured_predictor_on_the_codes(self, X, new, loss, center):
        fitted = model(2, loss=loss, center=center, tol=1e-10).fit(X)
        other = StructuredPredictor(
            fitted.hidden_kernel_, Gaussian(GAMMA), loss, 1e-3, "training_set", center=center, tol=1e-10
        ).fit(fitted.codes_, X)
        assert fitted.primal_objective_ == pytest.approx(other.primal_objective_, rel=1e-9)
        assert fitted.dual_objective_ == pytest.approx(other.dual_objective_, rel=1e-9)
        assert_allclose(fitted.embed(new), other.embed(fitted.transform(new)), atol=1e-5)
        assert_array_equal(fitted.support_, other.support_)
        if not isinstance(loss, Huber):
            assert not hasattr(fitted, "outlier_score_")
        else:
            assert_allclose(fitted.outlier_score_, other.outlier_score_, atol=1e-6)

    def test_all_rows_are_null_where_the_zone_is_as_large_as_the_norms(self, rng):
        bits = (rng.uniform(size=(50, 30)) < 0.3).astype(float)
        for kernel, data in ((GaussianTanimoto(0.7), bits), (Gaussian(GAMMA), rng.standard_normal((50, 3)))):
            fitted = KernelAutoencoder(3, kernel, loss=EpsilonRidge(1.0), lam=1e-4).fit(data)
            assert fitted.sparsity_ == 1 and len(fitted.support_) == 0
            assert fitted.primal_objective_ == 0
            assert_allclose(fitted.reconstruct(data), 1, rtol=1e-12)
            assert fitted.score(data) == pytest.approx(-1)

    def test_null_rows_grow_with_the_zone(self, X):
        counts = [model(2, loss=EpsilonRidge(e), lam=1e-2).fit(X).sparsity_ for e in (0.05, 0.5, 0.7, 0.8, 1.0)]
        assert counts == sorted(counts) and counts[0] == 0 and 0 < counts[-2] < counts[-1] == 1

    @pytest.mark.parametrize("loss", [EpsilonRidge(1e-9), Huber(1e3)], ids=repr)
    def test_limits_are_the_square_loss(self, X, new, loss):
        square, other = model(2, tol=1e-10).fit(X), model(2, loss=loss, tol=1e-10).fit(X)
        assert other.objective_ == pytest.approx(square.objective_, rel=1e-5)
        assert_allclose(other.reconstruct(new), square.reconstruct(new), atol=1e-3)

    def test_huber_marks_the_outliers(self, X):
        dirty = X.copy()
        dirty[:4] += 30 * np.eye(4)  # far from the rest and from each other
        scores = model(1, loss=Huber(0.5), lam=1e-2).fit(dirty).outlier_score_
        assert np.all(scores[:4] > 0.999) and np.median(scores[4:]) < 0.9

    def test_another_solver(self, X):
        ours = model(2, loss=Huber(0.2), lam=1e-2).fit(X)
        theirs = model(2, loss=Huber(0.2), lam=1e-2, solver=APGD(), max_iter=5000).fit(X)
        assert theirs.objective_ == pytest.approx(ours.objective_, rel=1e-4)
        assert theirs.solver_info_["solver"] == "APGD" and ours.solver_info_["solver"] == "RowNewton"

    def test_a_loss_without_curvature(self, X):
        fitted = model(2, loss=Norm(), lam=1e-2, max_inner_iter=5).fit(X)
        assert fitted.duality_gap_ <= 1e-6

    def test_a_step_that_leads_nowhere_is_shortened(self, X):
        """Codes of a polynomial layer can grow until the outer problem has no factorisation."""
        V = KernelOutputs(Gaussian(GAMMA)).fit(X).targets_
        layers = first_layers(V, (2,), Gaussian(1.0), "pca", np.random.RandomState(0))
        exact, calls = Reduced(V, Square(), 1e-3, 1e-3, Auto(), 1e-6), []

        def objective(trial):
            calls.append(trial)
            if len(calls) == 2:
                raise np.linalg.LinAlgError("too long")
            return exact(trial)

        _, history, status = descend(objective, layers, 20, 1e-6)
        assert len(history) > 5 and np.all(np.diff(history) <= 0) and status.startswith("converged")
        step, shorter = (np.linalg.norm(calls[k].flat() - layers.flat()) for k in (1, 2))
        assert shorter < step

    def test_no_iterations_leave_the_principal_components(self, X):
        fitted = model(2, max_inner_iter=0).fit(X)
        pca = KernelPCA(2, kernel="rbf", gamma=GAMMA).fit_transform(X)
        codes = fitted.codes_ - fitted.codes_.mean(axis=0)
        assert_allclose(np.abs(codes), np.abs(pca) / np.sqrt(np.mean(pca.var(axis=0))), rtol=1e-6, atol=1e-9)
        assert fitted.n_inner_iter_ == 0 and fitted.inner_status_.startswith("not converged")
        assert model(2, inner_tol=1e-3, max_inner_iter=1000).fit(X).inner_status_.startswith("converged")


class TestWeights:
    """A weight counts copies; a sample of weight zero is as if it were not there."""

    COUNTS = np.resize([1, 3, 0, 2, 1], 40)

    @pytest.mark.parametrize("loss", [Square(), Huber(0.3), EpsilonRidge(0.2)], ids=repr)
    @pytest.mark.parametrize(
        "settings",
        [{}, {"center": True}, {"init": "random", "random_state": 0}, {"kernel": "auto"}, {"hidden_kernel": "linear"}],
        ids=repr,
    )
    def test_are_copies(self, X, new, loss, settings):
        # the first steps of L-BFGS: later ones amplify round-off
        weighted = model(loss=loss, max_inner_iter=4, **settings).fit(X, sample_weight=self.COUNTS)
        copied = model(loss=loss, max_inner_iter=4, **settings).fit(np.repeat(X, self.COUNTS, axis=0))
        assert weighted.objective_history_ == pytest.approx(copied.objective_history_, rel=1e-6)
        assert_allclose(weighted.transform(new), copied.transform(new), atol=1e-5)
        assert_allclose(weighted.reconstruct(new), copied.reconstruct(new), atol=1e-5)
        assert_allclose(weighted.codes_, weighted.transform(X), atol=ROUND_OFF)
        assert weighted.dual_coef_.shape[0] == 40 and not np.any(weighted.dual_coef_[self.COUNTS == 0])

    def test_of_several_layers(self, X):
        counts = np.resize([1, 3, 2], 40)
        weighted, copied = (
            model((3, 2), max_inner_iter=3).fit(rows, sample_weight=weights)
            for rows, weights in [(X, counts), (np.repeat(X, counts, axis=0), None)]
        )
        assert weighted.objective_history_ == pytest.approx(copied.objective_history_, rel=1e-5)
        assert_allclose(weighted.transform(X), copied.transform(X), atol=1e-4)

    @pytest.mark.parametrize("sizes", [(2,), (3, 2)])
    def test_gradient(self, X, sizes):
        random, counts = np.random.default_rng(1), np.resize([0.5, 3.0, 1.0], 40)
        V = KernelOutputs(Gaussian(GAMMA)).fit(X).targets_
        layers = first_layers(V, sizes, Gaussian(0.3), "pca", np.random.RandomState(0), counts)
        objective = Reduced(V, Huber(0.3), 0.1, 1e-2, Auto(), 1e-14, counts)
        point, direction = layers.flat(), random.standard_normal(layers.flat().shape) * 1e-4
        slope = layers.flat(objective(layers)[1]) @ direction
        ahead, behind = (objective(layers.moved(point + side * direction))[0] for side in (1, -1))
        assert slope == pytest.approx((ahead - behind) / 2, rel=1e-5)

    def test_outer_layer_is_the_predictor_on_the_codes(self, X):
        fitted = model(loss=Huber(0.3), max_inner_iter=2, tol=1e-10).fit(X, sample_weight=self.COUNTS)
        other = StructuredPredictor(
            fitted.hidden_kernel_, Gaussian(GAMMA), Huber(0.3), lam=1e-3, tol=1e-10
        ).fit(fitted.codes_, X, sample_weight=self.COUNTS)  # fmt: skip
        assert fitted.primal_objective_ == pytest.approx(other.primal_objective_, rel=1e-8)
        assert_allclose(fitted.outlier_score_, other.outlier_score_, atol=1e-4)

    def test_gram_matrix_and_objects(self, X, new):
        plain = model(max_inner_iter=3).fit(X, sample_weight=self.COUNTS)
        gram = model(kernel="precomputed", max_inner_iter=3).fit(Gaussian(GAMMA)(X), sample_weight=self.COUNTS)
        assert_allclose(gram.transform(Gaussian(GAMMA)(new, X)), plain.transform(new), atol=1e-8)
        words = np.array(["a", "bb", "abb", "ba", "b", "bab"] * 4, dtype=object)
        weights = np.resize([1, 2, 0], 24)

        def common(one, other):
            return np.array([[len(set(a) & set(b)) + (a == b) for b in other] for a in one], dtype=float)

        fitted = KernelAutoencoder(1, common, max_inner_iter=2).fit(words, sample_weight=weights)
        copied = KernelAutoencoder(1, common, max_inner_iter=2).fit(np.repeat(words, weights))
        assert_allclose(np.abs(fitted.transform(words)), np.abs(copied.transform(words)), atol=1e-6)

    def test_errors(self, X):
        with pytest.raises(ValueError, match="at least one positive entry"):
            model().fit(X, sample_weight=np.zeros(40))
        with pytest.raises(ValueError, match="must have shape"):
            model().fit(X, sample_weight=np.ones(3))


class TestNewPoints:
    @pytest.mark.parametrize("sizes", [2, (4, 2, 3)])
    @pytest.mark.parametrize("center", [False, True])
    def test_training_points_have_the_training_codes(self, X, sizes, center):
        fitted = model(sizes, center=center).fit(X)
        assert_allclose(fitted.transform(X), fitted.codes_, atol=1e-8)
        assert fitted.codes_.shape == (40, 2)
        assert clone(fitted).fit_transform(X).shape == (40, 2)
        assert fitted.get_feature_names_out().tolist() == ["kernelautoencoder0", "kernelautoencoder1"]

    def test_codes_are_those_of_the_narrowest_layer(self, X):
        assert model((4, 2, 3), max_inner_iter=1).fit(X).transform(X).shape == (40, 2)
        equal = model((2, 3, 2), max_inner_iter=1).fit(X)
        last = equal.model_.network.layers.codes(equal.representation_.targets_)[-1]
        assert_allclose(equal.transform(X), last, atol=1e-8)

    @pytest.mark.parametrize("center", [False, True])
    def test_distances_from_kernel_values_alone(self, X, new, center):
        fitted = model(2, center=center).fit(X)
        for points in (X, new):
            assert_allclose(fitted.reconstruct(points) ** 2, feature_distances(fitted, X, points), atol=1e-6)
        assert fitted.score(new) == pytest.approx(-np.mean(fitted.reconstruct(new) ** 2))

    @pytest.mark.parametrize("center", [False, True])
    def test_linear_kernel_by_hand(self, X, new, center):
        """Distances in the feature space of a linear kernel are those of the vectors."""
        fitted = model(2, kernel="linear", center=center).fit(X)
        back = fitted.inverse_transform(fitted.transform(new))
        assert_allclose(fitted.embed(new), back)
        assert_allclose(fitted.reconstruct(new), np.linalg.norm(new - back, axis=1))
        assert isinstance(fitted.decoder_, Clamp)

    def test_first_layer_is_a_function_of_the_rkhs(self, X, new):
        """z(x) = sum_j k(x, x_j) phi_j with phi from the training codes alone."""
        fitted = model(2).fit(X)
        phi = np.linalg.lstsq(Gaussian(GAMMA)(X), fitted.codes_, rcond=1e-13)[0]
        assert_allclose(fitted.transform(new), Gaussian(GAMMA)(new, X) @ phi, atol=1e-5)

    @pytest.mark.parametrize("loss", [Square(), Huber(0.2)], ids=repr)
    @pytest.mark.parametrize("center", [False, True])
    def test_gram_matrix_alone(self, X, new, loss, center):
        kernel = Gaussian(GAMMA)
        here = model(2, loss=loss, center=center).fit(X)
        there = model(2, loss=loss, center=center, kernel="precomputed").fit(kernel(X))
        across = kernel(new, X)
        assert_allclose(there.transform(across), here.transform(new), atol=1e-9)
        assert_allclose(there.reconstruct(across), here.reconstruct(new), atol=1e-9)
        assert there.score(across) == pytest.approx(here.score(new))
        places = there.inverse_transform(there.codes_)
        nearest = here.inverse_transform(here.codes_, candidates=X)
        assert_allclose(X[places], nearest)

    def test_gram_matrix_of_unequal_norms(self, X, new):
        fitted = model(2, kernel=Precomputed()).fit(X @ X.T)
        with pytest.raises(IncompatibleError, match=r"different norms.*Give squared_norms"):
            fitted.reconstruct(new @ X.T)
        norms = np.sum(new**2, axis=1)
        linear = model(2, kernel="linear").fit(X)
        assert_allclose(fitted.reconstruct(new @ X.T, norms), linear.reconstruct(new), rtol=1e-6)
        assert fitted.score(new @ X.T, squared_norms=norms) == pytest.approx(linear.score(new), rel=1e-6)
        with pytest.raises(ValueError, match=r"squared_norms must have shape \(7,\). Got \(3,\)"):
            fitted.reconstruct(new @ X.T, norms[:3])

    def test_objects(self, rng):
        """Words, with a kernel that is a function of two lists of them."""
        words = ["".join(rng.choice(list("abc"), 5)) for _ in range(25)]

        def common(A, B):
            counts = [[[word.count(c) for c in "abc"] for word in side] for side in (A, B)]
            return np.exp(-0.3 * ((np.array(counts[0])[:, None] - np.array(counts[1])[None]) ** 2).sum(-1))

        K = common(words, words)
        fitted, gram = model(2, kernel=common).fit(words), model(2, kernel="precomputed").fit(K)
        assert_allclose(fitted.transform(words[:4]), gram.transform(K[:4]), atol=1e-8)
        assert_allclose(fitted.reconstruct(words), gram.reconstruct(K), atol=1e-6)
        back = fitted.inverse_transform(fitted.codes_)
        assert set(back) <= set(words)
        assert sorted(fitted.inverse_transform(fitted.codes_, ["aaaaa", "ccccc"])[:1])[0] in ("aaaaa", "ccccc")


class TestInverse:
    def test_decoders_by_kernel(self, X):
        kinds = {"linear": Clamp, Gaussian(GAMMA): Preimage, Laplacian(0.3): TrainingSet}
        for kernel, kind in kinds.items():
            assert type(model(2, kernel=kernel, max_inner_iter=1).fit(X).decoder_) is kind
        assert type(model(2, decoder="training_set", max_inner_iter=1).fit(X).decoder_) is TrainingSet

    def test_candidates(self, X, new):
        fitted = model(2).fit(X)
        codes = fitted.transform(X[:5])
        found = fitted.inverse_transform(codes, candidates=new)
        distances = fitted.representation_.distances(fitted.embed(X[:5]), new)
        assert_allclose(found, new[np.argmin(distances, axis=1)])
        sets = [new[i : i + 2] for i in range(5)]
        each = fitted.inverse_transform(codes, candidates=sets)
        wanted = [sets[i][np.argmin(distances[i, i : i + 2])] for i in range(5)]
        assert_allclose(each, wanted)

    def test_preimages_are_near(self, X):
        fitted = model(2, lam=1e-5).fit(X)
        back = fitted.inverse_transform(fitted.transform(X))
        assert np.mean((back - X) ** 2) < 0.1 * X.var()

    def test_training_outputs_of_a_deep_model(self, X):
        fitted = model((3, 1, 3), decoder="training_set", lam=1e-5).fit(X)
        assert fitted.inverse_transform(fitted.codes_).shape == X.shape


class TestConventions:
    def test_a_seed_makes_it_repeatable(self, X):
        first, second = (model(2, init="random", random_state=3, max_inner_iter=5).fit(X) for _ in range(2))
        assert_array_equal(first.codes_, second.codes_)
        assert first.objective_history_ == second.objective_history_
        third = model(2, init="random", random_state=4, max_inner_iter=5).fit(X)
        assert np.max(np.abs(third.codes_ - first.codes_)) > 1e-3

    def test_warm_start_goes_on(self, X):
        few = model(2, max_inner_iter=5, warm_start=True).fit(X)
        ended = few.objective_
        few.fit(X)
        assert few.objective_history_[0] == pytest.approx(ended, rel=1e-9)
        assert few.objective_ < ended
        few.set_params(n_components=3).fit(X)
        assert few.codes_.shape == (40, 3)
        cold = model(2, max_inner_iter=5).fit(X).fit(X)
        assert cold.objective_ == ended

    def test_a_median_bandwidth_is_that_of_the_first_codes(self, X):
        fitted = model(2, hidden_kernel=Gaussian("median"), max_inner_iter=3, warm_start=True).fit(X)
        first = model(2, max_inner_iter=0).fit(X).codes_
        assert fitted.hidden_kernel_.gamma == pytest.approx(1 / (2 * np.median(pdist(first)) ** 2))
        codes = fitted.codes_
        assert fitted.fit(X).hidden_kernel_.gamma == pytest.approx(1 / (2 * np.median(pdist(codes)) ** 2))

    @pytest.mark.parametrize("loss", [Square(), Huber(0.2)], ids=repr)
    @pytest.mark.parametrize("kernel", [Gaussian(GAMMA), "linear"], ids=repr)
    @pytest.mark.parametrize("sizes", [2, (3, 2)])
    def test_torch(self, X, new, torch, loss, kernel, sizes):
        here = model(sizes, loss=loss, kernel=kernel, max_inner_iter=5).fit(X)
        there = model(sizes, loss=loss, kernel=kernel, max_inner_iter=5).fit(torch.tensor(X))
        codes = there.transform(torch.tensor(new))
        assert isinstance(codes, torch.Tensor) and codes.dtype == torch.float64
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-4)
        signs = np.sign(np.sum(codes.numpy() * here.transform(new), axis=0))  # of eigenvectors in other coordinates
        assert_allclose(codes.numpy() * signs, here.transform(new), atol=2e-2)
        distances = there.reconstruct(torch.tensor(new))
        assert isinstance(distances, torch.Tensor)
        assert_allclose(distances.numpy(), here.reconstruct(new), atol=1e-2)
        assert isinstance(there.inverse_transform(codes), torch.Tensor)
        assert isinstance(there.score(torch.tensor(new)), float)
        single = torch.tensor(new, dtype=torch.float32)
        assert there.transform(single).dtype == there.reconstruct(single).dtype == torch.float32

    def test_pipeline_and_grid_search(self, X):
        y = (X[:, 2] > np.median(X[:, 2])).astype(int)
        line = make_pipeline(KernelAutoencoder(2, Gaussian(GAMMA), max_inner_iter=5), LogisticRegression())
        assert line.fit(X, y).score(X, y) > 0.9
        grid = GridSearchCV(
            model(loss=Huber(), max_inner_iter=3), {"lam": [1e-3, 1.0], "loss__kappa": [0.1, 0.5]}, cv=2
        ).fit(X)
        assert grid.best_params_["lam"] == 1e-3 and np.all(np.isfinite(grid.cv_results_["mean_test_score"]))
        gram = GridSearchCV(model(kernel="precomputed", max_inner_iter=3), {"lam": [1e-3, 1.0]}, cv=2)
        assert gram.fit(Gaussian(GAMMA)(X)).best_params_ == {"lam": 1e-3}

    def test_pickle_and_inputs_unchanged(self, X, new):
        copy = X.copy()
        fitted = model(2, max_inner_iter=3).fit(X)
        assert_array_equal(X, copy)
        assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(new), fitted.transform(new))

    def test_more_components_than_there_are(self, X):
        fitted = model(6, kernel="linear", random_state=0).fit(X)
        assert fitted.codes_.shape == (40, 6)
        assert -fitted.score(X) < 0.2 * np.mean(np.sum(X**2, axis=1))
        assert model(3).fit(X[:1]).codes_.shape == (1, 3)

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"n_components": 0}, ValueError, r"'n_components' parameter of KernelAutoencoder must be an int in \[1"),
            ({"n_components": ()}, ValueError, "must hold at least one size"),
            ({"n_components": (2, 1.5)}, ValueError, "'n_components' parameter"),
            ({"n_components": "two"}, ValueError, "'n_components' parameter"),
            ({"lam": 0.0}, ValueError, "'lam' parameter"),
            ({"inner_lam": -1.0}, ValueError, "'inner_lam' parameter"),
            ({"inner_tol": -1.0}, ValueError, "'inner_tol' parameter"),
            ({"max_inner_iter": -1}, ValueError, "'max_inner_iter' parameter"),
            ({"init": "zero"}, ValueError, "'init' parameter of KernelAutoencoder must be one of 'pca', 'random'"),
            ({"center": "yes"}, ValueError, "'center' parameter"),
            ({"loss": "hinge"}, ValueError, "loss"),
            ({"decoder": "none"}, ValueError, "decoder"),
            ({"hidden_kernel": "precomputed"}, ValueError, "'hidden_kernel' parameter must be a kernel of vectors"),
            ({"hidden_kernel": "laplacian"}, IncompatibleError, "is not smooth"),
            ({"loss": Huber(0.5, p=1)}, IncompatibleError, "needs point values"),
            ({"kernel": "precomputed"}, ValueError, "X must be a square Gram matrix"),
            ({"kernel": "cube"}, ValueError, "kernel"),
            ({"decoder": Preimage(), "kernel": "linear"}, IncompatibleError, "Preimage is for"),
        ],
    )
    def test_bad_parameters(self, X, settings, error, message):
        with pytest.raises(error, match=message):
            model(**{"n_components": 2, **settings}).fit(X)

    def test_bad_data(self, X, torch):
        for bad, message in ((X.ravel(), "1D array"), (np.full((5, 2), np.nan), "NaN"), (X[:0], "0 sample")):
            with pytest.raises(ValueError, match=message):
                model().fit(bad)
        with pytest.raises(NotFittedError):
            model().transform(X)
        fitted = model(max_inner_iter=1).fit(X)
        with pytest.raises(ValueError, match="X has 2 features, but KernelAutoencoder is expecting 4"):
            fitted.transform(X[:, :2])
        with pytest.raises(ValueError, match=r"X must hold codes, with 2 columns\. Got 4"):
            fitted.inverse_transform(X)
        with pytest.raises(ValueError, match="X has 3 features, but the model was fitted with 4"):
            fitted.transform(torch.ones((2, 3), dtype=torch.float64))
        with pytest.raises(ValueError, match="positive semidefinite"):
            model(kernel="precomputed").fit(np.array([[0.0, 1.0], [1.0, 0.0]]))

    def test_not_converged_says_so(self, X):
        with pytest.warns(match="stopped after"):
            fitted = model(loss=Huber(0.1), lam=1e-6, solver=PGD(), max_iter=2, max_inner_iter=1).fit(X)
        assert fitted.status_.startswith("not converged")


def test_network_without_support(rng):
    layers = Layers((np.ones((3, 1)),), (Gaussian(1.0),))
    network = Network(layers, [rng.standard_normal((4, 1))], np.zeros(0, dtype=int), np.zeros((0, 3)))
    assert_array_equal(network.decoded(np.ones((5, 1))), np.zeros((5, 3)))


@pytest.mark.parametrize("approximation", [Nystrom(12), RandomFeatures(60, random_state=0)], ids=repr)
@pytest.mark.parametrize("kernel", ["auto", Gaussian(GAMMA)], ids=repr)
def test_codes_of_few_features_are_decoded_to_the_nearest_point(X, kernel, approximation):
    """Features define no weights, which a pre-image needs."""
    fitted = model(kernel=kernel, approximation=approximation, random_state=0).fit(X)
    found = fitted.inverse_transform(fitted.codes_)
    assert isinstance(fitted.decoder_, TrainingSet)
    assert np.isin(found, X).all() and np.mean((found - X) ** 2) < 0.1 * np.var(X)
    with pytest.raises(IncompatibleError, match=r"Preimage needs weights .* approximate features do not define"):
        model(approximation=approximation, decoder="preimage").fit(X)
