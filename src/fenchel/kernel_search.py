"""Moved to ``fenchel.search.race``; this name goes with the next release."""

from fenchel.search.race import FLAT, Candidate, KernelSearch, Ridge, Trial, best_lam, dictionary, search_kernel

__all__ = ["FLAT", "Candidate", "KernelSearch", "Ridge", "Trial", "best_lam", "dictionary", "search_kernel"]
