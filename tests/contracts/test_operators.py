"""What every output operator keeps, and its values in coordinates by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fenchel.datasets import Curves
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import (
    Covariance,
    Diagonal,
    Gaussian,
    Identity,
    IntegralOperator,
    Matrix,
    OutputOperator,
    as_operator,
    operators,
)
from fenchel.representations import Euclidean, GramFactor, Spline
from tests.parts import space

CLASSES = [value for value in (getattr(operators, name) for name in operators.__all__) if isinstance(value, type)]
EXAMPLES = [operator for cls in CLASSES for operator in cls.examples()]
ON_CURVES = [operator for operator in EXAMPLES if isinstance(operator, IntegralOperator)]
ON_VECTORS = [operator for operator in EXAMPLES if not isinstance(operator, IntegralOperator)]


class Rotated:
    """Outputs of dimension 3 in the coordinates of an orthonormal basis; it counts what it is asked."""

    def __init__(self, xp=np):
        basis = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
        self.xp, self.basis, self.asked = xp, xp.asarray(basis), []
        self.targets = xp.asarray(np.random.default_rng(1).normal(size=(20, 3)) @ basis)

    def congruence(self, matrix):
        self.asked.append("congruence")
        if tuple(matrix.shape) != (3, 3):
            raise ValueError(f"The operator must act on 3 outputs. Got shape {tuple(matrix.shape)} instead.")
        return self.basis.T @ self.xp.asarray(matrix) @ self.basis

    def congruence_diagonal(self, values):
        self.asked.append("congruence_diagonal")
        return self.xp.asarray(values)

    def covariance(self):
        self.asked.append("covariance")
        return self.targets.T @ self.targets / 20


def label(operator):
    return type(operator).__name__


every_operator = pytest.mark.parametrize("operator", ON_VECTORS, ids=label)
every_curve_operator = pytest.mark.parametrize("operator", ON_CURVES, ids=label)


def dense(matrix):
    if matrix is None:
        return np.eye(3)
    matrix = np.asarray(matrix)
    return np.diag(matrix) if matrix.ndim == 1 else matrix


def test_every_class_has_examples():
    assert {cls.__name__ for cls in CLASSES} >= {"Identity", "Matrix", "Diagonal", "Covariance", "IntegralOperator"}
    for cls in CLASSES:
        assert issubclass(cls, OutputOperator)
        assert cls.examples()
        assert all(type(operator) is cls for operator in cls.examples())


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@every_operator
def test_other_array_libraries_agree(operator, library):
    xp = pytest.importorskip(library)
    other = clone(operator)
    for name, value in operator.get_params().items():
        other.set_params(**{name: xp.asarray(value)})
    result = other.matrix(Rotated(xp))
    if result is not None:
        assert type(result) is type(xp.asarray([1.0]))
    assert_allclose(dense(result), dense(operator.matrix(Rotated())), rtol=0, atol=1e-14)


def test_identity_needs_nothing_of_the_representation():
    assert Identity().matrix(None) is None


def test_matrix_is_expressed_in_coordinates():
    representation, B = Rotated(), np.diag([1.0, 2.0, 4.0])
    y = np.asarray([1.0, -2.0, 0.5])
    coordinates = representation.basis.T @ y
    result = Matrix(B).matrix(representation)
    assert coordinates @ result @ coordinates == pytest.approx(1 + 2 * 4 + 4 * 0.25, rel=1e-14)
    assert representation.asked == ["congruence"]


def test_matrix_takes_lists_integers_and_float32():
    for B in ([[2, 0, 0], [0, 1, 0], [0, 0, 0]], np.diag([2, 1, 0]), np.diag([2, 1, 0]).astype(np.float32)):
        assert_allclose(np.linalg.eigvalsh(Matrix(B).matrix(Rotated())), [0, 1, 2], atol=1e-6)
    assert Matrix(np.diag([2, 1, 0]).astype(np.float32)).matrix(Untouched()).dtype == np.float32


class Untouched:
    """Hands back what it is given."""

    def congruence(self, matrix):
        return matrix

    def congruence_diagonal(self, values):
        return values


def test_matrix_is_symmetric_to_the_bit_whatever_came():
    B = np.asarray([[1.0, 0.3], [0.3 + 1e-15, 1.0]])
    result = Matrix(B).matrix(Untouched())
    assert_array_equal(result, result.T)
    assert_allclose(result, B, atol=1e-15)


def test_diagonal_stays_a_vector():
    representation = Rotated()
    result = Diagonal([1, 0, 3]).matrix(representation)
    assert_array_equal(result, [1.0, 0.0, 3.0])
    assert result.dtype == np.float64
    assert representation.asked == ["congruence_diagonal"]


def test_covariance_is_asked_of_the_representation():
    representation = Rotated()
    expected = sum(np.outer(y, y) for y in representation.targets) / 20
    assert_allclose(Covariance().matrix(representation), expected, rtol=1e-13)
    assert representation.asked == ["covariance"]


@pytest.mark.parametrize(
    ("operator", "error", "message"),
    [
        (Matrix(np.ones((2, 3))), ValueError, r"'B' parameter of Matrix must be a square matrix\. Got shape \(2, 3\)"),
        (Matrix(np.ones(3)), ValueError, r"'B' parameter of Matrix must be 2-dimensional\..*shape \(3,\)"),
        (Matrix(np.triu(np.ones((3, 3)))), ValueError, "'B' parameter of Matrix must be symmetric"),
        (Matrix(np.diag([1.0, -0.5, 1.0])), ValueError, "must be positive semidefinite.*-5.000e-01"),
        (Matrix(np.full((3, 3), np.nan)), ValueError, "'B' parameter of Matrix must be finite"),
        (Matrix(np.eye(3) * 1j), TypeError, "'B' parameter of Matrix must hold real numbers"),
        (Matrix("eye"), TypeError, "'B' parameter of Matrix must be an array. Got 'eye' instead"),
        (Matrix(None), TypeError, "'B' parameter of Matrix must be an array. Got None instead"),
        (Matrix(np.eye(4)), ValueError, r"must act on 3 outputs\. Got shape \(4, 4\)"),
        (Diagonal([1.0, -2.0]), ValueError, r"'values' parameter of Diagonal must be non-negative.*-2\.000e\+00"),
        (Diagonal(np.eye(2)), ValueError, "'values' parameter of Diagonal must be 1-dimensional"),
        (Diagonal([]), ValueError, "'values' parameter of Diagonal must have at least one"),
        (Diagonal([1.0, np.inf]), ValueError, "'values' parameter of Diagonal must be finite"),
        (Diagonal(2.0), TypeError, "'values' parameter of Diagonal must be an array. Got 2.0 instead"),
    ],
)
def test_bad_parameters_are_named(operator, error, message):
    with pytest.raises(error, match=message):
        operator.matrix(Rotated())


def test_construction_checks_nothing():
    assert Matrix(-np.eye(2)).B[0, 0] == -1
    assert Diagonal([-1.0]).values == [-1.0]


@pytest.mark.parametrize(
    ("value", "cls"),
    [
        (None, Identity),
        ("identity", Identity),
        ("covariance", Covariance),
        (np.eye(2), Matrix),
        ([[1.0, 0.0], [0.0, 1.0]], Matrix),
        (np.ones(2), Diagonal),
        ([1.0, 2.0], Diagonal),
    ],
)
def test_as_operator(value, cls):
    operator = as_operator(value)
    assert type(operator) is cls
    assert as_operator(operator) is operator


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_as_operator_takes_arrays_of_other_libraries(library):
    xp = pytest.importorskip(library)
    assert type(as_operator(xp.eye(3))) is Matrix
    assert type(as_operator(xp.ones(3))) is Diagonal


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("identiy", ValueError, "Unknown operator 'identiy'. Known names: 'covariance'"),
        ("matrix", ValueError, "'matrix' has parameters without a default; pass an instance"),
        (np.ones((2, 2, 2)), ValueError, r"'operator' argument must be 1- or 2-dimensional.*\(2, 2, 2\)"),
        (np.float64(3.0), ValueError, r"'operator' argument must be 1- or 2-dimensional.*shape \(\)"),
        (3.0, TypeError, "'operator' argument must be an OutputOperator, a name, None or an array. Got 3.0 instead"),
        (Matrix, TypeError, "'operator' argument must be an OutputOperator"),
    ],
)
def test_as_operator_refuses(value, error, message):
    with pytest.raises(error, match=message):
        as_operator(value)


GRID = np.asarray([0.0, 0.2, 0.3, 0.7, 1.5])
CURVES = np.random.default_rng(2).normal(size=(6, 5, 2))  # two channels, as the examples have


def curves():
    return Curves(GRID, CURVES.copy())


def plain(kernel):
    """A kernel of two points by its formula."""
    if kernel == "gaussian":
        return lambda t, s: np.exp(-((t - s) ** 2))
    assert kernel == "laplacian"
    return lambda t, s: np.exp(-abs(t - s))


class TestIntegralOperator:
    @every_curve_operator
    @pytest.mark.parametrize("representation", [Euclidean(), GramFactor()], ids=label)
    def test_vectors_are_no_curves(self, operator, representation):
        message = f"IntegralOperator acts on curves; {label(representation)} does not represent curves. Use Functional"
        with pytest.raises(IncompatibleError, match=message):
            operator.matrix(space(clone(representation), np.eye(3)))

    @every_curve_operator
    def test_values_at_other_points_by_the_formula(self, operator):
        """Entry ((j, c), (l, d)) is B_cd k(t_j, s_l), or k_c(t_j, s_l) on the diagonal with a kernel for each."""
        left, right = GRID, np.asarray([0.1, 0.9])
        found = operator.values(left, right, 2)
        assert found.shape == (10, 4)
        kernels = operator.kernel if isinstance(operator.kernel, list) else [operator.kernel] * 2
        coupling = np.eye(2) if operator.channels is None else operator.channels
        for j, t in enumerate(left):
            for row, s in enumerate(right):
                for c in range(2):
                    for d in range(2):
                        value = coupling[c, d] * plain(kernels[c])(t, s)
                        assert found[2 * j + c, 2 * row + d] == pytest.approx(value, rel=1e-14, abs=1e-300)

    def test_derivative_is_in_the_right_point(self):
        left, right, step = GRID, np.asarray([0.1, 0.9]), 1e-6
        operator = IntegralOperator(Gaussian(2.0), np.asarray([[2.0, 1.0], [1.0, 3.0]]))
        found = operator.values(left, right, 2, derivative=True)
        wanted = (operator.values(left, right + step, 2) - operator.values(left, right - step, 2)) / (2 * step)
        assert_allclose(found, wanted, rtol=0, atol=1e-8)

    @pytest.mark.parametrize(
        ("operator", "message"),
        [
            (IntegralOperator(), "An output kernel is needed here, such as output_kernel='laplacian'. Got None"),
            (IntegralOperator([Gaussian(1.0)]), "one for each of the 2 channels.*Got 1 kernels and channels=None"),
            (IntegralOperator([Gaussian(1.0)] * 2, np.eye(2)), "Got 2 kernels and channels=a matrix"),
            (IntegralOperator("laplacian", np.eye(3)), r"'channels' .* must have shape \(2, 2\)\. Got \(3, 3\)"),
            (IntegralOperator("laplacian", np.diag([1.0, -1.0])), "'channels' .* must be positive semidefinite"),
            (IntegralOperator("laplacian", [[1.0, 2.0], [0.0, 1.0]]), "'channels' .* must be symmetric"),
            (IntegralOperator("laplacien"), "Unknown kernel 'laplacien'"),
        ],
        ids=str,
    )
    def test_bad_parameters_are_named(self, operator, message):
        with pytest.raises(ValueError, match=message):
            operator.matrix(Spline().fit(curves()))
