"""Missing inputs and categories in a search, whose kernels are compared on numbers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fenchel._array import host
from fenchel.kernels import ScalarKernel
from fenchel.model.parts import encoded, has_gaps
from fenchel.model.sample import Sample
from fenchel.search.choice import KernelChoice

__all__ = ["AsNumbers"]


@dataclass(frozen=True)
class AsNumbers:
    """A sample as it is, and with numbers in place of gaps and categories."""

    sample: Sample
    numbers: Sample
    kernel: Callable[[ScalarKernel], ScalarKernel]  # a kernel of the numbers as one of the inputs as they are
    gaps: list[int] | None = None  # columns with missing values

    @classmethod
    def of(cls, sample: Sample, metric: object = None) -> Self:
        """Return a sample with its numbers; raise if it has none for a metric that weighs columns."""
        is_missing = has_gaps(sample.X)
        if metric is not None and (is_missing or sample.inputs.parts):
            advice = "Impute missing values." if is_missing else "Join the parts to one array (n, d)."
            raise ValueError(f"X must be complete with a metric, which weighs its columns. {advice}")
        X, blocks, of_inputs = encoded(sample.X, sample.inputs.blocks, sample.weights)
        if X is sample.X:
            return cls(sample, sample, of_inputs)
        gaps = np.flatnonzero(np.isnan(host(sample.X)).any(axis=0)).tolist() if is_missing else None
        inputs = replace(sample.inputs, shape=tuple(X.shape[1:]), names=None, blocks=blocks, parts=())
        return cls(sample, replace(sample, X=X, inputs=inputs), of_inputs, gaps)

    def trials(self, trials: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Return what a kernel search has tried, with the columns that have gaps."""
        return trials if self.gaps is None else trials | {"gaps": [self.gaps] * len(trials["lam"])}

    def choice(self, choice: KernelChoice) -> KernelChoice:
        """Return a choice for the numbers as one for the sample as it is."""
        if self.numbers is self.sample:
            return choice
        search = replace(choice.search, kernel=self.kernel(choice.search.kernel))
        training_set = replace(choice.training_set, sample=self.sample)
        trials, unseen = self.trials(choice.trials), tuple(map(self.kernel, choice.unseen))
        return replace(choice, search=search, training_set=training_set, trials=trials, unseen=unseen)
