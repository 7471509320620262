"""Maps that are chosen for rollouts: states that follow each other, held-out rollouts and noise in the inputs."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel import FieldRegressor, OperatorKernelRegressor
from fenchel.estimators.field_maps import SECOND_LOOK, LocalPlan, Neighbourhood
from fenchel.estimators.field_rollouts import HeldOut, chains, pieces, successors
from fenchel.exceptions import DataWarning


class Scaled:
    """A map between fields that multiplies by a number."""

    def __init__(self, factor):
        self.factor = factor

    def predict(self, fields):
        return self.factor * fields


def fields(*values):
    """Return fields of two points and one channel, constant."""
    return np.array(values, dtype=float)[:, None, None] * np.ones((1, 2, 1))


def test_an_output_that_is_another_input_is_followed():
    X, Y = fields(1, 2, 0, 5, 7), fields(2, 3, -0.0, 1, np.nan)
    after = successors(X, Y)
    assert_array_equal(after, [1, -1, -1, 0, -1])  # the third is its own output, and follows nothing
    assert [chain.tolist() for chain in chains(after)] == [[2], [3, 0, 1], [4]]
    assert_array_equal(pieces(after), [2, 3, 0, 1, 4])  # five pairs are too few for longer pieces
    assert [chain.tolist() for chain in chains(np.array([1, 2, 0]))] == [[0, 1, 2]]  # a cycle
    assert pieces(np.full(3, -1)) is None


def test_pieces_are_runs_of_one_chain():
    labels = pieces(np.concatenate([np.arange(1, 30), [-1]]))
    assert_array_equal(labels, np.repeat(np.arange(10), 3))


def test_rollout_errors_by_hand():
    # The truth stays at 1 for two pairs that follow each other, at 2 for one that is not followed.
    X = fields(1, 1.0001, 2)
    Y = fields(1.0001, 1.0002, 2)
    held_out = HeldOut(X, Y, None, variance=1.0, steps=2)
    # Start 1: 1.1 against 1.0001, then 1.21 against 1.0002. Start 2: the second truth is the image of the first.
    firsts = (1.1 * X - Y)[:, 0, 0] ** 2
    seconds = np.array([1.21 - 1.0002, 1.21 * 1.0001 - 1.1 * 1.0002, 1.21 * 2 - 1.1 * 2]) ** 2
    assert_allclose(held_out.rollout_errors(Scaled(1.1)), (firsts + seconds) / 2, rtol=1e-12)
    assert_allclose(held_out.errors(Scaled(1.1)), firsts, rtol=1e-12)


def test_a_lost_rollout_stays_lost():
    X = fields(3, 1)
    held_out = HeldOut(X, fields(1, 1), None, variance=0.5, steps=4)
    assert_allclose(held_out.rollout_errors(Scaled(0.0)), [1, 1])  # two variances, though later images are equal
    assert_allclose(held_out.rollout_errors(Scaled(1e200)), [1, 1])
    half = HeldOut(X, np.where([[[False], [True]]], np.nan, fields(1, 1)), None, variance=100.0, steps=1)
    assert_allclose(half.rollout_errors(Scaled(1.0)), [2, 0])  # the mean over two points, of which one is not seen


def test_a_map_learned_with_noise_is_kernel_ridge_regression_of_noisy_patches():
    X = np.sin(np.random.default_rng(0).standard_normal((6, 16, 1)) + np.arange(16)[:, None] / 3)
    plan = LocalPlan(Neighbourhood(1, True), noise=0.3)
    found = plan.fit(X, X**2, None)
    turned = plan.fit(X[::-1], X[::-1] ** 2, None)
    order = np.argsort((X**2)[:, 0, 0])
    drawn = np.empty_like(X)
    drawn[order] = np.random.default_rng(0).standard_normal(X.shape)
    noisy = (X + 0.3 * np.std(X) * drawn)[..., 0]
    patches = np.stack([np.roll(noisy, step, axis=1) for step in (1, 0, -1)], axis=-1).reshape(-1, 3) / found.unit
    gram, n = found.estimator.kernel(patches), X.size
    values = (X**2).ravel()
    duals = np.linalg.solve(gram + n * found.estimator.lam * np.eye(n), values - values.mean())
    new = np.stack([np.roll(X[..., 0], step, axis=1) for step in (1, 0, -1)], axis=-1).reshape(-1, 3) / found.unit
    expected = values.mean() + found.estimator.kernel(new, patches) @ duals
    assert_allclose(found.predict(X).ravel(), expected, rtol=1e-6, atol=1e-6)
    assert_allclose(turned.predict(X), found.predict(X), rtol=1e-6, atol=1e-8)


def evolved(state, waves, growth, duration, n_steps):
    """Return solutions of u_t + u u_x = L u on a circle some time later, L being diagonal in frequencies."""
    step, spectrum = duration / n_steps, np.fft.rfft(state)
    factor, kept = np.exp(growth * step), waves <= 2 / 3 * waves[-1]
    for _ in range(n_steps):
        square = np.fft.rfft(np.fft.irfft(spectrum, state.shape[1]) ** 2)
        spectrum = factor * (spectrum - 0.5j * step * waves * kept * square)
    return np.fft.irfft(spectrum, state.shape[1])


@pytest.fixture(scope="module")
def paths():
    waves = np.fft.rfftfreq(16, 1 / 16)
    drawn = np.random.default_rng(0).standard_normal((2, 44, 9)) / (1 + waves**2) * (waves > 0)
    states = [np.fft.irfft(drawn[0] + 1j * drawn[1], 16)]
    states[0] /= np.std(states[0])
    for _ in range(20):
        states.append(evolved(states[-1], waves, -0.1 * waves**2, 0.2, 40))
    return np.stack(states, axis=1)


def test_noise_keeps_a_local_map_with_the_states():
    waves = 2 * np.pi * np.arange(33) / 22
    law = partial(evolved, waves=waves, growth=waves**2 - waves**4)  # the Kuramoto-Sivashinsky equation
    X = law(np.cumsum(np.random.default_rng(0).standard_normal((60, 64)), axis=1) % 1, duration=50.0, n_steps=5000)
    X, Y = X[..., None], law(X, duration=0.5, n_steps=50)[..., None]
    held_out = HeldOut(X[50:], Y[50:], None, float(np.var(Y)), steps=10)
    plain, noisy = (
        LocalPlan(Neighbourhood(8, True), SECOND_LOOK, noise=noise).fit(X[:50], Y[:50], None) for noise in (0.0, 0.01)
    )
    assert held_out.errors(plain).mean() < held_out.errors(noisy).mean() < 1e-3 * held_out.variance
    assert np.median(held_out.rollout_errors(plain)) > 0.5 * held_out.variance  # it amplifies what no state has
    assert np.median(held_out.rollout_errors(noisy)) < 0.01 * held_out.variance


def test_paths_are_found_and_rollouts_stay_with_them(paths):
    X, Y = paths[:40, :4].reshape(-1, 16), paths[:40, 1:5].reshape(-1, 16)
    model = FieldRegressor().fit(X, Y)
    assert model.steps_ == 4
    truth = paths[40:, 1:]
    errors = np.linalg.norm(model.rollout(paths[40:, 0], 20) - truth, axis=2) / np.linalg.norm(truth, axis=2)
    assert np.all(errors.mean(axis=0) < 0.3)  # one path is larger than those that were learned from


def test_pairs_that_do_not_follow_each_other_are_chosen_for_one_step(paths):
    whole = FieldRegressor(local=False)
    assert whole.fit(paths[:, 0], paths[:, 1]).steps_ == 1
    assert whole.fit(paths[:, 0], paths[:, 0]).steps_ == 1
    with pytest.warns(DataWarning, match="local=False there is one map, and nothing that steps=7 could choose"):
        assert whole.set_params(steps=7).fit(paths[:, 0], paths[:, 1]).steps_ == 7
    with pytest.warns(DataWarning, match="With an estimator there is one map"):
        FieldRegressor(OperatorKernelRegressor(), steps=2).fit(paths[:, 0], paths[:, 1])
    assert FieldRegressor(OperatorKernelRegressor()).fit(paths[:, 0], paths[:, 1, :4]).steps_ == 1


def test_steps_that_cannot_be(paths):
    with pytest.raises(ValueError, match="steps == 0, must be >= 1"):
        FieldRegressor(steps=0).fit(paths[:, 0], paths[:, 1])
    with pytest.raises(TypeError, match="steps must be an instance of int"):
        FieldRegressor(steps=2.5).fit(paths[:, 0], paths[:, 1])
    with pytest.raises(ValueError, match=r"steps=3, need outputs of the shape of the inputs. Got \(4,\) and \(16,\)"):
        FieldRegressor(steps=3).fit(paths[:, 0], paths[:, 1, :4])


def test_the_warning_says_how_to_choose_a_local_map_for_rollouts():
    X = np.random.default_rng(0).standard_normal((20, 8))
    model = FieldRegressor(OperatorKernelRegressor("linear", lam=1e-8)).fit(X, 1.5 * X)
    model.neighbourhood_ = Neighbourhood(1, True)
    with pytest.warns(DataWarning, match=r"FieldRegressor\(steps=5\) chooses the map by rollouts"):
        model.rollout(X[:2], 5)
    model.steps_ = 5
    with pytest.warns(DataWarning, match="Maps of whole functions, local=False, may be stable"):
        model.rollout(X[:2], 5)
