"""Loaders of molecular datasets."""

from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from fenchel.datasets.readers import arrays, stored_arrays, table
from fenchel.datasets.store import described, locate

__all__ = ["load_massbank", "load_metabolite_fp490", "load_nci_cancer"]

# Name of the packed array in the file, and number of bits: 167 MACCS keys fill 21 bytes, whose last bit is padding.
_FINGERPRINTS = {
    "morgan": ("morgan2_2048_packed", 2048),
    "maccs": ("maccs_167_packed", 167),
    "path": ("rdkit_path_2048_packed", 2048),
}
_ACTIVE = 60  # smallest activity score of an active molecule


@described
def load_massbank(fingerprint: str | tuple[str, ...] = "morgan") -> Bunch:
    """Load the MassBank dataset: tandem mass spectra and structures of 4020 molecules, and a pool of candidates.

    Parameters
    ----------
    fingerprint : {"morgan", "maccs"} or a tuple of these, default="morgan"
        Bits that describe a structure, 2048 or 167 of them; several fingerprints are concatenated.

    Returns
    -------
    data : Bunch
        ``mz`` and ``intensity`` of all peaks, concatenated, float64; the peaks of molecule i are
        ``[offset[i]:offset[i + 1]]``; ``precursor_mz`` (4020,); ``Y`` (4020, bits) fingerprints, uint8; ``formula``,
        ``inchikey``, ``smiles`` (4020,); ``fold`` (4020,) from 0 to 4, where no formula is in two folds. The pool:
        ``candidate_Y`` (13289, bits), ``candidate_formula``, ``candidate_inchikey``, ``candidate_smiles`` (13289,); the
        candidates of a molecule are those with its formula, including itself.

    Notes
    -----
    Merged from MassBank records whose licences allow it; treat the merged spectra as CC BY-SA and cite MassBank.

    References
    ----------
    MassBank-data 2025.05.1; the task is that of [Brouard2016]_.
    """
    kinds = (fingerprint,) if isinstance(fingerprint, str) else tuple(fingerprint)
    unknown = [name for name in kinds if name not in ("morgan", "maccs")]
    if unknown or not kinds:
        raise ValueError(f"fingerprint must be 'morgan', 'maccs' or a tuple of these. Got {fingerprint!r}.")
    peaks = locate("massbank_msms", "spectra.npz")
    molecules = table("massbank_msms", "molecules.csv.gz", "inchikey14", "smiles", "formula", "precursor_mz", "fold")
    pool = table("massbank_msms", "candidates.csv.gz", "inchikey14", "smiles", "formula")
    return Bunch(
        **arrays(peaks, "mz", "intensity"),
        offset=stored_arrays(peaks, "offset")["offset"].astype(np.int64),
        precursor_mz=molecules["precursor_mz"].astype(np.float64),
        Y=_bits(locate("massbank_msms", "fingerprints.npz"), kinds),
        formula=molecules["formula"],
        inchikey=molecules["inchikey14"],
        smiles=molecules["smiles"],
        fold=molecules["fold"].astype(np.int64),
        candidate_Y=_bits(locate("massbank_msms", "candidate_fingerprints.npz"), kinds),
        candidate_formula=pool["formula"],
        candidate_inchikey=pool["inchikey14"],
        candidate_smiles=pool["smiles"],
    )


@described
def load_metabolite_fp490() -> Bunch:
    """Load the Fingerprint dataset: a kernel between 490 tandem mass spectra, and 286 bits of each molecule.

    Returns
    -------
    data : Bunch
        ``K`` (490, 490) Gram matrix with diagonal 1, ``Y`` (490, 286) bits, both as float64.

    References
    ----------
    H. Su and J. Rousu, "Multilabel classification through random graph ensembles", Machine Learning 2015;
    M. Heinonen et al., "Metabolite identification and molecular fingerprint prediction through machine learning", 2012.
    """
    return Bunch(**arrays(locate("metabolite_fp490", "fp490.npz"), "K", "Y"))


@described
def load_nci_cancer(fingerprint: str = "path") -> Bunch:
    """Load the NCI cancer dataset: structures of 2102 molecules, and their activities against 59 tumour cell lines.

    These are the molecules with a known structure that are active in at least one line.

    Parameters
    ----------
    fingerprint : {"path", "morgan"}, default="path"
        The 2048 bits that describe a structure: RDKit's paths or Morgan neighbourhoods.

    Returns
    -------
    data : Bunch
        ``X`` (2102, 2048) fingerprints, uint8; ``scores`` (2102, 59) activity scores; ``Y`` (2102, 59), 1 where the
        score is at least 60, as float64; ``smiles`` (2102,); ``cell_lines`` (59,).

    References
    ----------
    H. Su, M. Heinonen and J. Rousu, "Structured output prediction of anti-cancer drug activity", PRIB 2010.
    """
    if fingerprint not in ("path", "morgan"):
        raise ValueError(f"fingerprint must be one of 'path', 'morgan'. Got {fingerprint!r}.")
    lines = tuple(table("nci_cancer", "cell_lines.csv.gz", "cell_line")["cell_line"].tolist())
    columns = ("smiles", "no_zero_active", *lines)
    known = table("nci_cancer", "nci_cancer.csv.gz", *columns)
    is_known = known["smiles"] != ""
    is_kept = known["no_zero_active"][is_known] == "1"
    scores = np.column_stack([known[line][is_known][is_kept].astype(np.float64) for line in lines])
    return Bunch(
        X=_bits(locate("nci_cancer", "fingerprints.npz"), (fingerprint,))[is_kept],
        scores=scores,
        Y=(scores >= _ACTIVE).astype(np.float64),
        smiles=known["smiles"][is_known][is_kept],
        cell_lines=np.array(lines),
    )


def _bits(path: Path, names: tuple[str, ...]) -> np.ndarray:
    """Return unpacked fingerprints, concatenated, as uint8."""
    parts = []
    for name in names:
        stored, count = _FINGERPRINTS[name]
        parts.append(np.unpackbits(stored_arrays(path, stored)[stored], axis=1)[:, :count])
    return np.hstack(parts)
