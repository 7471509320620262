"""Experiments that reproduce published results, one module each."""

from typing import Any

from fenchel.papers import (
    bibtex,
    dti,
    fp490,
    kae,
    lip,
    metabolites,
    missing,
    movielens,
    operators,
    robust_sine,
    speech,
    synthetic,
    usps,
    yeast_curves,
    yeast_hamming,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Any] = {
    "bibtex": bibtex,
    "dti": dti,
    "fp490": fp490,
    "kae": kae,
    "lip": lip,
    "metabolites": metabolites,
    "missing": missing,
    "robust-sine": robust_sine,
    "movielens": movielens,
    "operators": operators,
    "speech": speech,
    "synthetic": synthetic,
    "usps": usps,
    "yeast-curves": yeast_curves,
    "yeast-hamming": yeast_hamming,
}
