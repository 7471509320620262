"""Missing inputs and categories in a search, whose kernels are compared on numbers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fenchel._array import host
from fenchel.model.parts import encoded, has_gaps
from fenchel.model.sample import Sample
from fenchel.search.choice import KernelChoice

__all__ = ["as_numbers"]


def as_numbers(sample: Sample, metric: object = None) -> tuple[Sample, Callable[[KernelChoice], KernelChoice]]:
    """Return a sample without gaps and categories, and what turns a choice for it into one for the sample as it is."""
    is_missing = has_gaps(sample.X)
    if metric is not None and (is_missing or sample.inputs.parts):
        advice = "Impute missing values." if is_missing else "Join the parts to one array (n, d)."
        raise ValueError(f"X must be complete with a metric, which weighs its columns. {advice}")
    X, blocks, of_inputs = encoded(sample.X, sample.inputs.blocks, sample.weights)
    if X is sample.X:
        return sample, lambda choice: choice
    gaps = np.flatnonzero(np.isnan(host(sample.X)).any(axis=0)).tolist()

    def back(choice: KernelChoice) -> KernelChoice:
        search = replace(choice.search, kernel=of_inputs(choice.search.kernel))
        training_set = replace(choice.training_set, sample=sample)
        told = {"gaps": [gaps] * len(choice.trials["lam"])} if is_missing else {}
        unseen = tuple(map(of_inputs, choice.unseen))
        return replace(choice, search=search, training_set=training_set, trials=choice.trials | told, unseen=unseen)

    inputs = replace(sample.inputs, shape=tuple(X.shape[1:]), names=None, blocks=blocks)
    return replace(sample, X=X, inputs=inputs), back
