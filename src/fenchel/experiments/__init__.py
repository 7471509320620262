"""Published experiments, one module each: ``run(progress)`` computes every number beside the one that is wanted."""

from fenchel.experiments import (
    bibtex,
    dti,
    fp490,
    kae,
    lip,
    metabolites,
    missing,
    speech,
    synthetic,
    yeast_curves,
    yeast_hamming,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = {
    "bibtex": bibtex,
    "dti": dti,
    "fp490": fp490,
    "kae": kae,
    "lip": lip,
    "metabolites": metabolites,
    "missing": missing,
    "speech": speech,
    "synthetic": synthetic,
    "yeast-curves": yeast_curves,
    "yeast-hamming": yeast_hamming,
}
