"""Gram operators against the full matrix, which the test builds by loops."""

import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel.exceptions import IncompatibleError
from fenchel.operators import (
    Anchored,
    Blocks,
    Dense,
    Directional,
    Operator,
    Sum,
    Thin,
    entries,
    is_thin,
    kronecker,
    scaled,
    width,
)
from fenchel.operators.thin import orthogonal_features
from tests.matrices import apply, close, flatten, full_matrix, psd

EPS = np.finfo(np.float64).eps
ROUNDING = 256 * EPS  # relative to the largest entry
NORM_SLACK = 1e-3  # norm() may exceed the true norm by this share
N, P = 5, 3


def separable(kind):
    rng = np.random.default_rng(1)
    K = psd(rng, N)
    operator = {"identity": None, "diagonal": np.array([1.5, 0.0, 0.4]), "matrix": psd(rng, P)}[kind]
    M = {"identity": np.eye(P), "diagonal": np.diag([1.5, 0.0, 0.4]), "matrix": operator}[kind]
    return kronecker(Dense(K), operator), flatten([[K[i, j] * M for j in range(N)] for i in range(N)])


def thin(kind):
    output = separable(kind)[0].terms[0][1].matrix
    features = np.random.default_rng(7).standard_normal((N, 2))
    M = np.eye(P) if output is None else output
    M = np.diag(M) if M.ndim == 1 else M
    K = features @ features.T
    return kronecker(Thin(features), output), flatten([[K[i, j] * M for j in range(N)] for i in range(N)])


def summed():
    first, one = separable("matrix")
    rng = np.random.default_rng(2)
    K, values = psd(rng, N, 2), rng.uniform(0, 2, P)
    other = flatten([[K[i, j] * np.diag(values) for j in range(N)] for i in range(N)])
    return Sum([first, kronecker(Dense(K), values)]), one + other


def stack():
    rng = np.random.default_rng(3)
    matrices, directions = np.stack([psd(rng, N) for _ in range(4)]), rng.standard_normal((4, P))
    blocks = np.zeros((N, N, P, P))
    for G, z in zip(matrices, directions, strict=True):
        for i in range(N):
            for j in range(N):
                blocks[i, j] += G[i, j] * np.outer(z, z)
    return Directional(matrices, directions), flatten(blocks)


def factors():
    rng = np.random.default_rng(4)
    C, directions = rng.standard_normal((N, 6)), rng.standard_normal((6, P))
    blocks = np.zeros((N, N, P, P))
    for d in range(6):
        for i in range(N):
            for j in range(N):
                blocks[i, j] += C[i, d] * C[j, d] * np.outer(directions[d], directions[d])
    return Anchored(C, C, directions), flatten(blocks)


def general():
    rng = np.random.default_rng(5)
    roots = rng.standard_normal((N, P, 7))
    blocks = np.array([[roots[i] @ roots[j].T for j in range(N)] for i in range(N)])
    return Blocks(blocks), flatten(blocks)


CASES = {
    "identity": lambda: separable("identity"),
    "diagonal": lambda: separable("diagonal"),
    "matrix": lambda: separable("matrix"),
    "thin": lambda: thin("identity"),
    "thin diagonal": lambda: thin("diagonal"),
    "thin matrix": lambda: thin("matrix"),
    "sum": summed,
    "stack": stack,
    "factors": factors,
    "blocks": general,
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]()


@pytest.fixture(name="A")
def array():
    return np.random.default_rng(9).standard_normal((N, P))


class TestOperator:
    def test_shape(self, case):
        assert case[0].shape == (N, N)
        assert case[0].n_outputs in (None, P)

    def test_few_methods(self):
        public = [name for name, value in vars(Operator).items() if callable(value) and not name.startswith("_")]
        assert len(public) <= 7

    def test_matmul(self, case, A):
        operator, full = case
        close(operator.matmul(A), apply(full, A))

    def test_matmul_of_several_problems(self, case, A):
        operator, full = case
        found = operator.matmul(np.stack([A, 2 * A[::-1]], axis=1))
        assert found.shape == (N, 2, P)
        close(found[:, 0], apply(full, A))
        close(found[:, 1], apply(full, 2 * A[::-1]))

    def test_full_matrix(self, case):
        close(full_matrix(case[0], P), case[1])

    def test_diag_bounds_the_diagonal_blocks(self, case):
        operator, full = case
        blocks = [full[i * P : (i + 1) * P, i * P : (i + 1) * P] for i in range(N)]
        true = np.array([np.linalg.norm(block, 2) for block in blocks])
        trace = np.array([np.trace(block) for block in blocks])
        bounds = operator.diag()
        assert bounds.shape == (N,)
        assert np.all(bounds >= true * (1 - ROUNDING))
        assert np.all(bounds <= trace * (1 + ROUNDING) + 2 * true)  # of use: never far beyond the trace

    def test_scaled(self, case, A):
        operator, full = case
        root = np.random.default_rng(6).uniform(0.3, 2, (N, 1))
        long = np.repeat(root[:, 0], P)
        wanted = long[:, None] * full * long[None, :]
        close(full_matrix(scaled(operator, root), P), wanted)
        close(operator.matmul(A), apply(full, A))  # the operator itself has not changed

    def test_norm(self, case):
        operator, full = case
        true = np.linalg.norm(full, 2)
        assert true * (1 - ROUNDING) <= operator.norm() <= true * (1 + NORM_SLACK)

    @pytest.mark.parametrize(
        ("rows", "columns"),
        [
            (np.array([3, 0]), None),
            (np.array([1, 4, 2]), np.array([0, 3])),
            (np.array([2, 2, 0]), None),
            (slice(None), slice(3, 4)),
            (slice(1, 4), np.array([4])),
        ],
    )
    def test_block(self, case, rows, columns):
        operator, full = case
        block = operator.block(rows, columns)
        whole = full.reshape(N, P, N, P)[rows][:, :, rows if columns is None else columns]
        assert block.shape == (whole.shape[0], whole.shape[2])
        B = np.random.default_rng(8).standard_normal((block.shape[1], P))
        close(block.matmul(B), np.einsum("iajb,jb->ia", whole, B), factor=4)

    @pytest.mark.parametrize("scale", [0.7, 30.0])
    @pytest.mark.parametrize("shift", [1.0, 0.2, np.linspace(0.2, 9.0, N)], ids=["1", "0.2", "rows"])
    def test_solver(self, case, A, scale, shift):
        operator, full = case
        matrix = np.diag(np.repeat(np.broadcast_to(shift, N), P)) + scale * full
        found = operator.solver(scale, shift)(A)
        close(matrix @ np.ravel(found), np.ravel(A), factor=np.linalg.cond(matrix))
        close(operator.matmul(A), apply(full, A))  # a factorisation in place must not eat the operator

    @pytest.mark.parametrize("rows", [np.array([4, 1, 2]), np.array([0])])
    def test_solver_of_a_block(self, case, A, rows):
        """The system of a Newton step: the samples that are active, each with a shift of its own."""
        operator, full = case
        part = full.reshape(N, P, N, P)[rows][:, :, rows].reshape(len(rows) * P, -1)
        shift = np.linspace(0.5, 2, len(rows))
        matrix = np.diag(np.repeat(shift, P)) + 3.0 * part
        found = operator.block(rows).solver(3.0, shift)(A[rows])
        close(np.ravel(found), np.linalg.solve(matrix, np.ravel(A[rows])), factor=np.linalg.cond(matrix))

    @pytest.mark.parametrize("f", [lambda v: 1 / (0.3 + 2.0 * v), lambda v: v, np.ones_like, np.tanh])
    def test_apply(self, case, A, f):
        operator, full = case
        values, vectors = np.linalg.eigh(full)
        close(operator.apply(f, A), apply((vectors * f(values)) @ vectors.T, A), factor=64)

    def test_apply_to_several_problems(self, case, A):
        operator, B = case[0], np.stack([A, 2 * A[::-1]], axis=1)
        shifts = np.array([1.0, 3.0])[None, :, None]
        together = operator.apply(lambda v: 1 / (shifts + v[:, None, :]), B)
        for k, shift in enumerate((1.0, 3.0)):
            close(together[:, k, :], operator.apply(lambda v, s=shift: 1 / (s + v), B[:, k, :]), factor=16)

    def test_left_out(self, case, A):
        """The blocks of the diagonal of f(K), inverted one by one."""
        operator, full = case
        whole = np.linalg.inv(np.eye(N * P) + full).reshape(N, P, N, P)
        found = operator.factorize().left_out(lambda v: 1 / (1 + v), A)
        for i in range(N):
            close(found[i], np.linalg.solve(whole[i, :, i, :], A[i]), factor=1e3)

    def test_images(self, case, A):
        """Predictions of the samples that are left out, by the ridge regression on the others."""
        operator, full = case
        train, test = np.array([0, 2, 3]), np.array([4, 1])
        whole = full.reshape(N, P, N, P)
        inner = whole[train][:, :, train].reshape(3 * P, -1)
        cross = whole[test][:, :, train].reshape(2 * P, -1)
        images = operator.block(train).factorize().images(operator.block(test, train), A[train])
        for scale in (0.5, 20.0):
            matrix = np.eye(3 * P) + scale * inner
            wanted = scale * cross @ np.linalg.solve(matrix, np.ravel(A[train]))
            found = images(lambda v, s=scale: s / (1 + s * v))
            close(np.ravel(found), wanted, factor=np.linalg.cond(matrix))

    def test_factorize_diagonalises(self, case):
        operator, full = case
        found = operator.factorize().values
        rounding = 16 * ROUNDING * np.linalg.norm(full, 2)
        rank = found.shape[0]
        values = np.sort(np.r_[np.zeros((N - rank) * P), np.ravel(np.broadcast_to(found, (rank, P)))])
        assert_allclose(values, np.linalg.eigvalsh(full), atol=rounding, rtol=0)
        assert np.min(values) >= 0
        assert operator.why_not_factorize is None

    def test_entries(self, case):
        operator, full = case
        rows, columns = np.array([0, 3, 3, 1]), np.array([2, 0, 1, 2])
        if operator.terms:
            flat = rows * P + columns
            close(entries(operator, rows, columns), full[np.ix_(flat, flat)])


def with_spectrum(values, seed=0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return (Q * values) @ Q.T


SPECTRA = {
    "rank one": np.r_[np.zeros(30), 3.0],
    "identity": np.ones(20),
    "one by one": np.array([0.25]),
    "tight cluster": np.linspace(0.9999, 1.0, 60),
    "wide cluster": np.linspace(0.99, 1.0, 150),
    "cluster below the largest": np.r_[np.ones(99), 1.0008],
    "two at the top": np.r_[np.linspace(0, 1, 100), 2.0, 2.0 - 1e-7],
    "decay": 0.9 ** np.arange(120.0),
    "large": 1e12 * 0.5 ** np.arange(40.0),
    "small": 1e-12 * 0.5 ** np.arange(40.0),
}


class TestNorm:
    @pytest.mark.parametrize("name", SPECTRA)
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_is_a_tight_upper_bound(self, name, dtype):
        true = SPECTRA[name].max()
        for seed in range(3):
            K = with_spectrum(SPECTRA[name], seed).astype(dtype)
            rounding = 64 * np.finfo(dtype).eps
            found = Dense(K).norm()
            assert isinstance(found, float)
            assert true * (1 - rounding) <= found <= true * (1 + NORM_SLACK + rounding), (seed, found / true - 1)

    def test_zero(self):
        assert Dense(np.zeros((4, 4))).norm() == 0.0
        assert Sum([kronecker(Dense(np.zeros((4, 4))), np.ones(2))] * 2).norm() == 0.0

    @pytest.mark.parametrize("name", SPECTRA)
    def test_of_a_general_operator(self, name):
        """The same spectra on n × p arrays, where the iteration runs on the whole operator."""
        K, M = with_spectrum(SPECTRA[name]), np.array([[2.0, 0.5], [0.5, 1.0]])
        true = SPECTRA[name].max() * np.linalg.norm(M, 2)
        half = kronecker(Dense(K / 2), M)
        found = Sum([half, half]).norm()
        assert true * (1 - ROUNDING) <= found <= true * (1 + NORM_SLACK)

    def test_same_bits_twice(self):
        K = with_spectrum(SPECTRA["decay"])
        assert Dense(K).norm() == Dense(K.copy()).norm()


class TestDense:
    def test_agrees_with_the_matrix(self, rng):
        K = psd(rng, 6, 3)
        operator, A = Dense(K), rng.standard_normal((6, 2))
        close(
            operator.matmul(A),
            np.array([[sum(K[i, k] * A[k, j] for k in range(6)) for j in range(2)] for i in range(6)]),
        )
        assert_array_equal(operator.diag(), [K[i, i] for i in range(6)])
        assert_array_equal(operator.block(slice(1, 4), slice(None)).matrix, K[1:4])
        basis = operator.factorize()
        vectors, values = basis.left, basis.left_values
        assert np.min(values) >= 0  # three are round-off
        close((vectors * values) @ vectors.T, K, factor=16)
        close(vectors.T @ vectors, np.eye(6), factor=16)

    @pytest.mark.parametrize(
        "layout", [np.ascontiguousarray, np.asfortranarray, lambda K: np.repeat(K, 2, axis=1)[:, ::2]]
    )
    def test_solver_takes_any_memory_layout(self, rng, layout):
        K, B = psd(rng, 6), rng.standard_normal((6, 2))
        given = layout(K)
        for shift in (0.5, np.linspace(0.5, 2, 6)):
            matrix = 3.0 * K + shift * np.eye(6)
            close(Dense(given).solver(3.0, shift)(B), np.linalg.solve(matrix, B), factor=np.linalg.cond(matrix))
        assert_array_equal(given, K)


class TestLimit:
    def test_large_sums_say_why_not(self):
        K = np.eye(1334)
        parts = [kronecker(Dense(K), np.ones(3)), kronecker(Dense(K), np.eye(3))]
        operator = Sum(parts)
        reason = operator.why_not_factorize
        assert reason.startswith("the eigendecomposition of this operator-valued kernel needs a 4002 × 4002 matrix")
        assert "Use a separable kernel, or solver='apgd'" in reason
        for call in (operator.factorize, lambda: operator.solver(1.0, 1.0), lambda: operator.apply(np.exp, K[:, :3])):
            with pytest.raises(IncompatibleError, match="needs a 4002 × 4002 matrix; the limit is 4000"):
                call()
        assert parts[1].why_not_factorize is None  # each side on its own

    def test_the_limit_itself_is_within_reach(self):
        assert Sum([kronecker(Dense(np.eye(2000)), np.ones(2))]).why_not_factorize is None
        assert Sum([kronecker(Dense(np.eye(2001)), np.ones(2))]).why_not_factorize is not None

    def test_a_sum_without_an_output_operator(self):
        with pytest.raises(ValueError, match="add the matrices themselves instead"):
            Sum([Dense(np.eye(2)), Dense(np.eye(2))])


class TestThin:
    """A kernel with fewer features than samples is never a matrix."""

    X = np.random.default_rng(11).standard_normal((30, 4))

    def test_width(self):
        assert is_thin(Thin(self.X)) and width(Thin(self.X)) == 4
        assert is_thin(kronecker(Thin(self.X), np.eye(3)))
        assert not is_thin(Thin(self.X[:3]))
        assert not is_thin(Dense(self.X @ self.X.T))

    def test_parts_and_scaling(self):
        operator, K = Thin(self.X), self.X @ self.X.T
        rows, columns = np.array([3, 1, 7]), np.array([0, 2, 5, 9])
        close(operator.block(rows, columns).matrix, K[np.ix_(rows, columns)])
        root = np.linspace(0.5, 2, 30)[:, None]
        close(scaled(operator, root).matrix, root * K * root.T)
        assert operator.norm() == pytest.approx(np.linalg.norm(K, 2), rel=NORM_SLACK)

    def test_solver_whose_shifts_are_far_apart(self):
        """Woodbury's formula is not allowed to lose the samples with a small shift."""
        shift, B = np.logspace(-3, 8, 30), np.random.default_rng(14).standard_normal((30, 2))
        found = Thin(self.X).solver(2.0, shift)(B)
        wanted = np.linalg.solve(np.diag(shift) + 2.0 * self.X @ self.X.T, B)
        assert_allclose(found, wanted, rtol=0, atol=1e-8 * np.max(np.abs(wanted)))

    def test_eigenbasis_of_features_that_are_nearly_dependent(self):
        """Singular values down to 1e-9 of the largest, whose squares the products of the features would lose."""
        U = np.linalg.qr(np.random.default_rng(12).standard_normal((30, 4)))[0]
        basis = Thin(U * np.array([1.0, 1e-3, 1e-6, 1e-9])).factorize()
        assert_allclose(basis.left_values, [1.0, 1e-6, 1e-12, 1e-18], rtol=1e-6)
        close(basis.left.T @ basis.left, np.eye(4), factor=4)

    def test_keeps_small_features_of_a_long_float32_sample(self, rng):
        """The round-off of a triangular factor of D rows does not grow with the sample."""
        scales = np.array([1.0, 1e-3], dtype=np.float32)
        features = rng.standard_normal((20_000, 2)).astype(np.float32) * scales
        basis = Thin(features).factorize()
        assert basis.left.shape == (20_000, 2)
        wanted = np.linalg.svd(features.astype(float), compute_uv=False) ** 2
        assert_allclose(basis.left_values, wanted, rtol=1e-3)


def test_orthogonal_features(rng):
    """Of a condition number beyond round-off: the same matrix, columns orthogonal to the last digit, and a basis."""
    left, right = (np.linalg.qr(rng.standard_normal((n, 30)))[0] for n in (400, 30))
    features = left @ (np.logspace(0, -9, 30)[:, None] * right.T)
    turned, values, turn = orthogonal_features(features)
    assert_allclose(turned @ turned.T, features @ features.T, rtol=0, atol=1e-12)
    assert_allclose(features @ turn, turned, rtol=0, atol=1e-12)
    units = turned / np.sqrt(values)
    assert 15 < len(values) < 30
    assert_allclose(units.T @ units, np.eye(len(values)), rtol=0, atol=1e-12)
    B = rng.standard_normal((400, 2))
    solve = Thin(turned, None, values).solver(1e6, 1.0)
    assert_allclose(solve(B), Thin(features).solver(1e6, 1.0)(B), rtol=0, atol=1e-5)  # 1e6 times what was left out
    out = Thin(turned, None, values).factorize().left_out(lambda v: 1 / (1 + v), B)
    assert_allclose(out, Thin(features).factorize().left_out(lambda v: 1 / (1 + v), B), rtol=1e-10)


@pytest.mark.parametrize("operator", [Dense(np.eye(4)), Thin(np.ones((4, 2)))], ids=lambda each: type(each).__name__)
def test_a_gram_operator_goes_with_its_last_name(operator):
    """No cycle holds its memory until the garbage collector comes."""
    fresh = Dense(operator.matrix) if isinstance(operator, Dense) else Thin(operator.left)
    assert fresh.terms[0][0] is fresh
    gone = weakref.ref(fresh)
    del fresh
    assert gone() is None
