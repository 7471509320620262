"""Solutions of differential equations against exact ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel.datasets import make_advection, make_burgers


def test_burgers_against_cole_and_hopf():
    """v = u / 2 pi solves v_t + v v_x = nu v_xx, and v = -2 nu phi_x / phi with a phi of the heat equation."""
    data, nu, fine = make_burgers(4, 256, random_state=3), 0.1 / (4 * np.pi**2), 4096
    spectrum = np.zeros((4, fine // 2 + 1), dtype=complex)
    spectrum[:, :129] = np.fft.rfft(data.X) * (fine / 256)
    frequency = 2j * np.pi * np.arange(fine // 2 + 1)
    primitive = np.zeros_like(spectrum)
    primitive[:, 1:] = spectrum[:, 1:] / frequency[1:] / (2 * np.pi)
    heat = np.fft.rfft(np.exp(-np.fft.irfft(primitive, fine) / (2 * nu))) * np.exp(nu * (frequency**2).real)
    solution = -2 * nu * np.fft.irfft(frequency * heat, fine) / np.fft.irfft(heat, fine) * 2 * np.pi
    assert_allclose(data.Y, solution[:, :: fine // 256], atol=1e-6 * np.abs(data.Y).max())


def test_initial_states():
    """No mean, the spectrum of 625 (25 - Laplacian)^-2, and the same curves on a coarser grid."""
    data = make_burgers(150, 256)
    assert_allclose(data.X.mean(axis=1), 0, atol=1e-12)
    powers = np.mean(np.abs(np.fft.rfft(data.X) / 256) ** 2, axis=0)
    expected = 25.0**2 / ((2 * np.pi * np.arange(1, 9)) ** 2 + 25) ** 2
    assert_allclose(powers[1:9], expected, rtol=0.4)
    coarse = make_burgers(150, 64)
    assert_allclose(coarse.X, data.X[:, ::4])
    assert_allclose(coarse.Y, data.Y[:, ::4])
    assert_allclose(coarse.grid, np.arange(64) / 64)


def test_advection():
    data = make_advection(5, 128, speed=0.25)
    assert_allclose(data.Y, np.roll(data.X, 32, axis=1))
    assert set(np.unique(data.X)) <= {-1.0, 0.0, 1.0}


@pytest.mark.parametrize(
    ("arguments", "match"), [((0, 64), "n_samples"), ((3, 100), "divisor of 256"), ((3, 0), "n_po")]
)
def test_wrong_sizes(arguments, match):
    for make in (make_burgers, make_advection):
        with pytest.raises(ValueError, match=match):
            make(*arguments)
