"""Every part of every room meets the public contract; a new class in a room's ``__all__`` is picked up by itself."""

from dataclasses import replace

import numpy as np
import pytest

from fenchel.decoders import Decoder
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, OutputOperator, ScalarKernel
from fenchel.losses import Loss
from fenchel.representations import Coordinates, Euclidean, Representation
from fenchel.solvers import APGD, Solver, Status
from fenchel.testing import (
    check_decoder,
    check_kernel,
    check_loss,
    check_output_operator,
    check_representation,
    check_solver,
    checks_of,
    parametrize_with_checks,
)
from tests.parts import APPROXIMATIONS, DECODERS, LOSSES, OUTPUT_OPERATORS, REPRESENTATIONS, SCALAR_KERNELS, SOLVERS


@parametrize_with_checks(
    [*LOSSES, *SCALAR_KERNELS, *APPROXIMATIONS, *OUTPUT_OPERATORS, *REPRESENTATIONS, *SOLVERS, *DECODERS]
)
def test_contract(part, check):
    check(part)


class HalfSquare(Loss):
    """The square loss, right: value, conjugate and prox are what the wrong losses below change, one at a time."""

    def value(self, residuals):
        return np.sum(residuals**2, axis=1) / 2

    def conjugate(self, duals):
        return np.sum(duals**2, axis=1) / 2

    def prox_conjugate(self, duals, step):
        return duals / (1 + step)


def wrong(base, **methods):
    """Return an instance of a class that differs from ``base`` in some methods."""
    return type("Wrong", (base,), methods)()


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (wrong(HalfSquare, value=lambda self, r: np.sum(r**2, axis=1) / 4), r"value \+ conjugate < <dual, residual>"),
        (wrong(HalfSquare, value=lambda self, r: np.sum(r**2, axis=1)), "the conjugate is not that of the value"),
        (wrong(HalfSquare, conjugate=lambda self, a: 0.7 * np.sum(a**2, axis=1)), "the conjugate is not that"),
        (wrong(HalfSquare, prox_conjugate=lambda self, a, step: a / (1 + 2 * step)), "the conjugate is not that"),
        (wrong(HalfSquare, curvature=1.0), "prox_remainder is not consistent with prox_conjugate and curvature=1.0"),
        (wrong(HalfSquare, saturation=lambda self, a: np.sum(a**2, axis=1)), r"saturation is not in \[0, 1\]"),
        (wrong(HalfSquare, conjugate=lambda self, a: np.sum(a**2, axis=1, dtype=float) / 2), "float32 becomes float64"),
    ],
)
def test_a_wrong_loss_is_found(loss, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(loss)


def test_a_wrong_prox_alone_is_found():
    """A prox that stays in the domain but does not minimise its objective, where value and conjugate are right."""

    def project(self, duals, step):
        return np.clip(duals, -0.5, 0.5)

    lazy = wrong(
        Loss,
        value=lambda self, r: np.sum(np.abs(r), axis=1),
        conjugate=lambda self, a: np.where(np.max(np.abs(a), axis=1) <= 1, 0.0, np.inf),
        prox_conjugate=project,
    )
    with pytest.raises(AssertionError, match=r"the conjugate is not that of the value|not a minimiser"):
        check_loss(lazy)


class Cosine(ScalarKernel):
    """The cosine of the difference of the first entries, which is positive; it forgets its diagonal."""

    def __call__(self, X, Z=None):
        Z = X if Z is None else Z
        return np.cos(X[:, :1] - Z[:, :1].T)

    def diag(self, X):
        return 1 + 0 * X[:, 0]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (wrong(Cosine, diag=lambda self, X: X[:, 0]), "diag"),
        (wrong(Cosine, __call__=lambda self, X, Z=None: -Cosine()(X, Z)), "eigenvalue -"),
        (wrong(Cosine, __call__=lambda self, X, Z=None: np.sin(X[:, :1] - X[:, :1].T)), "not symmetric"),
        (wrong(Cosine, __call__=lambda self, X, Z=None: Cosine()(X)), "a block"),
    ],
)
def test_a_wrong_kernel_is_found(kernel, message):
    check_kernel(Cosine())
    with pytest.raises(AssertionError, match=message):
        check_kernel(kernel)


def test_a_kernel_on_other_inputs():
    check_kernel(Gaussian(1.0), np.random.default_rng(3).standard_normal((9, 2)))


def test_a_wrong_operator_is_found():
    with pytest.raises(AssertionError, match="eigenvalue -"):
        check_output_operator(wrong(OutputOperator, matrix=lambda self, representation: -np.eye(3)))
    with pytest.raises(AssertionError, match=r"shape \(2,\) in 3 coordinates"):
        check_output_operator(wrong(OutputOperator, matrix=lambda self, representation: np.ones(2)))


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"encode": lambda self, Y: Coordinates(2 * Y), "decode": lambda self, c: c / 2}, "inner products"),
        ({"encode": lambda self, Y: Coordinates(+Y), "decode": lambda self, c: 2 * c}, "decode"),
    ],
)
def test_a_wrong_representation_is_found(methods, message):
    with pytest.raises(AssertionError, match=message):
        check_representation(wrong(Representation, **methods))


def test_other_outputs():
    check_representation(Euclidean(), np.random.default_rng(0).standard_normal((6, 2)))


class Boastful(APGD):
    """Says of a solution after two steps that it has converged."""

    def solve(self, problem, tol=1e-6, start=None, callback=None):
        solution = APGD(max_iter=2).solve(problem, tol)
        return replace(solution, status=Status.CONVERGED)


class Silent(APGD):
    """Refuses everything, and does not say what to use."""

    def why_not(self, problem):
        return "it is not in the mood."


@pytest.mark.parametrize(("solver", "message"), [(Silent(), "without advice"), (Boastful(), "the gap is")])
def test_a_wrong_solver_is_found(solver, message):
    assert isinstance(solver, Solver)
    with pytest.raises(AssertionError, match=message):
        check_solver(solver)


class Last(Decoder):
    """Gives the last training output for every prediction."""

    def fit(self, Y, representation):
        self.last_ = Y[-1]
        return super().fit(Y, representation)

    def decode(self, coordinates):
        return np.stack([self.last_] * len(coordinates))


def refuse(self, Y, representation):
    raise IncompatibleError("nothing suits")


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (wrong(Last, decode=lambda self, coordinates: self.last_), "objects of"),
        (wrong(Last, fit=refuse), "supports none of the spaces"),
    ],
)
def test_a_wrong_decoder_is_found(decoder, message):
    check_decoder(Last())
    Y = np.random.default_rng(0).random((4, 2))
    check_decoder(Last(), Y, Euclidean().fit(Y))
    with pytest.raises(AssertionError, match=message):
        check_decoder(decoder)


def test_parts_without_checks_and_of_another_family():
    with pytest.raises(TypeError, match=r"There are checks for instances of .*Loss.* Got 'huber' instead"):
        checks_of("huber")
    with pytest.raises(TypeError, match="A Loss is needed here"):
        check_loss(Gaussian())


class Forgetful(HalfSquare):
    """Changes its parameter in ``__init__``."""

    def __init__(self, scale=1):
        self.scale = float(scale) * 2


def test_init_only_assigns():
    with pytest.raises((AssertionError, RuntimeError), match="scale"):
        check_loss(Forgetful(3))
