"""Theorems of docs/calibration_of_surrogates.rst, recomputed: population minimisers by descent and by cvxpy.

At one input the outputs ``codes`` have probabilities p; the surrogate risk is sum_k p_k f(|codes_k - h|).
"""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from fenchel import StructuredPredictor
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.task_losses import Hamming
from tests.parts import named

SKETCH = np.array([0.449, 0.342, 0.02, 0.188]) / 0.999  # of the label sets 00, 01, 10, 11


def label_sets(d):
    return np.array(list(itertools.product([0.0, 1.0], repeat=d)))


def huber_slope(kappa):
    return lambda t: np.minimum(t, kappa)


def ridge_slope(epsilon):
    return lambda t: np.maximum(t - epsilon, 0.0)


def risk(loss, codes, p, h):
    return float(p @ loss.value(codes - h))


def gradient(slope, codes, p, h):
    norms = np.linalg.norm(codes - h, axis=1)
    return (p * slope(norms) / np.maximum(norms, 1e-300)) @ (h - codes)


def minimiser(loss, slope, codes, p):
    """Return a minimiser of the surrogate risk, by a quasi-Newton descent from the mean."""
    found = minimize(
        lambda h: risk(loss, codes, p, h),
        p @ codes,
        jac=lambda h: gradient(slope, codes, p, h),
        method="BFGS",
        options={"gtol": 1e-12, "maxiter": 2000},
    )
    return found.x


def excess(costs, p, decision):
    expected = costs @ p
    return expected[decision] - expected.min()


def hamming_excess(codes, p, h):
    wrong = (h > 0.5) != (p @ codes > 0.5)
    return np.sum(wrong * np.abs(1 - 2 * p @ codes)) / codes.shape[1]


@pytest.mark.parametrize(("loss", "slope"), [(Huber(0.4), huber_slope(0.4)), (EpsilonRidge(0.3), ridge_slope(0.3))])
def test_population_minimiser_against_cvxpy(loss, slope):
    """Also that it is the mean of tilted probabilities (Lemma 1), and that its decoding is their Bayes rule."""
    cvxpy = pytest.importorskip("cvxpy")
    codes = label_sets(2)
    h, free = cvxpy.Variable(2), cvxpy.Variable((4, 2))
    near = [cvxpy.sum_squares(c - h - u) / 2 for u, c in zip(free, codes, strict=True)]  # infimal convolutions
    far = [0.4 * cvxpy.norm(u) if isinstance(loss, Huber) else 0 for u in free]
    inside = [] if isinstance(loss, Huber) else [cvxpy.norm(u) <= 0.3 for u in free]
    total = sum(q * (a + b) for q, a, b in zip(SKETCH, near, far, strict=True))
    cvxpy.Problem(cvxpy.Minimize(total), inside).solve(
        solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    found = minimiser(loss, slope, codes, SKETCH)
    assert found == pytest.approx(h.value, abs=1e-5)
    norms = np.linalg.norm(codes - found, axis=1)
    tilted = SKETCH * slope(norms) / norms
    tilted /= tilted.sum()
    assert tilted @ codes == pytest.approx(found, abs=1e-8)
    bayes = int(np.argmin(Hamming().matrix(codes, codes) @ tilted))
    assert np.array_equal(codes[bayes], found > 0.5)


def test_diameter_changes_nothing():
    rng = np.random.default_rng(0)
    for _ in range(20):
        codes, p = rng.normal(size=(5, 3)), rng.dirichlet(np.ones(5))
        diameter = max(np.linalg.norm(a - b) for a in codes for b in codes)
        assert minimiser(Huber(diameter), huber_slope(diameter), codes, p) == pytest.approx(p @ codes, abs=1e-7)


@pytest.mark.parametrize(
    ("loss", "slope"),
    [
        (Huber(0.05), huber_slope(0.05)),
        (Huber(0.7), huber_slope(0.7)),
        (EpsilonRidge(0.69), ridge_slope(0.69)),
        (EpsilonSVR(0.5), lambda t: (t > 0.5) * 1.0),
    ],
    ids=named,
)
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_zero_one_orders_classes_as_their_probabilities(loss, slope, n_classes):
    """Theorem 4: at a tie of two classes the risk decreases towards the more probable one, so no minimiser has ties."""
    rng, codes = np.random.default_rng(n_classes), np.eye(n_classes)
    for _ in range(15):
        p = rng.dirichlet(np.ones(n_classes))
        j, k = np.argsort(-p)[:2]
        if p[j] - p[k] < 0.02:
            continue
        for h in rng.dirichlet(np.ones(n_classes), 5):
            h[[j, k]] = (h[j] + h[k]) / 2
            assert risk(loss, codes, p, h + 1e-5 * (codes[j] - codes[k])) < risk(loss, codes, p, h)
        if loss.curvature:  # smooth, so that the descent converges
            assert np.argmax(minimiser(loss, slope, codes, p)) == j


@pytest.mark.parametrize(("n_classes", "radius"), [(2, np.sqrt(1 / 2)), (3, np.sqrt(2 / 3)), (5, np.sqrt(4 / 5))])
def test_insensitive_zone_up_to_the_circumradius(n_classes, radius):
    rng, codes = np.random.default_rng(0), np.eye(n_classes)
    p = np.sort(rng.dirichlet(np.ones(n_classes)))[::-1]
    inside = minimiser(EpsilonRidge(0.98 * radius), ridge_slope(0.98 * radius), codes, p)
    assert np.all(np.diff(inside) < 0)
    assert risk(EpsilonRidge(1.001 * radius), codes, p, np.full(n_classes, 1 / n_classes)) == 0  # a tie of all


@pytest.mark.parametrize("kappa", [0.1, 0.6, 1.0, 2.0])
def test_zero_one_comparison_inequality(kappa):
    """Theorem 5: the excess task risk of any prediction is bounded by its excess surrogate risk."""
    rng, codes, loss = np.random.default_rng(3), np.eye(4), Huber(kappa)
    factor, closest = 2 / min(1.0, kappa / np.sqrt(2)), 0.0
    for _ in range(60):
        p = rng.dirichlet(np.ones(4))
        least = risk(loss, codes, p, minimiser(loss, huber_slope(kappa), codes, p))
        for h in rng.dirichlet(np.ones(4), 20) + rng.choice([0, 0.3]) * rng.normal(size=(20, 4)):
            gap = p.max() - p[np.argmax(h)]
            bound = factor * np.sqrt(max(risk(loss, codes, p, h) - least, 0.0))
            assert gap <= bound + 1e-6
            closest = max(closest, gap / bound)
    assert closest > 0.1  # not vacuous


@pytest.mark.parametrize("d", [2, 3, 4])
def test_hamming_is_calibrated_from_the_distance_of_ties_to_label_sets(d):
    """Theorem 6, sufficiency: kappa = sqrt(d - 3/4), which is below the diameter sqrt(d)."""
    rng, codes, kappa = np.random.default_rng(d), label_sets(d), np.sqrt(d - 0.75)
    for _ in range(150):
        p = rng.dirichlet(np.full(len(codes), 0.2))
        assert hamming_excess(codes, p, minimiser(Huber(kappa), huber_slope(kappa), codes, p)) < 1e-6


def three_sets(d, slope, a):
    """Return the law of the proof of Theorem 6 on 0, e_1 and (1, ..., 1), and the sign of the mean of label 1."""
    near, far = np.sqrt(0.25 + (d - 1) * a**2), np.sqrt(0.25 + (d - 1) * (1 - a) ** 2)
    w_near, w_far = slope(near) / near, slope(far) / far
    share = w_near * a / (w_near * a + w_far * (1 - a))
    lead = share * (1 + w_far / w_near) / 2
    codes = np.zeros((3, d))
    codes[1, 0], codes[2] = 1.0, 1.0
    return codes, np.array([(1 - share + lead) / 2, (1 - share - lead) / 2, share])


@pytest.mark.parametrize("d", [2, 3, 6])
@pytest.mark.parametrize("part", [0.05, 0.4, 0.8, 0.95])
def test_hamming_is_not_calibrated_below(d, part):
    """Theorem 6, necessity, for Huber."""
    kappa = part * np.sqrt(d - 0.75)
    codes, p = three_sets(d, huber_slope(kappa), 0.02)
    h = minimiser(Huber(kappa), huber_slope(kappa), codes, p)
    assert p.min() > 0
    assert p @ codes[:, 0] > 0.5 + 1e-5
    assert h[0] < 0.5 - 1e-5
    assert hamming_excess(codes, p, h) == pytest.approx((2 * p @ codes[:, 0] - 1) / d)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.4])
def test_hamming_is_not_calibrated_for_any_insensitive_zone(epsilon):
    codes, p = three_sets(2, ridge_slope(epsilon), 0.1)
    h = minimiser(EpsilonRidge(epsilon), ridge_slope(epsilon), codes, p)
    assert p @ codes[:, 0] < 0.5 - 1e-5
    assert h[0] > 0.5 + 1e-5


@pytest.mark.parametrize(
    ("loss", "slope", "wanted", "label"),
    [
        (Square(), lambda t: t, 0.0, 1),
        (Huber(0.1), huber_slope(0.1), 0.0305, 0),
        (Huber(2.0), huber_slope(2.0), 0.0, 1),
    ],
    ids=named,
)
def test_counter_example_of_the_page_and_the_estimator_itself(loss, slope, wanted, label):
    """The four label sets at one input, by hand: E y = (.208, .5305), Hamming excess (2 (.5305) - 1) / 2 = .0305."""
    codes = label_sets(2)
    h = minimiser(loss, slope, codes, SKETCH)
    assert hamming_excess(codes, SKETCH, h) == pytest.approx(wanted, abs=1e-4)
    model = StructuredPredictor(Gaussian(1.0), loss=loss, lam=1e-7, decoder="threshold", tol=1e-9)
    model.fit(np.zeros((4, 1)), codes, sample_weight=SKETCH)
    assert model.embed(np.zeros((1, 1)))[0] == pytest.approx(h, abs=1e-3)
    assert model.predict(np.zeros((1, 1)))[0].tolist() == [0, label]


def test_hamming_with_independent_labels_is_calibrated_for_every_kappa():
    """Proposition 7."""
    rng, codes = np.random.default_rng(0), label_sets(3)
    for kappa in (0.05, 0.5, 1.0):
        for _ in range(20):
            means = rng.uniform(size=3)
            p = np.prod(np.where(codes == 1, means, 1 - means), axis=1)
            h = minimiser(Huber(kappa), huber_slope(kappa), codes, p)
            clear = np.abs(means - 0.5) > 0.01
            assert np.array_equal((h > 0.5)[clear], (means > 0.5)[clear])


@pytest.mark.parametrize("threshold", [0.6, 0.8])
def test_costs_of_two_classes(threshold):
    """Proposition 8: calibrated exactly from kappa = sqrt(2) max(c, 1 - c) on."""
    codes, limit = np.eye(2), np.sqrt(2) * threshold
    costs = np.array([[0.0, threshold], [1 - threshold, 0.0]])  # decision 0 if p_0 > threshold
    for kappa, calibrated in ((0.9 * limit, False), (limit, True)):
        wrong = []
        for first in np.linspace(threshold - 0.1, threshold + 0.1, 41):
            p = np.array([first, 1 - first])
            h = minimiser(Huber(kappa), huber_slope(kappa), codes, p)
            wrong.append(excess(costs, p, int(np.argmin(costs @ h))))
        assert (max(wrong) < 1e-6) == calibrated


@pytest.mark.parametrize(
    ("loss", "slope"),
    [(Huber(k), huber_slope(k)) for k in (0.2, 0.8)] + [(EpsilonRidge(0.3), ridge_slope(0.3))],
    ids=named,
)
def test_comparison_inequality_with_the_bias(loss, slope):
    """Theorem 9, for a random loss matrix and random codes; the constant from the codes' Gram matrix (Corollary 10)."""
    rng, closest = np.random.default_rng(1), 0.0
    for _ in range(40):
        codes, costs, p = rng.normal(size=(4, 4)), rng.uniform(size=(5, 4)), rng.dirichlet(np.ones(4))
        features = costs @ np.linalg.inv(codes).T  # <features_z, codes_k> = costs[z, k]
        inverse = np.linalg.inv(codes @ codes.T)
        factor = max(np.sqrt((a - b) @ inverse @ (a - b)) for a in costs for b in costs)
        assert factor == pytest.approx(max(np.linalg.norm(a - b) for a in features for b in features))
        least = risk(loss, codes, p, minimiser(loss, slope, codes, p))
        for h in np.vstack([p @ codes + rng.normal(size=(10, 4)), rng.dirichlet(np.ones(4), 10) @ codes]):
            norms = np.linalg.norm(codes - h, axis=1)
            distance = np.sqrt(2 * max(risk(loss, codes, p, h) - least, 0.0)) + p @ (norms - slope(norms))
            assert np.linalg.norm(h - p @ codes) <= distance + 1e-6
            lost = excess(costs, p, int(np.argmin(features @ h)))
            assert lost <= factor * distance + 1e-6
            closest = max(closest, lost / (factor * distance))
    assert closest > 0.05


def test_contamination():
    """Theorem 11: the square loss moves by share times distance, Huber by at most kappa share / (1 - share)."""
    rng, share = np.random.default_rng(5), 0.2
    codes, p = label_sets(2), rng.dirichlet(np.ones(4))
    radius = max(np.linalg.norm(codes - p @ codes, axis=1))
    kappa = 1.001 * radius * (1 - share) / (1 - 2 * share)
    law = np.append((1 - share) * p, share)
    moved = []
    for distance in (3.0, 30.0, 3000.0):
        dirty = np.vstack([codes, distance * np.ones(2)])
        square = minimiser(Square(), lambda t: t, dirty, law)
        huber = minimiser(Huber(kappa), huber_slope(kappa), dirty, law)
        away = np.linalg.norm(square - p @ codes)
        assert away == pytest.approx(share * np.linalg.norm(dirty[-1] - p @ codes), rel=1e-6)
        moved.append(np.linalg.norm(huber - p @ codes))
    assert max(moved) <= kappa * share / (1 - share) + 1e-8
    assert moved[-1] == pytest.approx(kappa * share / (1 - share), rel=1e-3)  # and the bound is reached


def test_comparison_without_bias_beyond_the_diameter():
    """The remark after Theorem 9: predictions anywhere, kappa above the diameter, the sharper of two roots."""
    rng, closest = np.random.default_rng(2), 0.0
    for _ in range(40):
        codes, p = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(4))
        margin = 0.3
        kappa = max(np.linalg.norm(a - b) for a in codes for b in codes) + margin
        loss, mean = Huber(kappa), p @ codes
        for h in mean + rng.choice([0.1, 1.0, 10.0], size=(20, 1)) * rng.normal(size=(20, 3)):
            surplus, s = risk(loss, codes, p, h) - risk(loss, codes, p, mean), np.linalg.norm(h - mean)
            assert surplus >= 0.5 * s * min(s, margin) * (1 - 1e-9)
            assert s <= (np.sqrt(2 * surplus) + 2 * surplus / margin) * (1 + 1e-9)
            closest = max(closest, 0.5 * s * min(s, margin) / surplus)
    assert closest > 0.9


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_distance_under_contamination(share):
    """Theorem 11, part 3, at any vector; and the kappa at which its bound is smallest."""
    rng, kappa = np.random.default_rng(7), 0.6
    for _ in range(20):
        codes, p, wrong = rng.normal(size=(4, 2)), rng.dirichlet(np.ones(4)), 20 * rng.normal(size=(2, 2))
        dirty, law = np.vstack([codes, wrong]), np.concatenate([(1 - share) * p, np.full(2, share / 2)])
        best = minimiser(Huber(kappa), huber_slope(kappa), dirty, law)
        least = risk(Huber(kappa), dirty, law, best)
        for h in np.vstack([best, p @ codes + rng.normal(size=(10, 2))]):
            over = np.maximum(np.linalg.norm(codes - h, axis=1) - kappa, 0.0)
            surplus = max(risk(Huber(kappa), dirty, law, h) - least, 0.0)
            bound = (np.sqrt(2 * surplus) + share * kappa) / (1 - share) + p @ over
            assert np.linalg.norm(h - p @ codes) <= bound + 1e-6
    norms = np.abs(rng.normal(size=4001))
    kappas = np.linspace(0.01, 4, 2000)
    bounds = [share * k / (1 - share) + np.mean(np.maximum(norms - k, 0)) for k in kappas]
    all_norms = np.append(norms, np.full(round(4001 * share / (1 - share)), 50.0))
    assert kappas[np.argmin(bounds)] == pytest.approx(np.quantile(all_norms, 1 - 2 * share), abs=5e-3)
