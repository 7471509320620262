"""Search over kernels and lam by closed-form leave-one-out errors, with one eigendecomposition per kernel."""

from fenchel.kernel_search.candidates import Candidate, dictionary
from fenchel.kernel_search.race import Trial
from fenchel.kernel_search.ridge import FLAT, Ridge, best_lam
from fenchel.kernel_search.search import KernelSearch, search_kernel

__all__ = ["FLAT", "Candidate", "KernelSearch", "Ridge", "Trial", "best_lam", "dictionary", "search_kernel"]
