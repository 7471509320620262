"""Fused products: digits of the halves, what the GPU kernels are given, and the check before a way is used.

The kernels themselves need a GPU; here their arithmetic is written out for torch on the CPU.
"""

import logging
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from fenchel import OperatorKernelRegressor, _check
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Scaled, Standardized, Sum, fused
from fenchel.operators import Streamed, products
from fenchel.operators.products import CheckedProduct, fused_products, kernel_product
from fenchel.solvers import Krylov, krylov
from tests.contracts.test_distance_terms import KERNELS

LOW = 2.0**11
RBF = [lambda r: np.exp(-(r**2)), lambda r: (1 + r) * np.exp(-r), lambda r: (1 + r + r**2 / 3) * np.exp(-r)]
PROFILES = [*RBF, lambda r: np.exp(-r), lambda r: np.exp(-r)]


def split(values):
    high, low = fused.halves(values)
    return high.astype(np.float64), low.astype(np.float64)


def times(left, right):
    """Return the product of two split matrices without that of their low parts."""
    (a, b), (c, d) = left, right
    return a @ c + (a @ d + b @ c) / LOW


class TestHalves:
    def test_they_have_22_bits(self, rng):
        values = rng.choice([-1, 1], 4000) * 2.0 ** rng.uniform(-14, 15.9, 4000)
        high, low = split(values)
        error = np.abs(high + low / LOW - values) / np.abs(values)
        assert error.max() <= 2.0**-22
        assert np.abs(high - values).max() / np.abs(values).max() > 1e-5  # one half alone is not enough

    def test_small_numbers_keep_their_place(self, rng):
        """Below the smallest normal number, 2^-14, the error is half a unit of the smallest float16 over 2048."""
        values = 2.0 ** rng.uniform(-40, -14, 4000)
        high, low = split(values)
        assert np.abs(high + low / LOW - values).max() <= 2.0**-36
        assert [part.tolist() for part in fused.halves(np.zeros(2))] == [[0, 0], [0, 0]]

    def test_error_of_a_product(self, rng):
        """Three roundings to 22 bits: of each factor, and the product of the low parts, which is dropped."""
        x, z = rng.standard_normal((50, 22)), rng.standard_normal((22, 60))
        error = np.abs(times(split(x), split(z)) - x @ z)
        assert np.all(error <= 3 * 2.0**-22 * (np.abs(x) @ np.abs(z)))


def arithmetic(name, call):
    """Return the kernel of this name, on the CPU; ``call`` collects the arguments."""

    def run(rows, columns, A, out, n, m, outputs, width, block, size, height, tile, chunk, profile, **options):
        call.append((name, str(rows.dtype), profile, width))
        assert n % height == m % tile == outputs % size == width % block % 16 == chunk % tile == 0 or name[3] == "d"
        assert out.shape == (n, outputs) and A.shape[-2:] == (m, outputs)
        given, taken = {"by_squares": ((n, width), (m, width)), "by_differences": ((width, n), (width, m))}.get(
            name, ((2, n, width), (2, m, width))
        )
        assert tuple(rows.shape) == given and tuple(columns.shape) == taken and rows.is_contiguous()
        rows, columns, A = (factor.numpy().astype(np.float64) for factor in (rows, columns, A))
        if name == "by_differences":
            r = cdist(rows.T, columns.T, "cityblock" if profile == 4 else "euclidean")
        else:
            minus = times(rows, columns.transpose(0, 2, 1)) if name == "by_halves" else rows @ columns.T
            if name == "by_halves" and profile == 3:
                np.fill_diagonal(minus, 0.0)
            r = np.sqrt(np.maximum(-minus, 0))
        values = PROFILES[profile](r)
        out += out.new_tensor(times(split(values), A) if name == "by_halves" else values @ A)

    return {(n, parts): run for n in range(200) for parts in range(20)}  # kernel[grid](...)


@pytest.fixture(name="calls")
def device(monkeypatch):
    """Fused products on the CPU; the list holds the kernels that were launched."""
    calls = []
    names = ("by_halves", "by_squares", "by_differences")
    fake = SimpleNamespace(**{name: arithmetic(name, calls) for name in names})
    monkeypatch.setitem(sys.modules, "fenchel.kernels._triton", fake)
    monkeypatch.setattr(fused, "_is_supported", lambda X, is_single: True)
    return calls


def points(rng, *shape):
    return pytest.importorskip("torch").as_tensor(rng.standard_normal(shape))


AUTO = Standardized(Sum(Scaled(Gaussian("median"), 0.7), Scaled(Linear(), 0.1)))


@pytest.mark.parametrize("kernel", [*KERNELS, AUTO, Standardized(Matern(2.0, 2.5))], ids=repr)
@pytest.mark.parametrize("sizes", [(1, None, 1, 1), (65, None, 20, 3), (70, 129, 15, 65), (3, 2, 63, 130)], ids=str)
def test_products_of_every_kernel(kernel, sizes, rng, calls):
    n, m, d, p = sizes
    X, Z, A = points(rng, n, d), None if m is None else points(rng, m, d), points(rng, m or n, p)
    A *= A.new_tensor(10.0 ** rng.uniform(-6, 6, p))  # columns of any size
    kernel = kernel.resolve(points(rng, 30, d))
    size, sums = kernel(X, Z).abs() @ A.abs(), A.abs().sum(0)
    # exponents up to 50 with an error of 2^-22 of them: a missing low half would cost 50 * 2^-11
    for is_single, digits, least in ((True, 50 * 2.0**-22, 2.0**-36), (False, 1e-13, 0.0)):
        ways = fused_products(kernel, X, Z, is_single)
        assert len(ways) == (3 if is_single else 1)
        for way in ways:
            assert bool(((way(A) - kernel(X, Z) @ A).abs() <= digits * size + least * sums).all())


def test_kernels_of_each_profile(rng, calls):
    """What is not smooth at zero, and points far apart, go by differences; a diagonal is known."""
    X, A = points(rng, 9, 3), points(rng, 9, 1)
    for kernel, there in (
        (Matern(1.0, 0.5), None),
        (Matern(1.0, 0.5), X),
        (Gaussian(200.0), None),
        (Laplacian(), None),
    ):
        fused_products(kernel, X, there, True)[0](A)
    assert [(name, profile) for name, _, profile, _ in calls] == [
        ("by_halves", 3),
        ("by_differences", 3),
        ("by_differences", 0),
        ("by_differences", 4),
    ]


class TestCheckedProduct:
    @pytest.fixture(autouse=True)
    def small(self, rng):
        self.X, self.A = rng.standard_normal((90, 2)), rng.standard_normal((90, 3))
        self.kernel = Gaussian(0.4)
        self.calls = []

    def way(self, error=0.0):
        def product(A):
            self.calls.append(error)
            return (1 + error) * (self.kernel(self.X) @ A)

        return product

    def test_the_first_that_agrees_is_used_and_checked_once(self, monkeypatch):
        product = CheckedProduct([self.way(2e-2), self.way(1e-5), self.way()], self.kernel, self.X, None, True)
        product(self.A)
        monkeypatch.setattr(products, "kernel_product", None)
        assert_allclose(product(self.A), (1 + 1e-5) * (self.kernel(self.X) @ self.A), rtol=1e-12)
        assert self.calls == [2e-2, 1e-5, 1e-5]

    def test_certificates_need_all_digits(self, caplog):
        with caplog.at_level(logging.INFO, "fenchel"):
            found = CheckedProduct([self.way(1e-5), self.way()], self.kernel, self.X, None, False)(self.A)
        assert_allclose(found, self.kernel(self.X) @ self.A, rtol=1e-13)
        assert "is off by" in caplog.text

    def test_not_a_number_is_not_a_product(self):
        product = CheckedProduct([self.way(np.nan), self.way()], self.kernel, self.X, None, True)
        assert np.all(np.isfinite(product(self.A)))

    def test_two_samples(self, rng):
        Z, A = rng.standard_normal((7, 2)), rng.standard_normal((7, 1))
        ways = [lambda A: self.kernel(self.X, Z) @ A, None]
        assert_allclose(CheckedProduct(ways, self.kernel, self.X, Z, False)(A), self.kernel(self.X, Z) @ A)

    def test_an_operator_whose_points_hide_a_duplicate_still_agrees(self, rng, calls):
        """Equal points beyond the diagonal: exp(-r) loses digits there, and the product still has enough of them."""
        X, A = points(rng, 200, 4), points(rng, 200, 2)
        X[1::2] = X[::2]
        kernel = Matern(1.0, 0.5)
        found = Streamed(kernel, X, is_single=True).matmul(A)
        assert float((found - kernel(X) @ A).abs().max()) < 1e-2
        assert_allclose(Streamed(kernel, X).matmul(A), kernel(X) @ A, atol=1e-12)


def test_points_on_a_device_are_checked_once(rng, monkeypatch):
    X, A = points(rng, 60, 2), points(rng, 60, 1)
    seen, check = [], _check.check_finite
    monkeypatch.setattr(_check, "check_finite", lambda array, name: seen.append(name) or check(array, name))
    monkeypatch.setattr(products, "is_on_cpu", lambda X: False)
    found = kernel_product(AUTO.resolve(X), X, None, A, 10)
    assert_allclose(found, AUTO(X) @ A, rtol=1e-12)
    before = len(seen)
    kernel_product(AUTO.resolve(X), X, None, A, 5)  # four times as many tiles
    kernel_product(AUTO.resolve(X), X, None, A, 10)
    assert (len(seen) - before) % 2 == 0 and len(seen) - before < 30
    X[7, 1] = float("nan")
    with pytest.raises(ValueError, match="X must be finite"):
        kernel_product(Gaussian(1.0), X, None, A, 10)


class TestKrylovOnADevice:
    @pytest.fixture(autouse=True)
    def on_device(self, monkeypatch):
        monkeypatch.setattr(krylov, "is_on_cpu", lambda X: False)

    def fitted(self, rng, **options):
        X = rng.uniform(-2, 2, (300, 2))
        y = np.sin(2 * X[:, 0]) * X[:, 1]
        y[::10] += 5
        return OperatorKernelRegressor(Gaussian(1.0), loss="huber", lam=1e-4, solver=Krylov(**options)).fit(X, y)

    def test_float32_is_certified_at_the_end_only(self, rng):
        model = self.fitted(rng, n_components=20, tiles="float32")
        assert model.duality_gap_ <= 1e-6 and model.certificate_ == "exact"
        single = len(model.history_)
        assert single < len(self.fitted(rng, n_components=20, tiles="float64").history_)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_a_fit_that_is_cut_short_has_a_certificate(self, rng):
        model = self.fitted(rng, n_components=20, tiles="float32", max_iter=1)
        assert model.n_iter_ == 1 and 1e-6 < model.duality_gap_ < 1
