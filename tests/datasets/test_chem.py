"""Fingerprints from SMILES, against those that come with the data."""

import csv
import gzip

import numpy as np
import pytest

from fenchel.datasets import morgan_fingerprints


@pytest.fixture
def rdkit():
    return pytest.importorskip("rdkit")


def test_those_of_the_data(rdkit, data_folder):
    folder = data_folder / "massbank_msms"
    with gzip.open(folder / "molecules.csv.gz", "rt", newline="") as lines:
        smiles = [row["smiles"] for row, _ in zip(csv.DictReader(lines), range(100), strict=False)]
    with np.load(folder / "fingerprints.npz") as stored:
        wanted = np.unpackbits(stored["morgan2_2048_packed"][:100], axis=1)
    np.testing.assert_array_equal(morgan_fingerprints(smiles), wanted)


def test_atoms_alone(rdkit):
    """With radius 0 a bit stands for a kind of atom: ethane has one kind, ethanol three."""
    bits = morgan_fingerprints(["CC", "CCO"], n_bits=512, radius=0)
    assert bits.dtype == np.uint8
    assert bits.sum(axis=1).tolist() == [1, 3]


@pytest.mark.filterwarnings("ignore")
def test_bad_arguments(rdkit):
    with pytest.raises(ValueError, match="cannot read 'C1CC'"):
        morgan_fingerprints(["CC", "C1CC"])
    with pytest.raises(TypeError, match="wrap it in a list"):
        morgan_fingerprints("CC")
    with pytest.raises(ValueError, match=r"'n_bits' parameter of morgan_fingerprints must be an int in \[1"):
        morgan_fingerprints(["CC"], n_bits=0)
