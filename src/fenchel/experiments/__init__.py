"""Published experiments, one module each: ``run(progress)`` computes every number beside the one that is wanted."""

from fenchel.experiments import (
    bibtex,
    dti,
    fp490,
    lip,
    metabolites,
    missing,
    movielens,
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
    "lip": lip,
    "metabolites": metabolites,
    "missing": missing,
    "movielens": movielens,
    "speech": speech,
    "synthetic": synthetic,
    "yeast-curves": yeast_curves,
    "yeast-hamming": yeast_hamming,
}
