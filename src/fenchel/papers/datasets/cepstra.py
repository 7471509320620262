"""Mel-frequency cepstral coefficients of a sound."""

import numpy as np
from scipy.fft import dct

__all__ = ["mel_cepstra"]

_PREEMPHASIS = 0.97  # share of a sample subtracted from the next one, as in python_speech_features 0.6
_N_FREQUENCIES = 512  # length of the Fourier transform
_N_FILTERS = 26
_N_CEPSTRA = 13  # coefficients kept of each frame, as in python_speech_features
_LIFTER = 22  # period, in coefficients, of the sine that raises the higher ones, as in python_speech_features
_SILENCE = np.finfo(np.float64).eps  # energy of a frame or band that is silent


def mel_cepstra(signal: np.ndarray, rate: int, window: float, step: float) -> np.ndarray:
    """Return 13 cepstral coefficients of each frame of a sound; the first is the logarithm of its energy.

    These are the usual coefficients with the constants of the Python package python_speech_features 0.6: pre-emphasis
    0.97, no taper, 512 frequencies, 26 triangular bands up to half the rate, lifter 22. The last frame is filled up
    with zeros.

    Parameters
    ----------
    signal : ndarray of shape (n,)
        The sound.
    rate : int
        Samples per second.
    window, step : float
        Length of a frame, and time from one frame to the next, in seconds.

    Returns
    -------
    cepstra : ndarray of shape (n_frames, 13)
        One row for each frame.
    """
    length, hop = round(window * rate), round(step * rate)
    n_frames = 1 + max(0, -(-(len(signal) - length) // hop))
    sound = np.zeros((n_frames - 1) * hop + length)
    sound[: len(signal)] = signal
    sound[1 : len(signal)] -= _PREEMPHASIS * signal[:-1].astype(np.float64)
    frames = np.lib.stride_tricks.sliding_window_view(sound, length)[::hop]
    power = np.abs(np.fft.rfft(frames, _N_FREQUENCIES)) ** 2 / _N_FREQUENCIES
    bands = np.log(_audible(power @ _mel_bands(rate).T))
    cepstra = dct(bands, type=2, norm="ortho")[:, :_N_CEPSTRA]
    cepstra *= 1 + _LIFTER / 2 * np.sin(np.pi * np.arange(_N_CEPSTRA) / _LIFTER)
    cepstra[:, 0] = np.log(_audible(power.sum(axis=1)))
    return cepstra


def _audible(energy: np.ndarray) -> np.ndarray:
    return np.where(energy == 0, _SILENCE, energy)


def _mel_bands(rate: int) -> np.ndarray:
    """Return triangles over the frequencies whose corners are equally spaced in mel, rounded down to a frequency."""
    mel = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), _N_FILTERS + 2)
    corners = np.floor((_N_FREQUENCIES + 1) * 700 * (10 ** (mel / 2595) - 1) / rate)
    places = np.arange(_N_FREQUENCIES // 2 + 1)
    bands = np.zeros((_N_FILTERS, len(places)))
    for band, left, top, right in zip(bands, corners[:-2], corners[1:-1], corners[2:], strict=True):
        rises, falls = (left <= places) & (places < top), (top <= places) & (places < right)
        band[rises] = (places[rises] - left) / (top - left)
        band[falls] = (right - places[falls]) / (right - top)
    return bands
