"""StructuredPredictor and its cross-validation against closed forms, explicit refits and brute force."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold

from fenchel import OperatorKernelRegressor, StructuredPredictor, StructuredPredictorCV
from fenchel.decoders import Candidates, Preimage, Threshold
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Covariance, Gaussian, GaussianTanimoto, Identity, Laplacian, Linear
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.losses.radial import RadialLoss
from fenchel.metrics import hamming_losses
from tests.parts import LOSSES

CLOSE = 1e-7  # the relative gap of a fit is 1e-6 at most, and of a closed form far less
GAMMA_X, GAMMA_Y, LAM = 0.5, 0.3, 1e-2
RADIAL = [loss for loss in LOSSES if isinstance(loss, RadialLoss) or getattr(loss, "p", None) == 2]


def gaussian(A, B, gamma):
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(-1))


@pytest.fixture
def labels(rng):
    """Thirty inputs, label vectors that depend on them, and five new inputs."""
    X, new = rng.standard_normal((30, 2)), rng.standard_normal((5, 2))
    return X, (np.sin(X @ rng.standard_normal((2, 4))) + 0.2 * rng.standard_normal((30, 4)) > 0).astype(float), new


def model(loss="square", **settings):
    defaults = {"kernel": Gaussian(GAMMA_X), "output_kernel": Gaussian(GAMMA_Y), "lam": LAM}
    return StructuredPredictor(loss=loss, **{**defaults, **settings})


def alphas(X, new, lam=LAM, weights=None):
    """Return (K + n lam W^-1)^-1 k_x: the weights of the training outputs in each prediction."""
    weights = np.ones(len(X)) if weights is None else weights
    K = gaussian(X, X, GAMMA_X) + weights.sum() * lam * np.diag(1 / weights)
    return np.linalg.solve(K, gaussian(X, new, GAMMA_X)).T


def scores(A, Y, C):
    """Return k(c, c) - 2 alpha' k_Y(Y, c) + alpha' K_Y alpha for the Gaussian output kernel."""
    squares = np.sum((A @ gaussian(Y, Y, GAMMA_Y)) * A, axis=1)[:, None]
    return 1 - 2 * A @ gaussian(Y, C, GAMMA_Y) + squares


class TestClosedForms:
    def test_linear_kernel_is_kernel_ridge_and_a_threshold(self, labels):
        X, Y, new = labels
        ridge = KernelRidge(alpha=30 * LAM, kernel="rbf", gamma=GAMMA_X).fit(X, Y)
        fitted = model(output_kernel="linear", decoder="threshold").fit(X, Y)
        assert_allclose(fitted.embed(new), ridge.predict(new), rtol=0, atol=CLOSE)
        assert_array_equal(fitted.predict(new), (ridge.predict(new) > 0.5).astype(float))
        clamped = model(output_kernel="linear", decoder="clamp").fit(X, Y)
        assert_allclose(clamped.predict(new), np.clip(ridge.predict(new), 0, 1), rtol=0, atol=CLOSE)

    def test_gaussian_kernel_by_hand(self, labels):
        X, Y, new = labels
        C = np.array([[a, b, c, d] for a in (0.0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)])
        wanted = scores(alphas(X, new), Y, C)
        fitted = model(decoder="candidates").fit(X, Y)
        assert_allclose(fitted.decision_scores(new, C), wanted, rtol=0, atol=CLOSE)
        assert_array_equal(fitted.predict(new, C), C[np.argmin(wanted, axis=1)])
        order = np.argsort(wanted, axis=1)[:, :3]
        assert_array_equal(fitted.top_k(new, 3, C), C[order])
        assert_array_equal(fitted.top_k(new, 3, C, indices=True), order)
        sets = [C[i : i + 4] for i in range(5)]
        each = np.stack([wanted[i, i : i + 4] for i in range(5)])
        assert_allclose(fitted.decision_scores(new, sets), each, rtol=0, atol=CLOSE)
        assert_array_equal(fitted.predict(new, sets), [C[i + np.argmin(row)] for i, row in enumerate(each)])

    def test_among_the_training_outputs(self, labels):
        X, Y, new = labels
        fitted = model().fit(X, Y)
        distinct = Y[np.sort(np.unique(Y, axis=0, return_index=True)[1])]
        wanted = scores(alphas(X, new), Y, distinct)
        assert_allclose(fitted.decision_scores(new), wanted, rtol=0, atol=CLOSE)
        assert_array_equal(fitted.predict(new), distinct[np.argmin(wanted, axis=1)])
        assert_array_equal(fitted.top_k(new, 2), distinct[np.argsort(wanted, axis=1)[:, :2]])

    def test_sample_weights(self, labels, rng):
        X, Y, new = labels
        weights = rng.uniform(0.2, 3, 30)
        fitted = model(decoder="candidates").fit(X, Y, weights)
        wanted = scores(alphas(X, new, weights=weights), Y, Y)
        assert_allclose(fitted.decision_scores(new, Y), wanted, rtol=0, atol=CLOSE)

    def test_counts_are_copies_and_zero_is_absence(self, labels):
        X, Y, new = labels
        counts = np.arange(30) % 3
        for loss in ("square", Huber(0.3)):
            weighted = model(loss, tol=1e-10).fit(X, Y, counts)
            copied = model(loss, tol=1e-10).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
            found, wanted = weighted.decision_scores(new, Y), copied.decision_scores(new, Y)
            assert_allclose(found, wanted, rtol=0, atol=1e-5)
            assert_array_equal(weighted.predict(new), copied.predict(new))
            assert weighted.dual_coef_.shape[0] == 30

    def test_covariance_operator(self, labels):
        """The coefficients of K A C + n lam A = Y, with the second moment C of the outputs, by a dense solve."""
        X, Y, new = labels
        K, C = gaussian(X, X, GAMMA_X), Y.T @ Y / 30
        dense = np.linalg.solve(np.kron(K, C) + 30 * LAM * np.eye(120), Y.ravel()).reshape(30, 4)
        fitted = model(output_kernel="linear", operator="covariance").fit(X, Y)
        assert_allclose(fitted.embed(new), gaussian(new, X, GAMMA_X) @ dense @ C, rtol=0, atol=CLOSE)
        model(operator="covariance").fit(X, Y)

    def test_sum_of_separable_kernels(self, labels):
        X, Y, new = labels
        C = Y.T @ Y / 30
        other = np.exp(-0.2 * np.abs(X[:, None] - X[None]).sum(-1))
        cross = np.exp(-0.2 * np.abs(new[:, None] - X[None]).sum(-1))
        big = np.kron(gaussian(X, X, GAMMA_X), np.eye(4)) + np.kron(other, C)
        dense = np.linalg.solve(big + 30 * LAM * np.eye(120), Y.ravel()).reshape(30, 4)
        kernel = Gaussian(GAMMA_X) * Identity() + Laplacian(0.2) * Covariance()
        fitted = model(kernel=kernel, output_kernel="linear", tol=1e-12, max_iter=100_000).fit(X, Y)
        wanted = gaussian(new, X, GAMMA_X) @ dense + cross @ dense @ C
        assert_allclose(fitted.embed(new), wanted, rtol=0, atol=1e-5)

    def test_preimage(self, labels):
        X, Y, new = labels
        A = alphas(X, new)
        found = model(decoder=Preimage(n_starts=2)).fit(X, Y).predict(new)
        reached = np.sum(A * gaussian(found, Y, GAMMA_Y), axis=1)
        assert np.all(reached >= np.max(A @ gaussian(Y, Y, GAMMA_Y), axis=1) - CLOSE)


class TestLosses:
    @pytest.mark.parametrize("loss", RADIAL, ids=repr)
    @pytest.mark.parametrize("output_kernel", [Linear(), Gaussian(GAMMA_Y)], ids=repr)
    def test_certificate(self, labels, loss, output_kernel):
        X, Y, new = labels
        fitted = model(loss, output_kernel=output_kernel).fit(X, Y)
        assert fitted.status_.startswith("converged")
        assert -1e-12 <= fitted.duality_gap_ <= 1e-6
        assert fitted.primal_objective_ >= fitted.dual_objective_ - 1e-12
        assert len(fitted.predict(new)) == 5

    @pytest.mark.parametrize("loss", [Square(), Huber(0.2), EpsilonRidge(0.3), EpsilonSVR(0.3)], ids=repr)
    def test_primal_value_from_kernel_values(self, labels, loss):
        """Mean loss of the residuals in the output space and the norm, both from Gram matrices alone."""
        X, Y, _ = labels
        fitted = model(loss, tol=1e-4).fit(X, Y)
        V, K = fitted.representation_.targets_, gaussian(X, X, GAMMA_X)
        assert_allclose(V @ V.T, gaussian(Y, Y, GAMMA_Y), atol=1e-10)
        B = fitted.dual_coef_ / (30 * LAM)
        r = np.sqrt(np.maximum(fitted.decision_scores(X, Y).diagonal(), 0))
        values = {
            "Square": lambda r: r**2 / 2,
            "Huber": lambda r: np.where(r <= 0.2, r**2 / 2, 0.2 * (r - 0.1)),
            "EpsilonRidge": lambda r: np.maximum(r - 0.3, 0) ** 2 / 2,
            "EpsilonSVR": lambda r: np.maximum(r - 0.3, 0),
        }[type(loss).__name__](r)
        primal = np.mean(values) + LAM / 2 * np.sum((K @ B) * B)
        assert fitted.primal_objective_ == pytest.approx(primal, rel=1e-7)

    @pytest.mark.parametrize("loss", [Huber(0.2, p=1), EpsilonRidge(0.2, p=np.inf), EpsilonSVR(0.2, p=1)], ids=repr)
    def test_other_norms(self, labels, loss):
        X, Y, _ = labels
        with pytest.raises(
            IncompatibleError, match=r"needs point values, which KernelOutputs does not provide\. Use p=2"
        ):
            model(loss).fit(X, Y)

    @pytest.mark.parametrize("loss", [Huber(0.2, p=1), EpsilonRidge(0.2, p=np.inf), EpsilonSVR(0.2, p=1)], ids=repr)
    def test_other_norms_of_vectors(self, labels, loss):
        """With the linear kernel the coordinates are the entries of the outputs, as for OperatorKernelRegressor."""
        X, Y, new = labels
        fitted = model(loss, output_kernel="linear", tol=1e-9).fit(X, Y)
        plain = OperatorKernelRegressor(Gaussian(GAMMA_X), loss=loss, lam=LAM, tol=1e-9).fit(X, Y)
        assert fitted.duality_gap_ <= 1e-9
        assert fitted.primal_objective_ == pytest.approx(plain.primal_objective_, rel=1e-8)
        assert_allclose(fitted.embed(new), plain.predict(new), rtol=0, atol=1e-3)

    def test_outliers_have_the_largest_scores(self, labels):
        X, Y, _ = labels
        Y = np.repeat((X[:, :1] > 0).astype(float), 4, axis=1)
        Y[[3, 17]] = 1 - Y[[3, 17]]
        fitted = model(Huber(0.05), lam=3e-2).fit(X, Y)
        assert np.all(np.asarray(fitted.outlier_score_).ravel()[[3, 17]] >= 1 - 1e-6)


class TestPrecomputed:
    def test_both_gram_matrices(self, labels):
        X, Y, new = labels
        K, KY = gaussian(X, X, GAMMA_X), gaussian(Y, Y, GAMMA_Y)
        direct = model(Huber(0.2), tol=1e-10).fit(X, Y)
        given = model(Huber(0.2), tol=1e-10, kernel="precomputed", output_kernel="precomputed").fit(K, KY)
        cross = gaussian(new, X, GAMMA_X)
        assert_array_equal(Y[given.predict(cross)], direct.predict(new))
        C = direct.decoder_.inner_.candidates
        pair = (gaussian(C, Y, GAMMA_Y), np.ones(len(C)))
        assert_allclose(given.decision_scores(cross, pair), direct.decision_scores(new), rtol=0, atol=1e-5)
        assert_array_equal(given.top_k(cross, 2, pair, indices=True), direct.top_k(new, 2, indices=True))
        with pytest.raises(IncompatibleError, match=r"score needs a kernel of the outputs, not their Gram matrix"):
            given.score(cross, KY[:5])

    def test_output_gram_matrix_and_weights_of_zero(self, labels):
        """The places in the Gram matrix would be those of other samples: refused."""
        X, Y, _ = labels
        weights = np.ones(30)
        weights[:4] = 0
        with pytest.raises(ValueError, match="weight zero are not supported with an output Gram matrix"):
            model(output_kernel="precomputed").fit(X, gaussian(Y, Y, GAMMA_Y), weights)

    def test_top_k_gives_places_as_predict_does(self, labels):
        X, Y, new = labels
        found = model(output_kernel="precomputed").fit(X, gaussian(Y, Y, GAMMA_Y))
        assert_array_equal(np.asarray(found.top_k(new, 1))[:, 0], found.predict(new))

    def test_zero_outputs(self, labels):
        X, _, new = labels
        found = model(output_kernel="precomputed").fit(X, np.zeros((30, 30)))
        assert_array_equal(found.predict(new), np.zeros(5))


def jaccard(A, B):
    return np.array([[len(set(a) & set(b)) / len(set(a) | set(b)) for b in B] for a in A])


WORDS = ["abc", "abd", "x", "xyz", "ab", "b", "abc", "zz", "zy", "q", "qr", "a"]


class TestObjects:
    def oracle(self, X, objects, new, C):
        K = jaccard(objects, objects)
        A = np.linalg.solve(gaussian(X, X, GAMMA_X) + 12 * LAM * np.eye(12), gaussian(X, new, GAMMA_X)).T
        return 1 - 2 * A @ jaccard(objects, C) + np.sum((A @ K) * A, axis=1)[:, None]

    @pytest.mark.parametrize("kind", [str, frozenset, set, tuple])
    def test_a_function_of_objects(self, rng, kind):
        X, objects = rng.standard_normal((12, 2)), [kind(word) for word in WORDS]
        C = np.empty(12, dtype=object)
        C[:] = objects
        wanted = self.oracle(X, objects, X[:4], C)
        fitted = model(output_kernel=jaccard, decoder=Candidates(C)).fit(X, objects)
        assert_allclose(fitted.decision_scores(X[:4]), wanted, rtol=0, atol=CLOSE)
        # jaccard does not tell zz from z: equal distances up to round-off, so the words are compared as sets
        assert [set(one) for one in fitted.predict(X[:4])] == [set(WORDS[k]) for k in np.argmin(wanted, axis=1)]
        assert len(fitted.top_k(X[:4], 3)[0]) == 3
        sets = [C[:3], C[3:4], C[2:9], C]
        assert len(fitted.predict(X[:4], sets)) == 4
        for i, part in enumerate((slice(3), slice(3, 4), slice(2, 9), slice(12))):
            assert_allclose(fitted.decision_scores(X[:4], sets)[i], wanted[i, part], rtol=0, atol=CLOSE)

    def test_words_with_the_default_decoder(self, rng):
        X = rng.standard_normal((12, 2))
        fitted = model(output_kernel=jaccard, lam=1e-8).fit(X, WORDS)
        assert list(fitted.predict(X)) == WORDS
        assert fitted.decision_scores(X).shape == (12, 11)
        assert fitted.score(X, WORDS) == pytest.approx(0, abs=1e-12)
        array = model(output_kernel=jaccard, lam=1e-8).fit(X, np.array(WORDS))
        assert list(array.predict(X)) == WORDS

    def test_weights_of_zero(self, rng):
        X, counts = rng.standard_normal((12, 2)), np.ones(12)
        counts[[0, 5]] = 0
        kept = np.flatnonzero(counts)
        C = np.array(WORDS, dtype=object)
        some = model(output_kernel=jaccard).fit(X, WORDS, counts).decision_scores(X, C)
        fewer = model(output_kernel=jaccard).fit(X[kept], [WORDS[k] for k in kept]).decision_scores(X, C)
        assert_allclose(some, fewer, rtol=0, atol=CLOSE)

    def test_objects_without_an_order(self, rng):
        graphs = [{"nodes": word} for word in WORDS]

        def kernel(A, B):
            return jaccard([a["nodes"] for a in A], [b["nodes"] for b in B])

        X = rng.standard_normal((12, 2))
        found = model(output_kernel=kernel, lam=1e-8).fit(X, graphs).predict(X)
        assert list(found) == graphs

    def test_lists_of_candidates(self, rng):
        X = rng.standard_normal((12, 2))
        found = model(output_kernel=jaccard, decoder="candidates").fit(X, WORDS).predict(X[:2], [["x"], ["q"]])
        assert list(found) == ["x", "q"]

    @pytest.mark.parametrize("kind", [tuple, frozenset])
    def test_flat_list_of_candidates(self, rng, kind):
        X, objects = rng.standard_normal((12, 2)), [kind(word) for word in WORDS]
        fitted = model(output_kernel=jaccard, lam=1e-8).fit(X, objects)
        assert list(fitted.predict(X[:4], objects)) == objects[:4]

    def test_matrices(self, rng):
        def trace(A, B):
            return np.einsum("ikl,jkl->ij", A, B)

        X, Y = rng.standard_normal((12, 2)), rng.standard_normal((12, 3, 3))
        fitted = model(output_kernel=trace).fit(X, Y)
        assert fitted.predict(X).shape == (12, 3, 3)


class TestScore:
    def test_by_hand(self, labels):
        X, Y, _ = labels
        fitted = model(lam=1e-1).fit(X[:20], Y[:20])
        found = fitted.predict(X[20:])
        wanted = -np.mean(2 - 2 * np.exp(-GAMMA_Y * ((found - Y[20:]) ** 2).sum(1)))
        assert fitted.score(X[20:], Y[20:]) == pytest.approx(wanted)
        assert wanted < 0

    def test_linear(self, labels):
        X, Y, _ = labels
        fitted = model(output_kernel="linear", decoder="threshold", lam=1e-1).fit(X[:20], Y[:20])
        wanted = -np.mean(((fitted.predict(X[20:]) - Y[20:]) ** 2).sum(1))
        assert fitted.score(X[20:], Y[20:]) == pytest.approx(wanted)

    def test_grid_search_over_nested_parameters(self, labels):
        X, Y, _ = labels
        grid = {"loss__kappa": [0.1, 1.0], "output_kernel__gamma": [0.1, 0.5]}
        search = GridSearchCV(model(Huber(0.1)), grid, cv=2).fit(X, Y)
        assert set(search.best_params_) == set(grid)
        assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))

    def test_grid_search_on_a_gram_matrix(self, labels):
        X, Y, _ = labels
        direct = GridSearchCV(model(), {"lam": [1e-3, 1e-1]}, cv=2).fit(X, Y)
        given = GridSearchCV(model(kernel="precomputed"), {"lam": [1e-3, 1e-1]}, cv=2)
        given.fit(gaussian(X, X, GAMMA_X), Y)
        assert_allclose(given.cv_results_["mean_test_score"], direct.cv_results_["mean_test_score"], atol=CLOSE)


class TestArrays:
    @pytest.mark.parametrize("output_kernel", [Linear(), Gaussian(GAMMA_Y), GaussianTanimoto(1.0)], ids=repr)
    @pytest.mark.parametrize("loss", ["square", Huber(0.2)], ids=repr)
    def test_single_precision(self, labels, output_kernel, loss):
        X, Y, new = labels
        single = model(loss, output_kernel=output_kernel).fit(X.astype(np.float32), Y.astype(np.float32))
        double = model(loss, output_kernel=output_kernel).fit(X, Y)
        assert single.status_.startswith("converged")
        found = single.decision_scores(new.astype(np.float32), Y)
        assert_allclose(found, double.decision_scores(new, Y), rtol=0, atol=2e-3)
        assert_array_equal(single.predict(new.astype(np.float32)), double.predict(new))

    @pytest.mark.parametrize("decoder", ["training_set", "preimage", "threshold", "clamp"])
    def test_torch(self, labels, torch, decoder):
        X, Y, new = labels
        output_kernel = Gaussian(GAMMA_Y) if decoder in ("training_set", "preimage") else Linear()
        here = model(output_kernel=output_kernel, decoder=decoder).fit(X, Y)
        there = model(output_kernel=output_kernel, decoder=decoder).fit(torch.tensor(X), torch.tensor(Y))
        found = there.predict(torch.tensor(new))
        assert isinstance(found, torch.Tensor)
        assert_allclose(found.numpy(), here.predict(new), rtol=0, atol=1e-4)
        scores = there.decision_scores(torch.tensor(new), torch.tensor(Y)).numpy()
        assert_allclose(scores, here.decision_scores(new, Y), rtol=0, atol=CLOSE)
        sets = [torch.tensor(Y[i : i + 3]) for i in range(5)]
        assert_array_equal(
            there.predict(torch.tensor(new), sets).numpy(), here.predict(new, [Y[i : i + 3] for i in range(5)])
        )
        assert there.score(torch.tensor(X), torch.tensor(Y)) == pytest.approx(here.score(X, Y), abs=1e-6)

    def test_numpy_candidates_for_tensors(self, labels, torch):
        X, Y, new = labels
        fitted = model().fit(torch.tensor(X), torch.tensor(Y))
        assert_array_equal(fitted.predict(torch.tensor(new), Y), model().fit(X, Y).predict(new, Y))

    @pytest.mark.parametrize("kind", [bool, np.int64, list])
    def test_other_numbers(self, labels, kind):
        X, Y, new = labels
        given = Y.tolist() if kind is list else Y.astype(kind)
        assert_array_equal(model().fit(X, given).predict(new), model().fit(X, Y).predict(new))

    def test_one_column(self, labels):
        X, Y, new = labels
        flat = model().fit(X, Y[:, 0])
        assert_array_equal(flat.predict(new), model().fit(X, Y[:, :1]).predict(new))
        assert flat.score(X, Y[:, 0]) <= 0

    def test_flat_candidates_for_flat_outputs(self, labels):
        X, Y, new = labels
        found = model().fit(X, Y[:, 0]).predict(new, np.array([0.0, 1.0]))
        assert_array_equal(np.ravel(found), np.ravel(model().fit(X, Y[:, :1]).predict(new)))


class TestConventions:
    def test_clone_and_parameters(self, labels):
        X, Y, new = labels
        first = model(Huber(0.3), decoder=Candidates(Y), operator="covariance")
        second = clone(first)
        assert second.get_params()["loss__kappa"] == 0.3
        assert_array_equal(first.fit(X, Y).predict(new), second.fit(X, Y).predict(new))
        assert not hasattr(first.decoder, "representation_")  # the parameter is not touched
        assert first.set_params(decoder=Threshold(0.4)).get_params()["decoder__threshold"] == 0.4

    @pytest.mark.parametrize("decoder", ["training_set", "preimage"])
    def test_pickle(self, labels, decoder):
        X, Y, new = labels
        fitted = model(decoder=decoder).fit(X, Y)
        copied = pickle.loads(pickle.dumps(fitted))
        assert_array_equal(copied.predict(new), fitted.predict(new))
        assert_array_equal(copied.decision_scores(new, Y), fitted.decision_scores(new, Y))

    def test_same_bits_twice(self, labels):
        X, Y, new = labels
        assert_array_equal(model().fit(X, Y).embed(new), model().fit(X, Y).embed(new))

    def test_arguments_are_not_changed(self, labels):
        X, Y, new = labels
        copies = [one.copy() for one in labels]
        model().fit(X, Y, np.ones(30)).predict(new, Y)
        for one, before in zip(labels, copies, strict=True):
            assert_array_equal(one, before)

    @pytest.mark.parametrize("decoder", ["threshold", "clamp", "preimage"])
    def test_decoders_without_candidates(self, labels, decoder):
        X, Y, new = labels
        kernel = Gaussian(GAMMA_Y) if decoder == "preimage" else Linear()
        fitted = model(output_kernel=kernel, decoder=decoder).fit(X, Y)
        for call in (lambda: fitted.decision_scores(new), lambda: fitted.top_k(new, 2)):
            with pytest.raises(
                IncompatibleError, match=r"has no candidates\. Pass candidates, or use decoder='training_set'"
            ):
                call()
        assert fitted.decision_scores(new, Y).shape == (5, 30)
        assert fitted.predict(new, Y).shape == (5, 4)


class TestErrors:
    def test_lengths(self, labels):
        X, Y, _ = labels
        with pytest.raises(ValueError, match=r"X and y must have the same number of samples\. Got 30 and 29"):
            model().fit(X, Y[:29])
        with pytest.raises(ValueError, match=r"the same number of samples\. Got 30 and 12"):
            model(output_kernel=jaccard).fit(X, WORDS)

    def test_no_outputs(self, labels):
        with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
            model().fit(labels[0], None)

    def test_features(self, labels, torch):
        X, Y, _ = labels
        with pytest.raises(ValueError, match="X has 3 features, but StructuredPredictor is expecting 2"):
            model().fit(X, Y).predict(np.ones((2, 3)))
        with pytest.raises(ValueError, match="X has 3 features, but the model was fitted with 2"):
            model().fit(torch.tensor(X), torch.tensor(Y)).predict(torch.ones((2, 3), dtype=torch.float64))

    def test_nan(self, labels):
        X, Y, _ = labels
        with pytest.raises(ValueError, match="y must be finite"):
            model().fit(X, np.where(Y > 0, Y, np.nan))

    def test_decoder(self, labels):
        X, Y, _ = labels
        with pytest.raises(ValueError, match=r"Unknown decoder 'nearest'\. Known names: 'candidates'"):
            model(decoder="nearest").fit(X, Y)
        with pytest.raises(TypeError, match="'decoder' parameter must be a Decoder instance"):
            model(decoder=3).fit(X, Y)
        with pytest.raises(IncompatibleError, match="Threshold decodes vectors"):
            model(decoder="threshold").fit(X, Y)

    def test_not_positive(self, labels):
        X, _, _ = labels
        with pytest.raises(ValueError, match=r"most negative eigenvalue is -1\.000e\+00"):
            model(output_kernel="precomputed").fit(X, np.diag([-1.0] + [1.0] * 29))

    def test_lengths_of_a_score(self, labels):
        X, Y, _ = labels
        with pytest.raises(ValueError, match=r"the same number of samples"):
            model().fit(X, Y).score(X, Y[:5])


def refitted(X, Y, measure, folds, **settings):
    """Return the mean error of each fold by an explicit refit."""
    errors = []
    for train, test in folds:
        fitted = model(**settings).fit(X[train], Y[train])
        errors.append(np.mean(measure(fitted, X[test], Y[test])))
    return errors


class TestCrossValidation:
    LAMS = (1e-3, 1e-1)
    LOSSES = (Square(), Huber(0.2))

    def chosen(self, **settings):
        defaults = {"kernel": Gaussian(GAMMA_X), "output_kernel": Gaussian(GAMMA_Y), "lams": self.LAMS, "center": False}
        return StructuredPredictorCV(**{"losses": self.LOSSES, "cv": KFold(3), "tol": 1e-9, **defaults, **settings})

    @pytest.mark.parametrize("output_kernel", [Linear(), Gaussian(GAMMA_Y)], ids=repr)
    def test_errors_before_decoding(self, labels, output_kernel):
        X, Y, _ = labels
        found = self.chosen(output_kernel=output_kernel).fit(X, Y)

        def measure(fitted, X, Y):
            return np.diagonal(fitted.decision_scores(X, Y))

        for i, loss in enumerate(self.LOSSES):
            for j, lam in enumerate(self.LAMS):
                settings = {"loss": loss, "lam": lam, "output_kernel": output_kernel, "tol": 1e-10}
                wanted = refitted(X, Y, measure, KFold(3).split(X), **settings)
                assert_allclose(found.fold_errors_[i, j], wanted, rtol=1e-4)
        assert_allclose(found.cv_errors_, found.fold_errors_.mean(axis=-1))
        assert found.cv_gaps_.max() <= 1e-9

    @pytest.mark.parametrize("decoder", ["threshold", "candidates"])
    def test_task_loss(self, labels, decoder):
        X, Y, _ = labels
        every = np.array([[a, b, c, d] for a in (0.0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)])
        settings = (
            {"output_kernel": Linear(), "decoder": "threshold"}
            if decoder == "threshold"
            else {"decoder": Candidates(every)}
        )
        found = self.chosen(task_loss=hamming_losses, **settings).fit(X, Y)

        def measure(fitted, X, Y):
            return np.mean(fitted.predict(X) != Y, axis=1)

        for i, loss in enumerate(self.LOSSES):
            for j, lam in enumerate(self.LAMS):
                wanted = refitted(X, Y, measure, KFold(3).split(X), loss=loss, lam=lam, **settings)
                assert_allclose(found.fold_errors_[i, j], wanted, rtol=1e-12)
        i, j = np.unravel_index(np.argmin(found.cv_errors_), (2, 2))
        assert found.best_lam_ == self.LAMS[j]
        assert repr(found.best_loss_) == repr(self.LOSSES[i])

    def test_task_loss_does_not_see_held_out_outputs(self, rng):
        X = np.linspace(-2, 2, 24)[:, None]
        Y = np.hstack([X, X**2])  # no output occurs twice, so none can be predicted from a fold that lacks it
        folds = KFold(3, shuffle=True, random_state=0)

        def differs(Y, decoded):
            return np.any(np.asarray(Y) != np.asarray(decoded), axis=1).astype(float)

        wanted = refitted(X, Y, lambda fitted, X, Y: differs(Y, fitted.predict(X)), folds.split(X), lam=1e-4)
        assert wanted == [1.0, 1.0, 1.0]
        found = self.chosen(task_loss=differs, cv=folds, lams=[1e-4], losses=["square"]).fit(X, Y)
        assert_allclose(found.fold_errors_[0, 0], wanted)

    def test_a_gram_matrix_has_no_task_loss(self):
        X = np.linspace(-2, 2, 24)[:, None]
        with pytest.raises(IncompatibleError, match="A task loss needs outputs"):
            self.chosen(output_kernel="precomputed", task_loss=lambda Y, P: np.zeros(len(Y))).fit(X, X @ X.T)

    def test_checkpoint_of_another_task_loss(self, labels, tmp_path):
        X, Y, _ = labels
        settings = {"output_kernel": Linear(), "decoder": "threshold", "checkpoint": tmp_path / "errors.npz"}
        self.chosen(**settings).fit(X, Y)
        with pytest.raises(ValueError, match="belongs to other data or another grid"):
            self.chosen(task_loss=hamming_losses, **settings).fit(X, Y)

    def test_the_chosen_model(self, labels):
        X, Y, new = labels
        found = self.chosen().fit(X, Y)
        alone = model(found.best_loss_, lam=found.best_lam_, tol=1e-9).fit(X, Y)
        assert_allclose(found.decision_scores(new, Y), alone.decision_scores(new, Y), rtol=0, atol=1e-4)
        assert_array_equal(found.predict(new), alone.predict(new))
        assert_array_equal(found.predict(new, Y[:3]), alone.predict(new, Y[:3]))
        assert_array_equal(found.top_k(new, 2), alone.top_k(new, 2))
        assert found.score(X, Y) == pytest.approx(alone.score(X, Y))
        assert found.duality_gap_ <= 1e-9
        assert isinstance(found.best_estimator_, StructuredPredictor)

    def test_operator(self, labels):
        X, Y, new = labels
        found = self.chosen(lams=[LAM], losses=["square"], output_kernel="linear", operator="covariance").fit(X, Y)
        alone = model(output_kernel="linear", operator="covariance").fit(X, Y)
        assert_allclose(found.embed(new), alone.embed(new), rtol=0, atol=CLOSE)

    def test_gram_matrices(self, labels):
        X, Y, _ = labels
        direct = self.chosen().fit(X, Y)
        given = self.chosen(kernel="precomputed", output_kernel="precomputed")
        given.fit(gaussian(X, X, GAMMA_X), gaussian(Y, Y, GAMMA_Y))
        assert_allclose(given.cv_errors_, direct.cv_errors_, rtol=1e-4)

    def test_objects(self, rng):
        X = rng.standard_normal((12, 2))

        def differs(Y, decoded):
            return np.not_equal(Y, decoded).astype(float)

        found = self.chosen(output_kernel=jaccard, task_loss=differs).fit(X, WORDS)
        assert found.cv_errors_.shape == (2, 2)
        assert set(found.predict(X)) <= set(WORDS)

    def test_weights_of_zero(self, labels):
        X, Y, _ = labels
        folds = KFold(3)
        weights = np.ones(30)
        weights[[1, 12, 25]] = 0
        kept = np.flatnonzero(weights)
        found = self.chosen(losses=["square"], task_loss=hamming_losses).fit(X, Y, weights)
        place = np.full(30, -1)
        place[kept] = np.arange(27)
        cut = [(place[train][place[train] >= 0], place[test][place[test] >= 0]) for train, test in folds.split(X)]
        fewer = self.chosen(losses=["square"], task_loss=hamming_losses, cv=cut).fit(X[kept], Y[kept])
        assert_allclose(found.fold_errors_, fewer.fold_errors_, rtol=1e-9)

    def test_clone_and_pickle(self, labels):
        X, Y, new = labels
        found = clone(self.chosen(lams=[1e-2])).fit(X, Y)
        assert_array_equal(pickle.loads(pickle.dumps(found)).predict(new), found.predict(new))
        assert "output_kernel__gamma" in found.get_params()

    def test_torch(self, labels, torch):
        X, Y, _ = labels
        here = self.chosen(losses=["square"], task_loss=hamming_losses).fit(X, Y)
        there = self.chosen(losses=["square"], task_loss=hamming_losses).fit(torch.tensor(X), torch.tensor(Y))
        assert_allclose(there.cv_errors_, here.cv_errors_)

    def test_single_precision(self, labels):
        X, Y, new = labels
        single = self.chosen(tol=1e-6).fit(X.astype(np.float32), Y.astype(np.float32))
        assert_allclose(single.cv_errors_, self.chosen().fit(X, Y).cv_errors_, rtol=1e-3)
        assert single.predict(new.astype(np.float32)).shape == (5, 4)


class TestCentre:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_centred_linear_model_is_ridge_on_centred_outputs(self, labels, weighted):
        X, Y, new = labels
        counts = np.arange(1.0, 31.0) if weighted else np.ones(30)
        mean = np.average(Y, axis=0, weights=counts)
        found = model(output_kernel="linear", center=True).fit(X, Y, counts if weighted else None)
        plain = model(output_kernel="linear").fit(X, Y - mean, counts if weighted else None)
        assert_allclose(found.embed(new), plain.embed(new) + mean, rtol=0, atol=CLOSE)
        far = np.full((1, X.shape[1]), 1e6)  # where the kernel is zero, the mean is predicted
        assert_allclose(found.embed(far), mean[None, :], rtol=0, atol=CLOSE)

    def test_in_a_feature_space(self, labels):
        """With a Gaussian output kernel, far from all inputs the scores are distances to the mean of the images."""
        X, Y, _ = labels
        found = model(center=True).fit(X, Y)
        scores = found.decision_scores(np.full((1, X.shape[1]), 1e6), Y)
        K = gaussian(Y, Y, GAMMA_Y)
        assert_allclose(scores[0], 1 - 2 * K.mean(axis=1) + K.mean(), rtol=0, atol=1e-6)

    def test_selection(self, labels):
        """The error of a held-out fold is that of explicit refits around the mean of the whole sample."""
        X, Y, _ = labels
        folds = KFold(3)
        found = StructuredPredictorCV(
            Gaussian(GAMMA_X),
            lams=[1e-2],
            decoder="clamp",
            center=True,
            cv=folds,
            task_loss=lambda A, B: np.sum((A - B) ** 2, axis=1),
        ).fit(X, Y)
        mean, errors = Y.mean(axis=0), []
        for train, test in folds.split(X):
            part = StructuredPredictor(Gaussian(GAMMA_X), lam=1e-2).fit(X[train], Y[train] - mean)
            errors.append(np.mean(np.sum((np.clip(part.embed(X[test]) + mean, 0, 1) - Y[test]) ** 2, axis=1)))
        assert_allclose(found.fold_errors_[0, 0], errors, rtol=1e-6)

    @pytest.mark.parametrize("shift", [0.0, 5.0])
    def test_the_search_decides(self, labels, shift, tmp_path):
        """Whichever of both has the least held-out error, with its checkpoint; around 5 the means are needed."""
        X, Y, _ = labels
        outputs = Y - Y.mean(axis=0) + shift
        settings = {"kernel": Gaussian(GAMMA_X), "lams": [1e-2, 1.0], "decoder": "clamp"}
        both = {center: StructuredPredictorCV(center=center, **settings).fit(X, outputs) for center in (False, True)}
        wanted = min(both.values(), key=lambda model: model.cv_errors_.min())
        assert (wanted is both[True]) >= (shift > 0)
        for _ in range(2):
            found = StructuredPredictorCV(checkpoint=tmp_path / "errors.npz", **settings).fit(X, outputs)
            assert found.best_estimator_.center == wanted.best_estimator_.center
            assert_array_equal(found.cv_errors_, wanted.cv_errors_)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["errors-1.npz", "errors.npz"]


@pytest.mark.parametrize(
    "machine", [StructuredPredictor(), StructuredPredictorCV()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize(
    "labels",
    [np.array(["a", "b"] * 10), ["a", "b"] * 10, [["a"], ["a", "b"]] * 10, np.array([["a", "b"]] * 20)],
    ids=["strings", "list", "lists", "table"],
)
def test_labels_that_are_no_numbers_are_named_as_y(rng, machine, labels):
    with pytest.raises(ValueError, match=r"^y must be an array of numbers .* MultiLabelBinarizer, .* OneHotEncoder"):
        machine.fit(rng.standard_normal((20, 2)), labels)


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        (np.zeros((3, 5)), r"shape of the outputs, \('C', 2\)\. Got \(3, 5\)"),
        (np.zeros((3, 4)), r"Got \(3, 4\)"),  # as many numbers as six candidates
        (np.zeros((0, 2)), "Got an empty set"),
        ([], "Got an empty set"),
    ],
)
def test_candidates_of_a_search_are_checked(rng, candidates, said):
    X = rng.standard_normal((20, 2))
    with pytest.raises(ValueError, match=f"candidates must .*{said}"):
        StructuredPredictorCV("gaussian", lams=[1e-2]).fit(X, (X > 0).astype(int), candidates=candidates)
