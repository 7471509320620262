"""The order of samples by what they contain, against comparisons of whole rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, random_array
from sklearn.linear_model import Ridge

from fenchel import OperatorKernelRegressor
from fenchel.data.content import contents, ranks_of_groups, shuffled
from fenchel.datasets import as_curves
from fenchel.resample.folds import seeded, split_whole, whole_folds


def ranks_by_comparison(rows):
    """Return how many rows are smaller than each, NaN being the largest number."""
    keys = [tuple((bool(np.isnan(v)), 0.0 if np.isnan(v) else v) for v in row) for row in rows]
    return [sum(other < key for other in keys) for key in keys]


def test_rows_are_compared_as_words_are(rng):
    rows = rng.integers(0, 2, (60, 3)).astype(float)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    assert contents(rows).tolist() == ranks_by_comparison(rows)
    last = rng.standard_normal(60)
    assert contents(rows, last).tolist() == ranks_by_comparison(np.column_stack([rows, last]))


def samples(rng):
    rows = rng.integers(0, 3, (40, 4)).astype(float)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    words = np.array(["ab", (1, 2.5), None, np.arange(2000.0), "b"], dtype=object)
    pairs = [(np.sort(rng.random(3)), rng.standard_normal(3)) for _ in range(40)]
    return {
        "numbers": rows,
        "curves of channels": rows.reshape(40, 2, 2),
        "curves": as_curves(rows),
        "curves with points of their own": pairs,
        "sparse": random_array((40, 30), density=0.05, rng=0, format="csr"),
        "objects": words[rng.integers(0, 5, 40)],
        "list of objects": list(words[rng.integers(0, 5, 40)]),
        "booleans": rows > 1,
        "integers beyond 2^53": 2**60 + rng.integers(0, 5, 40),
        "dates": np.datetime64("2020-01-01", "s") + rng.integers(0, 9, 40),
    }


@pytest.mark.parametrize("kind", samples(np.random.default_rng(0)))
def test_ranks_move_with_the_samples(kind, rng):
    sample, order = samples(rng)[kind], rng.permutation(40)
    moved = [sample[i] for i in order] if isinstance(sample, list) else sample.take(order) if kind == "curves" else None
    ranks = contents(sample)
    assert len(np.unique(ranks)) > 1 and ranks.max() < 40
    assert_array_equal(contents(sample[order] if moved is None else moved), ranks[order])


def test_frames(rng):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    columns = {"a": rng.integers(9, 12, 40), "b": rng.choice(["x", "yy"], 40), "c": rng.standard_normal(40)}
    order = rng.permutation(40)
    for library in (pandas, polars):
        frame = library.DataFrame(columns)
        moved = library.DataFrame({name: column[order] for name, column in columns.items()})
        assert_array_equal(contents(moved), contents(frame)[order])
        assert sorted(contents(frame)) == list(range(40))
        smallest = int(np.argmin(contents(frame)))
        assert columns["a"][smallest] == 9  # as numbers: not the word "10"


def test_gram_matrices(rng):
    X, order = rng.standard_normal((30, 2)), rng.permutation(30)
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2))  # with a constant diagonal
    assert sorted(contents(grams=[K])) == list(range(30))
    assert_array_equal(contents(grams=[K[np.ix_(order, order)]]), contents(grams=[K])[order])
    assert_array_equal(contents(X[:, 0], grams=[K]), contents(X))


def test_explicit_zeros_of_a_sparse_array_are_zeros():
    plain = csr_array(np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]]))
    padded = csr_array((np.array([0.0, 1.0, 1.0, 2.0]), np.array([0, 1, 1, 0]), np.array([0, 2, 3, 4])), (3, 2))
    assert_array_equal(contents(padded), contents(plain))
    assert padded.nnz == 4


def test_sparse_rows_have_the_order_of_the_same_rows_with_zeros(rng):
    rows = rng.integers(-2, 3, (300, 5)) * (rng.random((300, 5)) < 0.4)
    for found in (rows.astype(float), rows > 0, np.where(rng.random(rows.shape) < 0.1, np.nan, rows)):
        assert_array_equal(contents(csr_array(found)), contents(found))
    assert_array_equal(contents(csr_array((4, 3)), np.arange(4)[::-1]), [3, 2, 1, 0])


@pytest.mark.parametrize("unit", [0.1, 3.0, 1e-200, 1 / 3])
def test_units_do_not_matter(unit, rng):
    X = np.column_stack([rng.integers(0, 4, 50), rng.standard_normal(50)])
    assert_array_equal(contents(X * [unit, 1 / unit]), contents(X))


def test_one_sample_and_none():
    assert contents(np.ones((1, 3))).tolist() == [0] and contents(np.ones((0, 3))).tolist() == []
    assert contents(np.ones((5, 3)), None).tolist() == [0] * 5


def test_groups_are_ranked_by_their_samples():
    ranks = np.array([5, 0, 1, 4, 2, 3])
    labels = np.array(["x", "b", "x", "a", "b", "a"])
    assert ranks_of_groups(ranks, labels).tolist() == [1, 0, 1, 2, 0, 2]


def test_groups_with_equal_first_samples():
    ranks = np.array([0, 0, 2, 3])
    assert ranks_of_groups(ranks, np.array([0, 1, 1, 0])).tolist() == [1, 0, 0, 1]


def test_shuffled_samples_have_the_same_random_order(rng):
    X, order = rng.standard_normal((40, 2)), rng.permutation(40)
    first, second = shuffled(contents(X), 3), shuffled(contents(X[order]), 3)
    assert_array_equal(X[first], X[order][second])
    assert sorted(first) == list(range(40)) and first.tolist() != np.argsort(X[:, 0]).tolist()


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_and_splits_hold_the_same_samples_in_any_order(grouped, rng):
    X, order = rng.standard_normal((40, 2)), rng.permutation(40)
    labels = rng.integers(0, 12, 40) if grouped else None
    moved = None if labels is None else (20 - labels)[order]
    for (_, test), (_, again) in zip(
        whole_folds(contents(X), 5, labels), whole_folds(contents(X[order]), 5, moved), strict=True
    ):
        assert_array_equal(X[test], X[order][again])
    first = split_whole(contents(X), labels, 4, seeded(0, Ridge(), X, X[:, :1]))
    second = split_whole(contents(X[order]), moved, 4, seeded(0, Ridge(), X[order], X[order, :1]))
    assert_array_equal(X[first[1]], X[order][second[1]])


def test_splits_of_a_seed_are_not_always_of_the_same_order_statistics(rng):
    """Each rank is set aside in about a quarter of 400 samples, although the seed is the same."""
    counts = np.zeros(20)
    for _ in range(400):
        X, y = rng.standard_normal((20, 1)), rng.standard_normal(20)
        _, rest = split_whole(contents(X, y), None, 5, seeded(0, Ridge(), X, y))
        counts[contents(X)[rest]] += 1
    assert np.max(np.abs(counts - 100)) < 5 * np.sqrt(400 * 0.25 * 0.75)


def test_a_sample_knows_which_of_its_parts_are_gram_matrices(rng):
    X, order = rng.integers(0, 2, (20, 1)).astype(float), rng.permutation(20)
    y = rng.integers(0, 2, 20).astype(float)
    K = np.minimum(1 + X @ X.T + np.outer(y, y), 2)

    def ranks(K, y):
        owner = OperatorKernelRegressor("precomputed")
        return owner._task().sample(owner, K, y, None).contents()

    assert_array_equal(ranks(K[np.ix_(order, order)], y[order]), ranks(K, y)[order])
