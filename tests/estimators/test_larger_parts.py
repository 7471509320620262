"""Width and ridge of large samples, compared again on larger parts than those of the search."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from fenchel import FunctionalRegressorCV, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.data.content import contents
from fenchel.kernels import Gaussian, as_operator_kernel
from fenchel.losses import Square
from fenchel.model.memory import is_streamed
from fenchel.model.spec import Spec
from fenchel.model.spectrum import Spectrum
from fenchel.operators import error_in_single
from fenchel.resample.folds import whole_folds, whole_part
from fenchel.search import robustness
from fenchel.search.larger import _least, sizes
from fenchel.search.result import SearchResult

N = 240


@pytest.fixture(name="small")
def few(monkeypatch):
    """Searches on 50 samples, whose largest part has 120."""
    for room in ("search.search", "search.larger"):
        monkeypatch.setattr(f"fenchel.{room}.MOST_SEARCHED", 50)


@pytest.fixture(name="sample")
def data(rng):
    X = rng.uniform(-2, 2, (N, 2))
    return X, np.column_stack([np.sin(4 * X[:, 0]), X[:, 1] * X[:, 0]]) + 0.5 * rng.standard_normal((N, 2))


def test_sizes_of_the_parts():
    assert sizes(4000, 4000) == []
    assert sizes(10_000, 10_000) == [5000]
    assert sizes(60_000, 60_000) == [7500, 30_000]
    assert sizes(200_000, 1160) == [7615]  # with landmarks the last fit is cheaper


def test_parts_whose_matrix_cannot_be_stored_are_left_out(sample, small, monkeypatch):
    X, Y = sample
    monkeypatch.setattr("fenchel.search.larger.fits_in_single", lambda n, like: n < 100)
    model = OperatorKernelRegressorCV(losses=["square"]).fit(X, Y)
    assert not any(model.search_.get("held_out", [0]))


@pytest.mark.parametrize(("shift", "found"), [(0.2, 0.25), (-0.1, -0.125), (0.0, 0.0)])
def test_the_best_lam_is_the_vertex_of_a_parabola(shift, found):
    logs = np.array([-4.0, -3.5, -3.0])
    errors = 1 + (logs - (-3.5 + shift)) ** 2
    result = SearchResult([Square()], (10**logs).tolist(), errors[None], errors[None, :, None], errors[None])
    assert _least(result) == pytest.approx(10 ** (-3.5 + found))


def test_the_error_of_a_part_is_that_of_exact_fits(sample, small):
    """The part, its last fifth and the error that is told are those of a fit to tol at the ridge that is told."""
    X, Y = sample
    model = OperatorKernelRegressorCV(losses=["square"], scale=False).fit(X, Y)
    told = model.search_
    assert told["n_samples"][-1] == 120 and told["held_out"][-1] == 24
    part = whole_part(contents(Y, X), 120)
    train, test = whole_folds(contents(Y[part], X[part]), 5)[0]
    best, ridge = model.best_estimator_, N * model.best_lam_
    errors = []
    for factor in (10**-0.5, 1, 10**0.5):
        fit = clone(best).set_params(lam=factor * ridge / len(part))  # of folds lam is that of the part
        predicted = fit.fit(X[part][train], Y[part][train]).predict(X[part][test])
        errors.append(np.mean(np.sum((predicted - Y[part][test]) ** 2, axis=1)))
    assert told["error"][-1] == pytest.approx(errors[1], rel=0.03)  # gap 5e-3, centre of the part, and a parabola
    assert errors[1] < 1.01 * min(errors)


def test_the_order_of_rows_does_not_matter(sample, small, rng):
    X, Y = sample
    order = rng.permutation(N)
    one, other = OperatorKernelRegressorCV().fit(X, Y), OperatorKernelRegressorCV().fit(X[order], Y[order])
    assert one.best_lam_ == pytest.approx(other.best_lam_, rel=1e-9)
    assert repr(one.best_kernel_)[:60] == repr(other.best_kernel_)[:60]
    assert_allclose(one.predict(X[:20]), other.predict(X[:20]), rtol=0, atol=1e-3)


def test_given_grids_and_kernels(sample, small):
    """A grid of the user is kept; a kernel of the user keeps its width."""
    X, Y = sample
    given = OperatorKernelRegressorCV(lams=[1e-3, 1e-2]).fit(X, Y)
    assert given.best_lam_ in given.lams_ and "held_out" not in given.search_
    assert OperatorKernelRegressorCV(Gaussian(0.5)).fit(X, Y).best_kernel_.gamma == 0.5


def test_weights_groups_and_curves(sample, small, rng):
    X, Y = sample
    groups = np.repeat(np.arange(N // 4), 4)
    model = OperatorKernelRegressorCV(losses=["square"]).fit(X, Y, rng.uniform(0.5, 2, N), groups=groups)
    assert model.search_["held_out"][-1] % 4 == 0 and model.duality_gap_ <= 1e-6
    curves = FunctionalRegressorCV().fit(X, np.hstack([Y, Y[:, ::-1]]), grid=np.linspace(0, 1, 4))
    assert curves.search_["n_samples"][-1] == 120 and curves.duality_gap_ <= 1e-6


def test_a_ridge_below_the_round_off_of_float32_needs_a_stored_matrix(rng):
    """The estimate of passes alone would take conjugate gradients: a kernel on one input has few eigenvalues."""
    X, kernel = rng.uniform(-1, 1, (3000, 1)), Gaussian(1.0)
    noise = error_in_single(3000, 1.0) / 3000
    spec = Spec.of(OperatorKernelRegressor(), "square")

    def is_chosen(lam):
        spectrum = partial(Spectrum.of, kernel, X)
        return is_streamed(X, as_operator_kernel(kernel), replace(spec, lam=lam), 1, spectrum)

    found = [is_chosen(0.5 * noise), is_chosen(100 * noise)]
    assert found == [False, True]


def test_losses_are_compared_by_products_as_by_factorisations(rng, monkeypatch):
    """From about a thousand samples on, the folds of one lam share a matrix; their errors are those of exact solves."""
    X = rng.standard_normal((1200, 3))
    Y = np.sin(X) @ rng.standard_normal((3, 3)) + 0.3 * rng.standard_normal((1200, 3))
    measure, is_streamed, errors = robustness._held_out_error, robustness._is_streamed, list[tuple[float, float]]()

    def both(*given):
        monkeypatch.setattr(robustness, "_is_streamed", lambda *_: False)
        exact = measure(*given)
        monkeypatch.setattr(robustness, "_is_streamed", lambda *some: asked.append(is_streamed(*some)) or asked[-1])
        errors.append((measure(*given), exact))
        return exact

    asked = list[bool]()
    monkeypatch.setattr(robustness, "_held_out_error", both)
    monkeypatch.setattr(robustness, "_left_out_errors", lambda *_: np.zeros(1200))  # nothing is said without fits
    OperatorKernelRegressorCV(leaves=False).fit(X, Y)
    assert asked == [True, True]
    found, exact = np.transpose(errors)
    assert_allclose(found, exact, rtol=2e-3)
