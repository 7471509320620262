"""StructuredPredictorCV by the rank of the true output: held-out errors against refits by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

from fenchel import StructuredPredictor, StructuredPredictorCV
from fenchel.decoders import Candidates
from fenchel.kernels import Gaussian
from fenchel.losses import Huber, MaxMargin
from fenchel.metrics import f1_scores, label_scorer

KERNEL, OUTPUT_KERNEL, FOLDS = Gaussian(0.5), Gaussian(0.3), KFold(4)
LAMS, LOSSES = [1e-3, 1e-1], ["square", Huber(0.3)]


@pytest.fixture
def vectors(rng):
    X = rng.standard_normal((32, 3))
    return X, np.round(X @ rng.standard_normal((3, 2)) + rng.standard_normal((32, 2)), 1)


def search(scoring=None, **settings):
    defaults = {"kernel": KERNEL, "output_kernel": OUTPUT_KERNEL, "lams": LAMS, "losses": LOSSES, "center": False}
    return StructuredPredictorCV(**{**defaults, "cv": FOLDS, "tol": 1e-9, "scoring": scoring, **settings})


def place(model, x, candidates, truth):
    """Return how many distinct candidates other than the truth are at least as near."""
    candidates = np.unique(candidates, axis=0)
    distances = dict(zip(map(tuple, candidates), model.decision_scores(x[None], candidates)[0], strict=True))
    own = distances.pop(tuple(truth))
    return sum(value <= own for value in distances.values())


def by_hand(X, Y, sets, error, **settings):
    """Return the mean error of each fold by explicit refits; ``error`` is a function of rank and number."""
    found = []
    for train, test in FOLDS.split(X):
        model = StructuredPredictor(KERNEL, OUTPUT_KERNEL, tol=1e-9, **settings).fit(X[train], Y[train])
        found.append(np.mean([error(place(model, X[i], sets[i], Y[i]), len(sets[i])) for i in test]))
    return found


ERRORS = {
    "rank": lambda rank, size: rank / (size - 1),
    "reciprocal_rank": lambda rank, size: 1 - 1 / (1 + rank),
    "top_1": lambda rank, size: rank >= 1,
    "top_3": lambda rank, size: rank >= 3,
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_set_for_each_sample(vectors, rng, name):
    X, Y = vectors
    sets = [np.vstack([rng.standard_normal((k % 5 + 1, 2)), Y[k : k + 1]]) for k in range(len(Y))]
    found = search(name).fit(X, Y, candidates=sets)
    for i, loss in enumerate(LOSSES):
        for j, lam in enumerate(LAMS):
            assert_allclose(found.fold_errors_[i, j], by_hand(X, Y, sets, ERRORS[name], loss=loss, lam=lam))
    i, j = np.unravel_index(np.argmin(found.cv_errors_), (2, 2))
    assert (found.best_loss_ == LOSSES[i] or i == 0) and found.best_lam_ == LAMS[j]


def test_ranks_are_the_default_with_candidates(vectors, rng):
    X, Y = vectors
    sets = [np.vstack([Y[k : k + 1], rng.standard_normal((4, 2))]) for k in range(len(Y))]
    by_default, by_name = (search(scoring).fit(X, Y, candidates=sets) for scoring in (None, "rank"))
    assert_array_equal(by_default.fold_errors_, by_name.fold_errors_)
    assert np.any(by_default.fold_errors_ != search().fit(X, Y).fold_errors_)


@pytest.mark.parametrize("how", ["training outputs", "decoder", "fit"])
def test_one_set_for_all_samples(vectors, rng, how):
    """Training outputs count as candidates too; equal ones count once for the true output."""
    X, Y = vectors
    Y[5], Y[6] = Y[0], Y[1]
    more = np.empty((0, 2)) if how == "training outputs" else rng.standard_normal((7, 2))
    decoder = Candidates(more) if how == "decoder" else "training_set"
    found = search("reciprocal_rank", decoder=decoder, losses=["square"])
    found.fit(X, Y, candidates=more if how == "fit" else None)
    everyone = np.vstack([np.unique(Y, axis=0), more])
    wanted = by_hand(X, Y, [everyone] * len(Y), ERRORS["reciprocal_rank"], lam=LAMS[0])
    assert_allclose(found.fold_errors_[0, 0], wanted)


def test_a_candidate_given_twice_is_one_object(vectors, rng):
    X, Y = vectors
    sets = [np.vstack([Y[k], rng.standard_normal(2), Y[k]]) for k in range(len(Y))]
    found = search("top_1", losses=["square"]).fit(X, Y, candidates=sets)
    assert_allclose(found.fold_errors_[0, 0], by_hand(X, Y, sets, ERRORS["top_1"], lam=LAMS[0]))
    assert found.cv_errors_.max() < 1


def test_other_kinds_of_outputs(vectors, rng):
    """A Gram matrix, its own candidates as a pair with norms, and objects with a kernel give the same ranks."""
    X, Y = vectors
    direct = search("rank").fit(X, Y)
    K = OUTPUT_KERNEL(Y)
    gram = search("rank", output_kernel="precomputed")
    assert_allclose(gram.fit(X, K).fold_errors_, direct.fold_errors_)
    new = rng.standard_normal((5, 2))
    given = gram.fit(X, K, candidates=(OUTPUT_KERNEL(new, Y), np.ones(5)))
    assert_allclose(given.fold_errors_, search("rank").fit(X, Y, candidates=new).fold_errors_)
    pairs = [(np.vstack([K[k], row]), np.ones(2)) for k, row in enumerate(OUTPUT_KERNEL(new[:1], Y).repeat(len(Y), 0))]
    sets = [np.vstack([row, new[:1]]) for row in Y]
    each = gram.fit(X, K, candidates=pairs)
    assert_allclose(each.fold_errors_, search("rank").fit(X, Y, candidates=sets).fold_errors_)
    names = [f"{a} {b}" for a, b in Y]

    def kernel(A, B):
        rows = [np.array([[float(v) for v in name.split()] for name in part]) for part in (A, B)]
        return OUTPUT_KERNEL(*rows)

    objects = search("rank", output_kernel=kernel)
    assert_allclose(objects.fit(X, names).fold_errors_, direct.fold_errors_)
    listed = objects.fit(X, names, candidates=[[name, "0 0"] for name in names]).fold_errors_
    sets = [np.vstack([row, [0.0, 0.0]]) for row in Y]
    assert_allclose(listed, search("rank").fit(X, Y, candidates=sets).fold_errors_)


def test_weights_of_zero_torch_and_inner_products(vectors, rng, torch):
    X, Y = vectors
    sets = [np.vstack([rng.standard_normal((3, 2)), Y[k : k + 1]]) for k in range(len(Y))]
    weights = np.ones(len(Y))
    weights[[0, 9]] = 0
    kept = np.flatnonzero(weights)
    place_of = np.cumsum(weights).astype(int) - 1
    cut = [[place_of[part[weights[part] > 0]] for part in parts] for parts in FOLDS.split(X)]
    found = search("rank").fit(X, Y, weights, candidates=sets)
    fewer = search("rank", cv=cut).fit(X[kept], Y[kept], candidates=[sets[k] for k in kept])
    assert_allclose(found.fold_errors_, fewer.fold_errors_)
    tensors = search("rank").fit(torch.tensor(X), torch.tensor(Y), candidates=[torch.tensor(one) for one in sets])
    assert_allclose(tensors.fold_errors_, search("rank").fit(X, Y, candidates=sets).fold_errors_)
    margin = search("top_1", losses=[MaxMargin()], lams=[1e-2]).fit(X, Y, candidates=sets)
    wanted = by_hand(X, Y, sets, ERRORS["top_1"], loss=MaxMargin(), lam=1e-2)
    assert_allclose(margin.fold_errors_[0, 0], wanted)


def test_centring_is_decided_by_ranks(vectors, rng):
    """Whichever of both has the least error of ranks, also with a kernel that the search has chosen."""
    X, Y = vectors
    chosen = search("rank", kernel="auto", center=True).fit(X, Y).best_kernel_
    for kernel, given in ((KERNEL, KERNEL), (chosen, "auto")):
        both = {c: search("rank", kernel=kernel, center=c).fit(X, Y).cv_errors_.min() for c in (False, True)}
        found = search("rank", kernel=given, center="auto").fit(X, Y)
        assert found.cv_errors_.min() == pytest.approx(min(both.values()))
        assert both[found.best_estimator_.center] == pytest.approx(min(both.values()))


def test_output_kernels_are_compared_by_ranks(vectors):
    X, Y = vectors
    kernels = ["linear", Gaussian(1e4)]  # the second tells no two wrong outputs apart
    assert search("rank", output_kernel=kernels).fit(X, Y).best_output_kernel_ == "linear"


@pytest.mark.parametrize("name", ["f1", "hamming", "subset"])
def test_names_for_label_sets(vectors, name):
    X, Y = vectors
    Y = (Y > 0).astype(float)
    settings = {"output_kernel": "linear", "decoder": "threshold"}
    named = search(name, **settings).fit(X, Y)
    by_scorer = search(label_scorer(name), **settings).fit(X, Y)
    shift = 0.0 if name == "hamming" else 1.0  # scores are turned into losses
    assert_allclose(named.fold_errors_, shift + by_scorer.fold_errors_)
    if name == "f1":
        by_loss = search(task_loss=lambda A, B: 1 - f1_scores(A, B), **settings).fit(X, Y)
        assert_array_equal(named.fold_errors_, by_loss.fold_errors_)


def test_a_checkpoint_belongs_to_its_candidates(vectors, rng, tmp_path):
    X, Y = vectors
    sets = [np.vstack([rng.standard_normal((3, 2)), Y[k : k + 1]]) for k in range(len(Y))]
    model = search("rank", checkpoint=tmp_path / "errors.npz")
    errors = model.fit(X, Y, candidates=sets).cv_errors_
    assert_array_equal(model.fit(X, Y, candidates=sets).cv_errors_, errors)
    with pytest.raises(ValueError, match="belongs to other data or another grid"):
        model.fit(X, Y)


def test_messages(vectors):
    X, Y = vectors
    with pytest.raises(ValueError, match=r"The candidates of sample 0 do not contain its output\. Add it"):
        search().fit(X, Y, candidates=[Y[1:3]] * len(Y))
    with pytest.raises(ValueError, match=r"a list of one set for each of the 32 samples. Got a list of 1"):
        search().fit(X, Y, candidates=[Y])
    with pytest.raises(ValueError, match=r"to be ranked. Use scoring='rank', 'reciprocal_rank', 'top_1' \(or"):
        search("f1").fit(X, Y, candidates=Y)
    with pytest.raises(ValueError, match=r"'top_0' is not a valid scoring value.*also knows 'rank'.*'hamming', 'f1'"):
        search("top_0").fit(X, Y)
