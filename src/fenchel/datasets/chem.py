"""Molecular fingerprints."""

from collections.abc import Sequence

import numpy as np

from fenchel._check import Interval, check_parameter, require

__all__ = ["morgan_fingerprints"]


def morgan_fingerprints(smiles: Sequence[str], n_bits: int = 2048, radius: int = 2) -> np.ndarray:
    """Return Morgan fingerprints of molecules, for the Tanimoto kernels.

    Parameters
    ----------
    smiles : sequence of str
        Molecules in SMILES notation.
    n_bits : int, default=2048
        Length of the fingerprints.
    radius : int, default=2
        Radius of the neighbourhood of an atom, in bonds.

    Returns
    -------
    bits : ndarray of shape (n, n_bits)
        0/1 as uint8.

    Notes
    -----
    Needs RDKit: ``pip install 'fenchel[chem]'``.

    Examples
    --------
    >>> from fenchel.datasets import morgan_fingerprints
    >>> morgan_fingerprints(["CCO", "c1ccccc1"], n_bits=64).shape  # doctest: +SKIP
    (2, 64)
    """
    for name, value in (("n_bits", n_bits), ("radius", radius)):
        least = 1 if name == "n_bits" else 0
        check_parameter("morgan_fingerprints", name, value, Interval(least, float("inf"), "left", integer=True))
    if isinstance(smiles, str):
        raise TypeError(f"smiles must be a sequence of strings. Got the string {smiles!r}; wrap it in a list.")
    chem = require("rdkit.Chem", extra="chem")
    generator = require("rdkit.Chem.rdFingerprintGenerator", extra="chem").GetMorganGenerator(radius, fpSize=n_bits)
    bits = np.zeros((len(smiles), n_bits), dtype=np.uint8)
    for row, text in zip(bits, smiles, strict=True):
        molecule = chem.MolFromSmiles(text)
        if molecule is None:
            raise ValueError(f"smiles must hold molecules that RDKit can read. It cannot read {text!r}.")
        row[:] = generator.GetFingerprintAsNumPy(molecule)
    return bits
