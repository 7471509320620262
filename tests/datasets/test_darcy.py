"""Darcy's equation against series, a sparse direct solution, manufactured solutions and its symmetries."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

from fenchel.datasets import make_darcy
from fenchel.datasets.darcy import _fields, _pressures


def test_a_constant_coefficient_against_the_double_sine_series():
    """-a div grad u = 1: u = sum over odd j, k of 16 sin(j pi x) sin(k pi y) / (a pi^4 j k (j^2 + k^2))."""
    data = make_darcy(2, n_points=9, refinement=8, values=(5.0, 5.0))
    odd = np.arange(1, 400, 2)
    waves = np.sin(np.pi * np.outer(data.grid, odd)) / odd
    expected = 16 / np.pi**4 / 5 * np.einsum("xj,yk,jk->xy", waves, waves, 1 / (odd[:, None] ** 2 + odd**2))
    assert_allclose(data.Y[1], expected, atol=1e-3 * expected.max())


def test_a_smooth_coefficient_against_a_manufactured_solution():
    """u = sin(pi x) sin(pi y), a = 1 + x + y^2; the error falls with the square of the step."""
    errors = []
    for m in (17, 33):
        x, y = np.meshgrid(*2 * (np.linspace(0, 1, m),), indexing="ij")
        u, a = np.sin(np.pi * x) * np.sin(np.pi * y), 1 + x + y**2
        slopes = np.pi * np.cos(np.pi * x) * np.sin(np.pi * y) + 2 * y * np.pi * np.sin(np.pi * x) * np.cos(np.pi * y)
        errors.append(np.abs(_pressures(a[None], 2 * np.pi**2 * a * u - slopes)[0] - u).max())
    assert errors[0] < 5e-3
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_two_values_against_a_sparse_direct_solution():
    data, m = make_darcy(1, n_points=12, refinement=1), 12
    rows, columns, entries = [], [], []
    for i in range(1, m - 1):
        for j in range(1, m - 1):
            for s, t in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                mean = (data.X[0, i, j] + data.X[0, s, t]) / 2 * (m - 1) ** 2
                rows += [i * m + j, i * m + j]
                columns += [i * m + j, s * m + t]
                entries += [mean, -mean]
    inner = (np.pad(np.ones((m - 2, m - 2)), 1) > 0).ravel()
    matrix = coo_array((entries, (rows, columns)), shape=(m * m, m * m)).tocsr()[inner][:, inner]
    assert_allclose(data.Y[0].ravel()[inner], spsolve(matrix, np.ones(inner.sum())), rtol=1e-8)
    assert np.all(data.Y[0].ravel()[~inner] == 0)


def test_symmetries_of_the_square():
    a = make_darcy(3, n_points=15, refinement=1).X
    ones = np.ones((15, 15))
    for turned in (lambda f: f[:, ::-1], lambda f: np.swapaxes(f, 1, 2), lambda f: np.rot90(f, axes=(1, 2))):
        assert_allclose(_pressures(turned(a), ones), turned(_pressures(a, ones)), atol=1e-10)


def test_fields():
    """The variance at a point is that of the cosine series; a coarser grid has the same functions."""
    fields = _fields(4000, 9, np.random.RandomState(0))
    frequency = np.arange(9)
    cosines = np.cos(np.pi * np.outer(np.linspace(0, 1, 9), frequency)) * np.where(frequency, np.sqrt(2), 1)
    spectrum = (np.pi**2 * (frequency[:, None] ** 2 + frequency**2) + 9.0) ** -2
    spectrum[0, 0] = 0
    assert_allclose(fields.var(axis=0), cosines**2 @ spectrum @ (cosines**2).T, rtol=0.15)
    coarse, fine = make_darcy(2, 5, refinement=4), make_darcy(2, 9, refinement=2)
    assert_allclose(coarse.X, fine.X[:, ::2, ::2])
    assert_allclose(coarse.Y, fine.Y[:, ::2, ::2])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [({"n_samples": 0}, "n_samples"), ({"n_points": 2}, "n_points"), ({"refinement": 0}, "refinement"),
     ({"values": (0.0, 1.0)}, "values")],
)  # fmt: skip
def test_wrong_sizes(arguments, match):
    with pytest.raises(ValueError, match=match):
        make_darcy(**arguments)
