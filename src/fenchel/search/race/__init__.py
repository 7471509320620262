"""Search over kernels and lam by closed-form leave-one-out errors, with one eigendecomposition per kernel."""

from fenchel.search.race.candidates import Candidate, dictionary
from fenchel.search.race.race import Trial
from fenchel.search.race.ridge import FLAT, GappedRidge, Ridge, best_lam
from fenchel.search.race.search import MOST_REFINED, KernelSearch, race_share, search_kernel

__all__ = [
    "FLAT",
    "MOST_REFINED",
    "Candidate",
    "GappedRidge",
    "KernelSearch",
    "Ridge",
    "Trial",
    "best_lam",
    "dictionary",
    "race_share",
    "search_kernel",
]
