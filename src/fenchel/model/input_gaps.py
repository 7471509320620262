"""Missing inputs of a fit whose kernel is found from the data."""

from dataclasses import replace

from fenchel._array import is_host, is_sparse
from fenchel._statistics import weighted_median
from fenchel.kernels import takes_missing
from fenchel.model.parts import has_gaps
from fenchel.model.sample import Sample

__all__ = ["fills_gaps", "is_open", "with_medians"]


def is_open(kernel: object) -> bool:
    """Whether a kernel is found from the data."""
    return isinstance(kernel, str) and kernel == "auto"


def fills_gaps(kernel: object) -> bool:
    """Whether inputs may contain NaN: the kernel takes them, or is found from the data."""
    return takes_missing(kernel) or is_open(kernel)


def with_medians(sample: Sample, kernel: object) -> Sample:
    """Return a sample whose inputs are complete with the medians for gaps in new inputs, if its kernel is to be found.

    If some are missing in the sample, the kernel has these medians, and indicators besides.
    """
    X = sample.X
    if not is_open(kernel) or is_sparse(X) or not is_host(X) or X.ndim != 2 or has_gaps(X):
        return sample
    return replace(sample, inputs=replace(sample.inputs, medians=weighted_median(X, sample.counts)))
