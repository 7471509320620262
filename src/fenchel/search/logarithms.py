"""Logarithms of skewed outputs, chosen by the errors of samples that were left out."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from fenchel._array import as_like, host
from fenchel._statistics import is_clearly_positive
from fenchel.losses import Square
from fenchel.model.logarithms import Logarithms
from fenchel.model.training_set import TrainingSet
from fenchel.model.vectors import VectorCodec
from fenchel.search.choice import KernelChoice

__all__ = ["with_errors", "with_logarithms"]

_ERRORS = 1.0  # standard errors by which logarithms must win

Encode = Callable[[Logarithms], TrainingSet]
Choose = Callable[[TrainingSet, KernelChoice], KernelChoice]


def with_logarithms(choice: KernelChoice, encode: Encode, again: Choose) -> KernelChoice:
    """Return a choice with the logarithms of skewed outputs as targets, if their means predict these clearly better.

    ``encode`` returns the sample with logarithms as targets, and ``again`` repeats the race of kernels on it. Errors
    are squared ones of samples that were left out, in the units of the outputs. Wrong targets are no skewed ones.
    """
    sample = choice.training_set.sample
    Y = host(sample.y).reshape(sample.n_samples, -1).astype(np.float64)
    if choice.is_wrong or not np.any((logs := Logarithms.of(Y, sample.counts)).is_used):
        return choice
    errors = _squared_errors(choice, Y)
    for _ in range(2):
        joint = with_errors(replace(again(encode(logs), choice), logarithms=logs, is_robust=False))
        joint = joint.told("logarithms", [(trial, 1.0) for trial in joint.search.trials])
        choice = replace(choice, trials=joint.trials)
        gains = errors - _squared_errors(joint, Y)
        if not is_clearly_positive(np.sum(gains, axis=1), _ERRORS):
            return choice
        kept = np.array([is_clearly_positive(gain, 0.0) for gain in gains.T])
        if np.all(kept[logs.is_used]):
            break
        logs = logs.only(kept & logs.is_used)
    return joint


def with_errors(choice: KernelChoice) -> KernelChoice:
    """Return a choice whose logarithms know the errors of the samples that its search has left out."""
    if choice.logarithms is None:
        return choice
    search, training_set = choice.search, choice.training_set
    codec = cast(VectorCodec, training_set.codec)
    errors = search.left_out * codec.units
    logs = choice.logarithms.with_errors(errors, _seen(choice) > 0, training_set.sample.counts[search.index])
    codec = codec.with_logarithms(logs)
    return replace(choice, training_set=replace(training_set, codec=codec), logarithms=logs, losses=[Square()])


def _seen(choice: KernelChoice) -> np.ndarray:
    """Return 1 where a target of the search was observed, (n, p)."""
    search, observed = choice.search, choice.training_set.targets.observed
    return np.ones_like(search.left_out) if observed is None else host(observed)[search.index]


def _squared_errors(choice: KernelChoice, Y: np.ndarray) -> np.ndarray:
    """Return the squared errors of the predictions of samples that were left out, over the variances, (n, p)."""
    search, training_set = choice.search, choice.training_set
    rows = training_set.targets.rows
    found = host(training_set.codec.decode(as_like(host(rows)[search.index] - search.left_out, rows)))
    weights = training_set.sample.counts[search.index]
    errors = np.where(_seen(choice) > 0, Y[search.index] - found, 0.0) ** 2
    variances = np.nanvar(Y, axis=0)
    return np.asarray(errors * (weights / np.mean(weights))[:, None] / np.where(variances > 0, variances, 1.0))
