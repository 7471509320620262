"""Recipes of the NCI cancer data, whose activities and structures come from two repositories."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fenchel._check import require
from fenchel.datasets.chem import morgan_fingerprints

__all__ = ["nci_cell_lines", "nci_fingerprints", "nci_table"]

Columns = dict[str, np.ndarray]

_N_BITS = 2048  # length of the hashed fingerprints, which is part of the names of the arrays and read by molecules.py
_UNKNOWN = ("", "NA")


def nci_cell_lines(lines: Path) -> Columns:
    """Return name, tissue and PubChem assay of the cell lines in ``cancer_label.txt``."""
    assays, names, _, tissues = zip(*_rows(lines), strict=True)
    return {"cell_line": np.array(names), "tissue": np.array(tissues), "pubchem_aid": np.array(assays)}


def nci_table(lines: Path, scores: Path, molecules: Path, subset: Path, other_subset: Path, *drugs: Path) -> Columns:
    """Return structure, subsets and scores of the molecules; the smaller subset is ``middle_active``."""
    numbers = _numbers(molecules)
    middle, no_zero = sorted((_numbers(subset), _numbers(other_subset)), key=len)
    values = np.loadtxt(scores, dtype=np.int64, ndmin=2)
    if values.shape[0] != len(numbers):
        raise ValueError(f"{scores.name} has {values.shape[0]} rows for {len(numbers)} molecules of {molecules.name}.")
    columns = {
        "NSC": np.array(numbers),
        "smiles": np.array(_canonical(numbers, drugs)),
        "no_zero_active": np.isin(numbers, no_zero).astype(int),
        "middle_active": np.isin(numbers, middle).astype(int),
        **dict(zip(nci_cell_lines(lines)["cell_line"].tolist(), values.T, strict=True)),
    }
    return {name: column.astype(str) for name, column in columns.items()}


def nci_fingerprints(molecules: Path, *drugs: Path) -> Columns:
    """Return the packed fingerprints of the molecules with a known structure."""
    numbers = _numbers(molecules)
    known = {number: text for number, text in zip(numbers, _canonical(numbers, drugs), strict=True) if text}
    structures = list(known.values())
    return {
        "NSC": np.array(list(known)).astype(np.int64),
        f"morgan2_{_N_BITS}_packed": np.packbits(morgan_fingerprints(structures, _N_BITS), axis=1),
        f"rdkit_path_{_N_BITS}_packed": np.packbits(_path_fingerprints(structures), axis=1),
    }


def _canonical(numbers: Sequence[str], drugs: Sequence[Path]) -> list[str]:
    """Return RDKit's SMILES of each molecule, empty if no table has one or RDKit rejects it; earlier tables win."""
    given: dict[str, str] = {}
    for drug in reversed(drugs):
        header, *rows = _rows(drug)
        number, text = header.index("NSC"), header.index("SMILES")
        given |= {row[number]: row[text] for row in rows if len(row) == len(header) and row[text] not in _UNKNOWN}
    chem = require("rdkit.Chem", extra="chem")
    with require("rdkit.rdBase", extra="chem").BlockLogs():  # about the structures that are rejected
        structures = [chem.MolFromSmiles(given.get(number, "")) for number in numbers]
    return ["" if structure is None else chem.MolToSmiles(structure) for structure in structures]


def _path_fingerprints(smiles: Sequence[str]) -> np.ndarray:
    chem = require("rdkit.Chem", extra="chem")
    generator = require("rdkit.Chem.rdFingerprintGenerator", extra="chem").GetRDKitFPGenerator(fpSize=_N_BITS)
    return np.stack([generator.GetFingerprintAsNumPy(chem.MolFromSmiles(text)) for text in smiles]).astype(np.uint8)


def _numbers(labels: Path) -> list[str]:
    """Return the numbers of lines such as ``NSC_740``."""
    return [line.strip().removeprefix("NSC_") for line in labels.read_text(encoding="ascii").splitlines() if line]


def _rows(table: Path) -> list[list[str]]:
    """Return the cells of a tab-separated table without their quotes.

    R writes a quote within a cell as a backslash and a quote, and the backslashes of SMILES as they are, so readers of
    quoted tables misread one or the other.
    """
    lines = table.read_text(encoding="latin-1").split("\n")
    return [
        [cell.removeprefix('"').removesuffix('"') for cell in line.rstrip("\r").split("\t")] for line in lines if line
    ]
