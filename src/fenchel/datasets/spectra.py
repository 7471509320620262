"""Tandem mass spectra as sparse vectors: binned peaks, neutral losses and peak differences."""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

__all__ = ["binned_spectra", "peak_differences", "spectrum_products"]


def binned_spectra(
    mz: ArrayLike,
    intensity: ArrayLike,
    offset: ArrayLike,
    precursor_mz: ArrayLike | None = None,
    width: float = 0.01,
    power: float = 0.5,
    spread: bool = True,
) -> csr_array:
    r"""Bin spectra into sparse rows of unit length over bins of equal width.

    A peak at :math:`m` with intensity :math:`a` adds :math:`a^p` to its bin. With precursors, the neutral losses,
    precursor minus :math:`m`, are binned instead of the peaks.

    Parameters
    ----------
    mz, intensity : array of shape (P,)
        Peaks of all spectra, concatenated.
    offset : array of int of shape (n + 1,)
        The peaks of spectrum i are ``[offset[i]:offset[i + 1]]``.
    precursor_mz : array of shape (n,) or None, default=None
        Mass-to-charge ratios of the precursors, for the neutral losses; ``None`` bins the peaks. A loss below half a
        bin (the precursor itself) or beyond the precursor is dropped.
    width : float, default=0.01
        Width of a bin, in the unit of ``mz``.
    power : float, default=0.5
        Exponent of the intensities; 0.5 keeps strong peaks from dominating the others.
    spread : bool, default=True
        Whether to share a peak between the two nearest bins, in proportion to its distance from their centres, so that
        a small shift across a boundary changes little.

    Returns
    -------
    spectra : csr_array of shape (n, bins)
        Rows of length 1; a spectrum without peaks or losses is a row of zeros.

    Examples
    --------
    >>> from fenchel.datasets.spectra import binned_spectra
    >>> rows = binned_spectra([1.0, 2.0, 2.0], [0.36, 0.64, 1.0], [0, 2, 3], width=1.0)
    >>> rows.toarray()
    array([[0. , 0.6, 0.8],
           [0. , 0. , 1. ]])
    """
    places, sizes, ends = (np.asarray(a) for a in (mz, intensity, offset))
    _check(places, sizes, ends, width, power)
    n = len(ends) - 1
    owner = np.repeat(np.arange(n), np.diff(ends))
    places = places.astype(np.float64)
    values = sizes.astype(np.float64) ** power
    if precursor_mz is not None:
        masses = np.asarray(precursor_mz, dtype=np.float64)
        if masses.shape != (n,):
            raise ValueError(f"precursor_mz must have one number for each of the {n} spectra. Got {masses.shape}.")
        places = masses[owner] - places
        inside = places >= width / 2
        owner, places, values = owner[inside], places[inside], values[inside]
    if spread:
        low = np.floor(places / width).astype(np.int64)
        share = places / width - low
        columns = np.concatenate([low, low + 1])
        owner = np.concatenate([owner, owner])
        values = np.concatenate([values * (1 - share), values * share])
    else:
        columns = np.rint(places / width).astype(np.int64)
    kept = values > 0
    bins = int(columns[kept].max(initial=0)) + 1
    rows = csr_array((values[kept], (owner[kept], columns[kept])), shape=(n, bins))
    rows.sum_duplicates()
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.divide(1.0, norms, out=np.zeros(n), where=norms > 0)
    return csr_array(rows.multiply(scale[:, None]))


def peak_differences(
    mz: ArrayLike,
    intensity: ArrayLike,
    offset: ArrayLike,
    most: int = 60,
    least: float = 0.5,
    largest: float = 400.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the differences between the peaks of each spectrum, as a spectrum for ``binned_spectra``.

    Fragments that differ by the same group of atoms have the same difference, wherever they are.

    Parameters
    ----------
    mz, intensity, offset
        Peaks of all spectra, as for ``binned_spectra``.
    most : int, default=60
        Number of strongest peaks of each spectrum to use.
    least, largest : float, default=0.5 and 400.0
        Smallest and largest difference to keep, in the unit of ``mz``.

    Returns
    -------
    mz, intensity, offset : ndarray
        Differences, products of the two intensities, and offsets of each spectrum.

    Examples
    --------
    >>> from fenchel.datasets.spectra import peak_differences
    >>> peak_differences([10.0, 12.0, 15.0], [1.0, 0.5, 0.2], [0, 3])
    (array([2., 5., 3.]), array([0.5, 0.2, 0.1]), array([0, 3]))
    """
    places, sizes, ends = (np.asarray(a) for a in (mz, intensity, offset))
    _check(places, sizes, ends, 1.0, 1.0)
    found = []
    for begin, end in pairwise(ends):
        strong = np.sort(begin + np.argsort(-sizes[begin:end], kind="stable")[:most])
        first, second = np.triu_indices(len(strong), 1)
        gaps = np.abs(places[strong[second]] - places[strong[first]])
        kept = (gaps > least) & (gaps < largest)
        found.append((gaps[kept], (sizes[strong[first]] * sizes[strong[second]])[kept]))
    counts = [len(gaps) for gaps, _ in found]
    gaps, products = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return gaps, products, np.concatenate([[0], np.cumsum(counts)])


def spectrum_products(rows: csr_array, others: csr_array | None = None) -> np.ndarray:
    """Return the cosines between spectra, shape (n, m).

    Parameters
    ----------
    rows, others : csr_array of shape (n, bins) and (m, bins)
        Binned spectra from ``binned_spectra``; ``None`` means ``rows`` again.

    Returns
    -------
    cosines : ndarray of shape (n, m)
        Numbers in [0, 1].

    Examples
    --------
    >>> from fenchel.datasets import binned_spectra, spectrum_products
    >>> rows = binned_spectra([1.0, 2.0, 2.0], [0.36, 0.64, 1.0], [0, 2, 3], width=1.0)
    >>> spectrum_products(rows).round(2).tolist()
    [[1.0, 0.8], [0.8, 1.0]]
    """
    right = rows if others is None else others
    return np.asarray((rows @ right.T).toarray())


def _check(mz: np.ndarray, intensity: np.ndarray, offset: np.ndarray, width: float, power: float) -> None:
    if mz.ndim != 1 or mz.shape != intensity.shape:
        raise ValueError(f"mz and intensity must be two lists of equal length. Got {mz.shape} and {intensity.shape}.")
    steady = offset.ndim == 1 and len(offset) > 1 and offset.dtype.kind in "iu" and bool((np.diff(offset) >= 0).all())
    if not steady or offset[0] != 0 or offset[-1] != len(mz):
        raise ValueError(f"offset must be integers that increase from 0 to the number of peaks, {len(mz)}.")
    if not (np.isfinite(mz).all() and np.isfinite(intensity).all()) or (intensity < 0).any() or (mz < 0).any():
        raise ValueError("mz and intensity must be finite and non-negative.")
    if not (width > 0 and power >= 0):
        raise ValueError(f"width must be positive and power non-negative. Got {width!r} and {power!r}.")
