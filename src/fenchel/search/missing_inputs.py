"""Missing inputs in a search: kernels are compared on completed inputs, and the chosen one completes them itself."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fenchel._array import host, is_sparse
from fenchel.kernels import Completed, Constant, ScalarKernel
from fenchel.model.sample import Sample
from fenchel.search.choice import KernelChoice

__all__ = ["completed"]


def completed(sample: Sample, metric: object = None) -> tuple[Sample, Callable[[KernelChoice], KernelChoice]]:
    """Return a sample without missing inputs, and what turns a choice for it into one for the sample as it is."""
    if is_sparse(sample.X) or not bool(np.isnan(host(sample.X)).any()):
        return sample, lambda choice: choice
    if metric is not None:
        raise ValueError("X must be complete with a metric, which weighs its columns. Impute missing values.")
    images = Completed(Constant()).known(sample.X, sample.weights)
    X = images.image(sample.X)

    def complete(kernel: ScalarKernel) -> ScalarKernel:
        return Completed(kernel, images.medians, images.gaps)

    def back(choice: KernelChoice) -> KernelChoice:
        search = replace(choice.search, kernel=complete(choice.search.kernel))
        training_set = replace(choice.training_set, sample=sample)
        trials = choice.trials | {"gaps": [images.gaps.tolist()] * len(choice.trials["lam"])}
        unseen = tuple(map(complete, choice.unseen))
        return replace(choice, search=search, training_set=training_set, trials=trials, unseen=unseen)

    inputs = replace(sample.inputs, shape=tuple(X.shape[1:]), names=None)
    return replace(sample, X=X, inputs=inputs), back
