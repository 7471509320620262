"""LossTrickPredictor against closed forms, other estimators, explicit refits and brute force."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold

from fenchel import LossTrickPredictor, StructuredPredictor, _check, path
from fenchel.decoders import Candidates, ScalarMinimum, TrainingSet
from fenchel.exceptions import IncompatibleError, NotFeasibleError
from fenchel.kernels import Gaussian, Linear, Polynomial
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, MaxMargin, Norm, Square
from fenchel.task_losses import (
    F1,
    Absolute,
    Cauchy,
    ChiSquare,
    Delta,
    Hamming,
    Hellinger,
    KernelInduced,
    LeastSquares,
    LossMatrix,
    RankLoss,
    TaskLoss,
    ZeroOne,
)

GAMMA, LAM = 0.5, 1e-2
CLOSE = 1e-10  # linear systems of condition 1e3
SURROGATES = [Huber(0.3), EpsilonRidge(0.2), EpsilonSVR(0.1), Norm(0.5), MaxMargin()]


def gaussian(A, B, gamma=GAMMA):
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(-1))


def alphas(X, new, lam=LAM, weights=None):
    """Return (K + n lam W^-1)^-1 k_x."""
    weights = np.ones(len(X)) if weights is None else weights
    return np.linalg.solve(gaussian(X, X) + weights.sum() * lam * np.diag(1 / weights), gaussian(X, new)).T


def model(task_loss="least_squares", **settings):
    return LossTrickPredictor(Gaussian(GAMMA), task_loss, **{"lam": LAM, **settings})


@pytest.fixture
def inputs(rng):
    return rng.standard_normal((30, 2)), rng.standard_normal((9, 2))


@pytest.fixture
def numbers(inputs, rng):
    return np.sin(2 * inputs[0][:, 0]) + 0.1 * rng.standard_normal(30)


@pytest.fixture
def labels(inputs):
    return np.array(["root", "stem", "leaf"])[np.digitize(inputs[0][:, 0], [-0.5, 0.5])]


class TestTheory:
    def test_weights(self, inputs, numbers):
        X, new = inputs
        for lam in (1e-4, 1e-2, 1.0):
            found = model(lam=lam).fit(X, numbers)
            assert_allclose(found.weights(new), alphas(X, new, lam), rtol=0, atol=CLOSE / lam)
            assert found.weights(new).shape == (9, 30)
            assert found.lam_ == lam
            assert found.duality_gap_ <= 1e-6

    def test_weights_know_no_outputs(self, inputs, numbers, labels):
        X, new = inputs
        wanted = model().fit(X, numbers).weights(new)
        assert_array_equal(model(ZeroOne()).fit(X, labels).weights(new), wanted)
        assert_array_equal(model(Absolute()).fit(X, numbers**2).weights(new), wanted)

    def test_least_squares_is_kernel_ridge(self, inputs, rng):
        X, new = inputs
        for Y in (rng.standard_normal(30), rng.standard_normal((30, 3))):
            ridge = KernelRidge(alpha=30 * LAM, kernel="rbf", gamma=GAMMA).fit(X, Y)
            found = model(LeastSquares("nearest")).fit(X, Y).predict(new)
            assert_allclose(found, ridge.predict(new), rtol=0, atol=CLOSE)

    def test_least_squares_minimises_the_weighted_loss(self, inputs, rng):
        """Alg. 1 on a fine grid of the interval of the outputs; weights of new points have sums of .1 to 1.1."""
        X, new = inputs
        Y = 5 + rng.standard_normal(30)
        line = np.linspace(Y.min(), Y.max(), 20_001)
        A = alphas(X, new)
        wanted = line[np.argmin(A @ (Y[:, None] - line) ** 2, axis=1)]
        found = model().fit(X, Y).predict(new)
        assert_allclose(found, wanted, rtol=0, atol=np.ptp(line) / 20_000)
        assert np.max(np.abs(found - A @ Y)) > 0.1

    def test_zero_one_is_the_least_squares_classifier(self, inputs, labels):
        """The argmax of kernel ridge regression on indicators of the classes."""
        X, new = inputs
        classes = np.unique(labels)
        ridge = KernelRidge(alpha=30 * LAM, kernel="rbf", gamma=GAMMA).fit(
            X, (labels[:, None] == classes).astype(float)
        )
        wanted = classes[np.argmax(ridge.predict(new), axis=1)]
        assert_array_equal(model("zero_one").fit(X, labels).predict(new), wanted)
        assert len(set(wanted)) == 3
        matrix = LossMatrix(1 - np.eye(3), classes=classes)
        assert_array_equal(model(matrix).fit(X, labels).predict(new), wanted)

    @pytest.mark.parametrize("kernel", [Gaussian(0.7), Polynomial(degree=2, gamma=1.0, coef0=1.0), Linear()], ids=repr)
    def test_kernel_induced_is_input_output_kernel_regression(self, inputs, rng, kernel):
        """Of a normalised kernel, and of one that is not with the rule of eq. 7."""
        X, new = inputs
        Y, C = rng.standard_normal((30, 3)), rng.standard_normal((15, 3))
        rule = "weighted_loss" if isinstance(kernel, Gaussian) else "nearest"
        trick = model(KernelInduced(kernel, rule), decoder=Candidates(C)).fit(X, Y)
        other = StructuredPredictor(Gaussian(GAMMA), kernel, "square", LAM, Candidates(C)).fit(X, Y)
        assert_array_equal(trick.predict(new), other.predict(new))
        distances = trick.decoder_.distances(trick.weights(new))
        assert_allclose(
            distances - distances[:, :1], other.decision_scores(new) - other.decision_scores(new)[:, :1], atol=1e-8
        )
        assert len(np.unique(trick.predict(new), axis=0)) > 1
        trick, other = model(KernelInduced(kernel, rule)).fit(X, Y), other.set_params(decoder="training_set").fit(X, Y)
        assert_array_equal(trick.predict(new), other.predict(new))

    def test_the_rule_of_eq_7_is_not_consistent(self):
        """Outputs 0 and 3 with weights .2 and .2: the weighted loss of 1.5 is least, .6 is nearest to the sum .6."""
        X, Y, candidates = np.zeros((2, 1)), np.array([0.0, 3.0]), Candidates(np.array([0.0, 0.6, 1.5, 3.0]))
        found = [
            model(KernelInduced("linear", rule), lam=1.5, decoder=candidates).fit(X, Y).predict(X[:1])
            for rule in ("weighted_loss", "nearest")
        ]
        assert_allclose(found, [[1.5], [0.6]], rtol=1e-15)

    def test_preimage(self, inputs, rng):
        X, new = inputs
        Y = rng.standard_normal((30, 2))
        trick = model(KernelInduced(Gaussian(0.7)), decoder="preimage").fit(X, Y)
        other = StructuredPredictor(Gaussian(GAMMA), Gaussian(0.7), "square", LAM, "preimage").fit(X, Y)
        assert_allclose(trick.predict(new), other.predict(new), atol=1e-4)

    def test_decisions_by_brute_force(self, inputs, rng):
        X, new = inputs
        Y = (rng.random((30, 4)) > 0.5).astype(float)
        A = alphas(X, new)
        found = model(F1()).fit(X, Y).predict(new)
        scores = np.array([[sum(a * F1()([z], [y])[0] for a, z in zip(row, Y, strict=True)) for y in Y] for row in A])
        assert_array_equal(found, Y[np.argmin(scores.round(10), axis=1)])
        votes = A @ Y > A @ (1 - Y)
        assert_array_equal(model("hamming").fit(X, Y).predict(new), votes)

    def test_dear_mistakes_are_avoided(self, inputs, rng):
        """The more it costs to miss an illness, the more are told to be ill."""
        X, _ = inputs
        y = np.where(X[:, 0] + rng.standard_normal(30) > 0.5, "ill", "well")
        counts = []
        for cost in (0.1, 1.0, 10.0, 1000.0):
            loss = LossMatrix([[0.0, cost], [1.0, 0.0]], classes=["well", "ill"])
            counts.append(int(np.sum(model(loss, lam=0.1).fit(X, y).predict(X) == "ill")))
        assert counts == sorted(counts)
        assert counts[0] < counts[2]
        equal = LossMatrix([[0.0, 1.0], [1.0, 0.0]], classes=["well", "ill"])
        assert_array_equal(model(equal).fit(X, y).predict(X), model("zero_one").fit(X, y).predict(X))

    def test_an_extra_decision(self, inputs, labels):
        X, new = inputs
        costs = np.vstack([1 - np.eye(3), np.full(3, 0.2)])
        names = ["leaf", "root", "stem"]
        found = model(LossMatrix(costs, classes=names, decisions=[*names, "unsure"])).fit(X, labels)
        shares = np.stack([alphas(X, new) @ (labels == name) for name in names], axis=1)
        losses = np.column_stack([shares.sum(axis=1)[:, None] - shares, 0.2 * shares.sum(axis=1)])
        assert_array_equal(found.predict(new), np.array([*names, "unsure"])[np.argmin(losses, axis=1)])
        assert "unsure" in found.predict(new)


class TestSurrogates:
    @pytest.mark.parametrize("output_kernel", [Gaussian(0.7), Linear()], ids=repr)
    @pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_weights_make_the_model(self, inputs, numbers, surrogate, output_kernel, weighted):
        """In the feature space, whatever the rank of the Gram matrix of the outputs."""
        X, new = inputs
        counts = np.arange(30) % 3 + 0.5 if weighted else None
        trick = model("absolute", surrogate=surrogate, output_kernel=output_kernel, tol=1e-10).fit(X, numbers, counts)
        other = StructuredPredictor(Gaussian(GAMMA), output_kernel, surrogate, LAM, tol=1e-10).fit(X, numbers, counts)
        made = trick.weights(new) @ other.representation_.targets_
        assert_allclose(made, other.embed(new), rtol=0, atol=1e-4)
        assert trick.duality_gap_ <= 1e-10
        assert trick.primal_objective_ == pytest.approx(other.primal_objective_, rel=1e-8)
        assert_allclose(trick.dual_coef_.shape[0], 30)

    @pytest.mark.parametrize("output_kernel", [None, Gaussian(0.7), Linear()], ids=repr)
    @pytest.mark.parametrize("surrogate", [Huber(1e4), EpsilonRidge(1e-9)], ids=repr)
    def test_the_square_loss_is_the_limit(self, inputs, numbers, surrogate, output_kernel):
        X, new = inputs
        trick = model("absolute", surrogate=surrogate, output_kernel=output_kernel, tol=1e-12).fit(X, numbers)
        assert_allclose(trick.weights(new), alphas(X, new), rtol=0, atol=1e-5)

    def test_square_by_instance_and_by_name(self, inputs, numbers):
        X, new = inputs
        wanted = model(surrogate="square").fit(X, numbers).weights(new)
        assert_array_equal(model(surrogate=Square()).fit(X, numbers).weights(new), wanted)

    def test_outliers_lose_weight(self, inputs, numbers):
        X, _ = inputs
        numbers[3] = 40.0
        square = model("absolute", output_kernel=Gaussian(0.1)).fit(X, numbers)
        huber = model("absolute", surrogate=Huber(0.2), output_kernel=Gaussian(0.1)).fit(X, numbers)
        assert huber.weights(X)[3, 3] < 0.5 * square.weights(X)[3, 3]
        assert int(np.argmax(huber.outlier_score_)) == 3
        ratios = np.diag(huber.weights(X)) / np.diag(square.weights(X))
        assert int(np.argmin(ratios)) == 3

    def test_huber_weights_are_those_of_a_weighted_ridge(self, inputs, numbers):
        """At the solution each sample counts min(1, kappa / |r|) times."""
        X, new = inputs
        kernel, kappa = Gaussian(0.7), 0.3
        trick = model("absolute", surrogate=Huber(kappa), output_kernel=kernel, tol=1e-11).fit(X, numbers)
        A, K = trick.weights(X), gaussian(numbers[:, None], numbers[:, None], 0.7)
        sizes = np.sqrt(np.sum((np.eye(30) - A) @ K * (np.eye(30) - A), axis=1))
        counts = np.minimum(1.0, kappa / sizes)
        assert counts.min() < 0.9
        wanted = np.linalg.solve(gaussian(X, X) + 30 * LAM * np.diag(1 / counts), gaussian(X, new)).T
        assert_allclose(trick.weights(new), wanted, atol=1e-4)

    def test_sparse_surrogates_leave_samples_out(self, inputs, numbers):
        X, new = inputs
        trick = model("absolute", surrogate=EpsilonRidge(0.4), output_kernel=Gaussian(0.7)).fit(X, numbers)
        assert 0 < len(trick.support_) < 30
        assert_array_equal(np.flatnonzero(np.any(trick.weights(new) != 0, axis=0)), trick.support_)
        nothing = model("absolute", surrogate=EpsilonRidge(50.0)).fit(X, numbers)
        assert_array_equal(nothing.weights(new), np.zeros((9, 30)))
        assert nothing.predict(new).shape == (9,)

    @pytest.mark.parametrize("surrogate", [Huber(0.3), EpsilonSVR(0.1)], ids=repr)
    def test_every_task_loss_has_a_kernel_of_outputs(self, inputs, rng, labels, surrogate):
        X, new = inputs
        cases = {
            "zero_one": labels,
            "hamming": (rng.random((30, 3)) > 0.5).astype(float),
            "f1": (rng.random((30, 3)) > 0.5).astype(float),
            "least_squares": rng.standard_normal((30, 2)),
            "kernel_induced": rng.standard_normal((30, 2)),
            "cauchy": rng.standard_normal(30),
            "chi_square": rng.dirichlet(np.ones(3), size=30),
            "rank_loss": rng.random((30, 4)),
        }
        for name, Y in cases.items():
            found = model(name, surrogate=surrogate).fit(X, Y).predict(new)
            assert len(found) == 9
            assert found.shape[1:] == Y.shape[1:]
        matrix = LossMatrix(1 - np.eye(3), classes=["leaf", "root", "stem"])
        assert set(model(matrix, surrogate=surrogate).fit(X, labels).predict(new)) <= {"leaf", "root", "stem"}

    def test_losses_of_single_values_have_none(self, inputs, numbers):
        with pytest.raises(IncompatibleError, match="needs point values, which KernelOutputs does not provide"):
            model("absolute", surrogate=Huber(0.3, p=1)).fit(inputs[0], numbers)

    def test_an_output_gram_matrix_is_not_taken(self, inputs, numbers):
        with pytest.raises(
            IncompatibleError, match="output kernel of the loss trick needs the outputs, not their Gram"
        ):
            model(surrogate="huber", output_kernel="precomputed").fit(inputs[0], numbers)


class TestSampleWeights:
    @pytest.mark.parametrize("surrogate", ["square", Huber(0.3), EpsilonSVR(0.1)], ids=repr)
    @pytest.mark.parametrize("task_loss", [LeastSquares(), Cauchy(0.2)], ids=repr)
    def test_repeated_samples(self, inputs, numbers, surrogate, task_loss):
        X, new = inputs
        counts = np.arange(30) % 4
        settings = {"surrogate": surrogate, "output_kernel": Gaussian(0.7), "tol": 1e-11}
        weighted = model(task_loss, **settings).fit(X, numbers, counts)
        repeated = model(task_loss, **settings).fit(np.repeat(X, counts, axis=0), np.repeat(numbers, counts))
        owner = np.repeat(np.arange(30), counts)
        wanted = np.stack([repeated.weights(new)[:, owner == i].sum(axis=1) for i in range(30)], axis=1)
        assert_allclose(weighted.weights(new), wanted, rtol=0, atol=1e-5)
        assert_allclose(weighted.predict(new), repeated.predict(new), rtol=0, atol=1e-4)

    @pytest.mark.parametrize("surrogate", ["square", Huber(0.3), MaxMargin()], ids=repr)
    @pytest.mark.parametrize("lams", [None, [1e-2]])
    def test_zero_weights(self, inputs, numbers, surrogate, lams):
        """The same as leaving those samples out; none of their outputs is predicted."""
        X, new = inputs
        counts = np.ones(30)
        counts[::3] = 0
        kept = counts > 0
        folds = [(None, np.arange(30)[kept][i::4]) for i in range(4)]
        alone = [(None, np.arange(20)[i::4]) for i in range(4)]
        settings = {"surrogate": surrogate, "output_kernel": Gaussian(0.7), "lams": lams, "decoder": "training_set"}
        found = model("absolute", cv=folds, **settings).fit(X, numbers, counts)
        wanted = model("absolute", cv=alone, **settings).fit(X[kept], numbers[kept])
        assert_allclose(found.weights(new)[:, kept], wanted.weights(new), atol=1e-8)
        assert_array_equal(found.weights(new)[:, ~kept], 0)
        assert_array_equal(found.predict(new), wanted.predict(new))
        assert found.dual_coef_.shape[0] == 30
        if lams is not None:
            assert_allclose(found.cv_errors_, wanted.cv_errors_, rtol=1e-6)

    def test_outputs_of_weight_zero_are_not_predicted(self):
        """The one in the middle is the best of the three, and was left out."""
        found = model(decoder="training_set").fit(np.zeros((3, 1)), [0.0, 0.9, 0.5], [1.0, 1.0, 0.0])
        assert found.predict(np.zeros((1, 1))) == [0.0]
        assert model(decoder="training_set").fit(np.zeros((3, 1)), [0.0, 0.9, 0.5]).predict(np.zeros((1, 1))) == [0.5]


CASES = {
    "least_squares": (LeastSquares(), "numbers"),
    "cauchy": (Cauchy(0.1), "numbers"),
    "absolute": (Absolute(), "numbers"),
    "zero_one": (ZeroOne(), "labels"),
    "costs": (LossMatrix([[0, 3, 1], [1, 0, 2], [5, 1, 0]], classes=["leaf", "root", "stem"]), "labels"),
    "hamming": (Hamming(), "sets"),
    "f1": (F1(), "sets"),
    "hellinger": (Hellinger(), "histograms"),
    "chi_square": (ChiSquare(), "histograms"),
    "rank": (RankLoss(), "ratings"),
    "kernel": (KernelInduced(Gaussian(0.7)), "numbers"),
}


class TestChoice:
    LAMS = (1e-4, 1e-2, 1.0)

    def outputs(self, kind, X, numbers, labels, rng):
        scores = np.hstack([np.sin(X), np.cos(X)]) + 0.2 * rng.standard_normal((len(X), 4))
        return {
            "numbers": lambda: numbers,
            "labels": lambda: labels,
            "sets": lambda: (scores > 0.3).astype(float),
            "histograms": lambda: np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True),
            "ratings": lambda: np.where(rng.random(scores.shape) > 0.2, scores.round(1), np.nan),
        }[kind]()

    def refits(self, template, X, Y, folds, lam):
        losses = []
        for train, test in folds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                one = clone(template).set_params(lam=lam, lams=None).fit(X[train], Y[train])
            losses.append(np.mean(one.task_loss_(Y[test], one.predict(X[test]))))
        return losses

    @pytest.mark.parametrize("name", CASES)
    def test_errors_are_those_of_refits(self, inputs, numbers, labels, rng, name):
        X, _ = inputs
        loss, kind = CASES[name]
        Y = self.outputs(kind, X, numbers, labels, rng)
        found = model(loss, lams=self.LAMS, cv=KFold(4, shuffle=True, random_state=0)).fit(X, Y)
        folds = list(KFold(4, shuffle=True, random_state=0).split(X))
        wanted = np.array([self.refits(found, X, Y, folds, lam) for lam in self.LAMS])
        assert_allclose(found.fold_errors_[0], wanted, rtol=1e-6, atol=1e-9)
        assert_allclose(found.cv_errors_, [wanted.mean(axis=1)], rtol=1e-6, atol=1e-9)
        assert found.lam_ == found.best_lam_ == self.LAMS[int(np.argmin(wanted.mean(axis=1)))]
        assert np.ptp(found.cv_errors_) > 0

    @pytest.mark.parametrize("surrogate", [Huber(0.3), EpsilonRidge(0.2)], ids=repr)
    @pytest.mark.parametrize("output_kernel", [Linear(), Gaussian(0.7)], ids=repr)
    @pytest.mark.parametrize("n_folds", [4, 25])
    def test_other_surrogates(self, inputs, numbers, surrogate, output_kernel, n_folds):
        """Few folds have problems of their own, many are solved side by side."""
        X, _ = inputs
        lams = (1.0, 1e-2)  # the second is the better one
        settings = {"surrogate": surrogate, "output_kernel": output_kernel, "tol": 1e-11}
        found = model(Cauchy(0.1), lams=lams, cv=KFold(n_folds), **settings).fit(X, numbers)
        folds = list(KFold(n_folds).split(X))
        wanted = [np.mean(self.refits(found, X, numbers, folds, lam)) for lam in lams]
        assert_allclose(found.cv_errors_[0], wanted, rtol=1e-4)
        assert np.all(found.cv_gaps_ <= 1e-11)
        assert found.lam_ == 1e-2
        plain = clone(found).set_params(lams=None, lam=found.lam_).fit(X, numbers)
        assert_allclose(found.weights(X), plain.weights(X), atol=1e-4)  # the root of the gap, over small duals

    @pytest.mark.parametrize("surrogate", ["square", Huber(0.3)], ids=repr)
    def test_sample_weights(self, inputs, numbers, surrogate):
        X, _ = inputs
        counts = np.random.default_rng(5).integers(1, 4, size=30).astype(float)
        settings = {"surrogate": surrogate, "output_kernel": Gaussian(0.7), "tol": 1e-10}
        found = model("absolute", lams=self.LAMS[1:], cv=KFold(3), **settings).fit(X, numbers, counts)
        for lam, errors in zip(self.LAMS[1:], found.fold_errors_[0], strict=True):
            for (train, test), error in zip(KFold(3).split(X), errors, strict=True):
                one = model("absolute", **{**settings, "lam": lam}).fit(X[train], numbers[train], counts[train])
                own = np.abs(numbers[test] - one.predict(X[test]))
                assert error == pytest.approx(np.average(own, weights=counts[test]), rel=1e-5)

    def test_leave_one_out(self, inputs, numbers):
        X, _ = inputs
        found = model("absolute", lams=self.LAMS, cv="loo").fit(X, numbers)
        folds = [(np.delete(np.arange(30), i), [i]) for i in range(30)]
        for lam, error in zip(self.LAMS, found.cv_errors_[0], strict=True):
            assert error == pytest.approx(np.mean(self.refits(found, X, numbers, folds, lam)), rel=1e-6)

    def test_held_out_outputs_are_not_candidates(self, inputs):
        """Outputs that are all different cannot be met by those of other samples."""
        X, _ = inputs
        found = model("zero_one", lams=[1e-8, 1.0]).fit(X, [f"name {i}" for i in range(30)])
        assert_array_equal(found.cv_errors_, [[1.0, 1.0]])

    def test_aggregates(self, inputs, numbers):
        X, _ = inputs
        numbers[4] = 1e3
        found = model("absolute", lams=[LAM], cv=KFold(5), aggregate="median").fit(X, numbers)
        losses = np.concatenate(
            [np.abs(numbers[b] - model("absolute").fit(X[a], numbers[a]).predict(X[b])) for a, b in KFold(5).split(X)]
        )
        assert found.cv_errors_[0, 0] == pytest.approx(np.median(losses))
        with pytest.raises(ValueError, match="'aggregate' parameter of LossTrickPredictor"):
            model(lams=[LAM], aggregate="most").fit(X, numbers)

    def test_the_chosen_model_is_that_of_a_plain_fit(self, inputs, numbers):
        X, new = inputs
        found = model("cauchy", lams=self.LAMS).fit(X, numbers)
        plain = model("cauchy", lam=found.lam_).fit(X, numbers)
        assert_allclose(found.weights(new), plain.weights(new), atol=1e-12)
        assert_allclose(found.predict(new), plain.predict(new), atol=1e-9)
        assert found.score(X, numbers) == pytest.approx(plain.score(X, numbers))
        assert found.get_params()["lam"] == LAM

    def test_nothing_stays_of_an_earlier_fit(self, inputs, numbers):
        pd = pytest.importorskip("pandas")
        X, new = inputs
        names = {
            "best_estimator_",
            "best_lam_",
            "best_loss_",
            "cv_errors_",
            "cv_gaps_",
            "fold_errors_",
            "lams_",
            "losses_",
        }
        found = model("absolute", lams=self.LAMS, surrogate=Huber(0.1)).fit(
            pd.DataFrame(X, columns=["a", "b"]), numbers
        )
        names |= {"outlier_score_", "feature_names_in_"}
        assert all(hasattr(found, name) for name in names)
        found.set_params(lams=None, surrogate="square").fit(X, numbers)
        plain = model("absolute").fit(X, numbers)
        assert not any(hasattr(found, name) for name in names)
        assert {name for name in vars(found) if name.endswith("_")} == {
            name for name in vars(plain) if name.endswith("_")
        }
        assert_array_equal(found.predict(new), plain.predict(new))
        found.set_params(lams=self.LAMS).fit(X, numbers)
        fresh = model("absolute", lams=self.LAMS).fit(X, numbers)
        assert {name for name in vars(found) if name.endswith("_")} == {
            name for name in vars(fresh) if name.endswith("_")
        }
        assert_array_equal(found.predict(new), fresh.predict(new))

    def test_grid_search(self, inputs, numbers):
        X, _ = inputs
        search = GridSearchCV(model(Cauchy(0.1)), {"task_loss__gamma": [0.1, 1.0], "lam": [1e-3, 1.0]}, cv=3).fit(
            X, numbers
        )
        assert search.best_params_["lam"] == 1e-3

    @pytest.mark.parametrize("bad", [[], [0.0], [-1.0], [float("nan")]])
    def test_bad_lams(self, inputs, numbers, bad):
        with pytest.raises((ValueError, TypeError), match="lams"):
            model(lams=bad).fit(inputs[0], numbers)


class TestInputs:
    @pytest.mark.parametrize("surrogate", ["square", "huber"])
    def test_memory_is_checked_before_a_matrix_of_outputs_is_made(self, surrogate, monkeypatch):
        n = 1500
        monkeypatch.setattr(_check, "_free_memory", lambda: 8 * n**2)
        tracemalloc.start()
        try:
            with pytest.raises(NotFeasibleError, match=f"A fit of {n} samples"):
                model(surrogate=surrogate).fit(np.ones((n, 1)), np.arange(n) / n)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 8 * n**2 / 2

    @pytest.mark.parametrize("surrogate", ["square", Huber(0.3)], ids=repr)
    @pytest.mark.parametrize("lams", [None, [1e-3, 1e-2]])
    def test_torch(self, torch, inputs, numbers, surrogate, lams):
        X, new = inputs
        settings = {"surrogate": surrogate, "output_kernel": Gaussian(0.7), "lams": lams, "tol": 1e-9}
        for name in ("least_squares", "cauchy"):
            wanted = model(name, **settings).fit(X, numbers)
            found = model(name, **settings).fit(torch.asarray(X), torch.asarray(numbers), torch.ones(30))
            assert isinstance(found.weights(torch.asarray(new)), torch.Tensor)
            assert_allclose(found.weights(torch.asarray(new)).numpy(), wanted.weights(new), atol=1e-5)
            predicted = found.predict(torch.asarray(new))
            assert isinstance(predicted, torch.Tensor)
            assert predicted.dtype == torch.float64
            assert_allclose(predicted.numpy(), wanted.predict(new), atol=1e-4)
            assert found.score(torch.asarray(X), torch.asarray(numbers)) == pytest.approx(
                wanted.score(X, numbers), rel=1e-3
            )

    def test_torch_labels_stay_integers(self, torch, inputs, labels):
        X, new = inputs
        y = np.unique(labels, return_inverse=True)[1]
        found = model("zero_one").fit(torch.asarray(X), torch.asarray(y)).predict(torch.asarray(new))
        assert found.dtype == torch.int64
        assert_array_equal(found.numpy(), model("zero_one").fit(X, y).predict(new))

    @pytest.mark.parametrize("lams", [None, [1e-2]])
    @pytest.mark.parametrize("surrogate", ["square", Huber(0.3)], ids=repr)
    def test_single_precision(self, inputs, numbers, surrogate, lams):
        X, new = (part.astype(np.float32) for part in inputs)
        y = numbers.astype(np.float32)
        settings = {"surrogate": surrogate, "output_kernel": Gaussian(0.7), "lams": lams}
        for name in ("least_squares", "cauchy", "absolute", "zero_one"):
            found = model(name, **settings).fit(X, y)
            assert found.weights(new).dtype == np.float32
            assert found.predict(new).dtype == np.float32
            double = model(name, **settings).fit(X.astype(float), y.astype(float))
            assert_allclose(found.weights(new), double.weights(new.astype(float)), atol=2e-3)

    def test_pandas(self, inputs, numbers, labels):
        pd = pytest.importorskip("pandas")
        X, new = inputs
        table = pd.DataFrame(X, columns=["a", "b"])
        found = model("zero_one").fit(table, pd.Series(labels, index=range(100, 130)))
        assert_array_equal(found.feature_names_in_, ["a", "b"])
        assert_array_equal(
            found.predict(pd.DataFrame(new, columns=["a", "b"])), model("zero_one").fit(X, labels).predict(new)
        )
        two = model().fit(table, pd.DataFrame({"u": numbers, "v": -numbers}))
        assert_allclose(two.predict(table)[:, 0], model().fit(X, numbers).predict(X))
        with pytest.raises(ValueError, match="feature names"):
            found.predict(pd.DataFrame(new, columns=["b", "a"]))

    @pytest.mark.parametrize("surrogate", ["square", EpsilonRidge(0.3)], ids=repr)
    @pytest.mark.parametrize("lams", [None, [1e-3, 1e-2]])
    def test_precomputed_kernel(self, inputs, numbers, surrogate, lams):
        X, new = inputs
        settings = {"surrogate": surrogate, "output_kernel": Gaussian(0.7), "lams": lams}
        wanted = model("cauchy", **settings).fit(X, numbers)
        found = LossTrickPredictor("precomputed", "cauchy", LAM, **settings).fit(gaussian(X, X), numbers)
        assert_allclose(found.weights(gaussian(new, X)), wanted.weights(new), atol=1e-6)
        assert found.__sklearn_tags__().input_tags.pairwise
        with pytest.raises(ValueError, match="must be a square Gram matrix"):
            LossTrickPredictor("precomputed").fit(gaussian(new, X), numbers[:9])

    def test_objects(self, inputs):
        X, new = inputs
        y = [("up", 1) if x > 0.5 else ("down", 2) if x < -0.5 else ("flat", 0) for x in X[:, 0]]
        found = model(lambda a, b: float(a[0] != b[0]) + abs(a[1] - b[1]), lams=[1e-3, 1e-1]).fit(X, y)
        predicted = found.predict(new)
        assert set(predicted) <= {("up", 1), ("down", 2), ("flat", 0)}
        assert found.score(X, y) > -0.3
        sets = [{"a"} if x > 0 else {"a", "b"} for x in X[:, 0]]
        found = model(lambda a, b: float(len(a ^ b))).fit(X, sets)
        assert list(found.predict(X[:5])) == sets[:5]

    def test_a_function_is_called_with_the_prediction_first(self, inputs, numbers):
        """Too high costs ten times more than too low: predictions are low."""
        X, _ = inputs

        def dear(y, z):
            return 10 * (y - z) if y > z else z - y

        low = model(dear).fit(X, numbers).predict(X)
        high = model(lambda y, z: dear(z, y)).fit(X, numbers).predict(X)
        assert np.mean(low) < np.mean(high)
        assert np.mean(low <= numbers) > 0.5
        assert isinstance(model(dear).fit(X, numbers).task_loss_, Delta)

    def test_a_matrix(self, inputs, labels):
        X, new = inputs
        y = np.unique(labels, return_inverse=True)[1]
        costs = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
        wanted = model("zero_one").fit(X, y).predict(new)
        for form in (costs, tuple(costs), np.array(costs)):
            assert_array_equal(model(form).fit(X, y).predict(new), wanted)

    def test_candidates(self, inputs, numbers):
        X, new = inputs
        C = np.linspace(-1, 1, 7)
        found = model("absolute").fit(X, numbers)
        scores = alphas(X, new) @ np.abs(numbers[:, None] - C)
        assert_array_equal(found.predict(new, C), C[np.argmin(scores, axis=1)])
        sets = [C[i : i + 3] if i < 5 else C[::-1] for i in range(9)]
        wanted = [
            one[np.argmin(row @ np.abs(numbers[:, None] - one))] for row, one in zip(alphas(X, new), sets, strict=True)
        ]
        assert_array_equal(found.predict(new, sets), wanted)
        waiting = model("absolute", decoder="candidates").fit(X, numbers)
        assert_array_equal(waiting.predict(new, C), found.predict(new, C))
        with pytest.raises(ValueError, match="There are no candidates"):
            waiting.predict(new)

    def test_decoders(self, inputs, numbers):
        X, new = inputs
        found = model("absolute", decoder="training_set").fit(X, numbers)
        assert set(found.predict(new)) <= set(numbers)
        assert isinstance(found.decoder_, TrainingSet)
        assert isinstance(model("absolute").fit(X, numbers).decoder_, ScalarMinimum)
        narrow = model("absolute", decoder=ScalarMinimum(0.0, 0.1)).fit(X, numbers).predict(new)
        assert np.all((narrow >= 0) & (narrow <= 0.1))

    def test_inputs_are_not_changed(self, inputs, numbers):
        X, new = (part.copy() for part in inputs)
        y = numbers.copy()
        model("cauchy", surrogate="huber", lams=[1e-3, 1e-2]).fit(X, y).predict(new)
        assert_array_equal(X, inputs[0])
        assert_array_equal(new, inputs[1])
        assert_array_equal(y, numbers)

    @pytest.mark.parametrize("lams", [None, [1e-3, 1e-2]])
    @pytest.mark.parametrize("surrogate", ["square", Huber(0.3)], ids=repr)
    def test_pickle(self, inputs, labels, surrogate, lams):
        X, new = inputs
        found = model("zero_one", surrogate=surrogate, lams=lams).fit(X, labels)
        again = pickle.loads(pickle.dumps(found))
        assert_array_equal(again.predict(new), found.predict(new))
        assert_array_equal(again.weights(new), found.weights(new))

    def test_clone_and_repeated_fits(self, inputs, numbers):
        X, new = inputs
        found = model(Cauchy(0.2), surrogate=Huber(0.3)).fit(X, numbers)
        again = clone(found)
        assert not hasattr(again, "task_loss_")
        assert_array_equal(again.fit(X, numbers).predict(new), found.predict(new))
        assert_array_equal(found.fit(X, numbers).predict(new), again.predict(new))

    def test_score(self, inputs, numbers):
        X, _ = inputs
        found = model("absolute").fit(X, numbers)
        assert found.score(X, numbers) == pytest.approx(-np.mean(np.abs(found.predict(X) - numbers)))


class TestBadInput:
    def test_outputs(self, inputs, numbers):
        X, _ = inputs
        cases = [
            ("least_squares", None, r"LossTrickPredictor requires y to be passed, but the target y is None"),
            ("least_squares", numbers[:5], r"X and y must have the same number of samples\. Got 30 and 5\."),
            ("absolute", ["a"] * 30, r"Absolute takes numeric values\. Got list of something else"),
            ("cauchy", np.full(30, np.nan), r"Cauchy takes finite outputs"),
            ("zero_one", np.full(30, np.nan), r"ZeroOne takes finite outputs"),
            ("hamming", numbers, r"Hamming takes 2-dimensional arrays"),
            ("hellinger", np.ones((30, 2)), r"Hellinger takes histograms that sum to 1\. Row 0 sums to 2"),
            (np.eye(2), np.full(30, 2), r"The classes of LossMatrix are \[0, 1\]\. Got 2"),
        ]
        for loss, y, message in cases:
            with pytest.raises(ValueError, match=message):
                model(loss).fit(X, y)

    def test_parts(self, inputs, numbers):
        X, _ = inputs
        cases = [
            ({"task_loss": "nothing"}, ValueError, r"Unknown task_loss 'nothing'\. Known names: 'absolute'"),
            ({"task_loss": 3.0}, TypeError, r"'task_loss' parameter must be a TaskLoss, .* or a matrix.* Got 3\.0"),
            ({"task_loss": Cauchy(-1.0)}, ValueError, r"'gamma' parameter of Cauchy"),
            ({"surrogate": "nothing"}, ValueError, r"Unknown surrogate 'nothing'"),
            ({"surrogate": 3.0}, TypeError, r"'surrogate' parameter must be a Loss instance"),
            ({"decoder": "nothing"}, ValueError, r"Unknown decoder 'nothing'"),
            ({"decoder": 3.0}, TypeError, r"'decoder' parameter must be a Decoder instance"),
            (
                {"decoder": ScalarMinimum(n_grid=0), "task_loss": "absolute"},
                ValueError,
                r"'n_grid' parameter of Scalar",
            ),
            ({"decoder": "simplex"}, IncompatibleError, r"Simplex is for .* of histograms\. Got LeastSquares\(\)"),
            ({"surrogate": "huber", "output_kernel": Gaussian(-1.0)}, ValueError, r"'gamma' parameter of Gaussian"),
            ({"lam": 0.0}, ValueError, r"'lam' parameter of LossTrickPredictor"),
            ({"tol": -1.0}, ValueError, r"'tol' parameter of LossTrickPredictor"),
            ({"cv": 1, "lams": [1.0]}, ValueError, r"'cv' parameter of LossTrickPredictor"),
            ({"cv": 31, "lams": [1.0]}, ValueError, r"cv=31 needs at least 31 samples"),
        ]
        for settings, error, message in cases:
            with pytest.raises(error, match=message):
                model(**settings).fit(X, numbers)

    def test_words_need_a_kernel_of_words(self, inputs, labels):
        with pytest.raises(ValueError, match=r"output_kernel"):
            model(lambda y, z: float(y != z), surrogate="huber").fit(inputs[0], labels)

    def test_not_fitted(self, inputs):
        for name in ("predict", "weights"):
            with pytest.raises(NotFittedError):
                getattr(model(), name)(inputs[1])
        failed = model("absolute")
        with pytest.raises(ValueError, match="takes numeric values"):
            failed.fit(inputs[0], ["a"] * 30)
        with pytest.raises(NotFittedError):
            failed.predict(inputs[1])

    def test_sample_weights(self, inputs, numbers):
        with pytest.raises(ValueError, match=r"sample_weight must have shape \(30,\)"):
            model().fit(inputs[0], numbers, np.ones(3))

    def test_new_inputs(self, inputs, numbers):
        with pytest.raises(ValueError, match="features"):
            model().fit(inputs[0], numbers).predict(np.ones((2, 3)))

    def test_no_grid(self, inputs, numbers):
        with pytest.raises(TypeError, match="LossTrickPredictor does not take a grid"):
            path(model(), inputs[0], numbers, [1.0], grid=np.ones(3))

    def test_lengths_of_a_score(self, inputs, numbers):
        with pytest.raises(ValueError, match="the same number of samples"):
            model().fit(inputs[0], numbers).score(inputs[0], numbers[:4])


def test_a_task_loss_is_an_instance_of_its_own(inputs, numbers):
    loss = Cauchy(0.2)
    found = model(loss).fit(inputs[0], numbers)
    assert found.task_loss_ is not loss
    assert found.task_loss is loss
    assert isinstance(found.task_loss_, TaskLoss)
