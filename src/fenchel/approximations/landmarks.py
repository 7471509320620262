"""Sampling rules for landmarks: probabilities of the samples given the landmarks drawn so far."""

from collections.abc import Callable, Iterator

import numpy as np

from fenchel._array import host
from fenchel.approximations.partial_factor import PartialFactor

__all__ = ["RULES", "draw"]

_ROUNDS = 10  # number of rounds; each draws from what the earlier ones leave unexplained


def draw(factor: PartialFactor, count: int, rule: str, rng: np.random.Generator) -> Iterator[PartialFactor]:
    """Yield the factor after each round, drawing ``count`` more landmarks in total without replacement."""
    n, odds_of = len(factor.sample.masses), RULES[rule]
    rounds = 1 if odds_of is _uniform_odds else min(_ROUNDS, count)
    least = 1e-15 * float(np.max(odds_of(PartialFactor.empty(factor.sample)))) or 1.0
    for size in np.diff(np.linspace(0, count, rounds + 1).astype(int)):
        # samples that are explained already, or zero, come last
        odds = ~np.isin(np.arange(n), factor.index) * np.clip(odds_of(factor), least, None)
        if not np.isfinite(odds.sum()):
            raise ValueError("The kernel must be finite on X. It is NaN or infinite: scale the inputs.")
        order = factor.sample.order
        factor = factor.extended(order[rng.choice(n, size, replace=False, p=odds[order] / odds[order].sum())])
        yield factor


def _uniform_odds(factor: PartialFactor) -> np.ndarray:
    """Probabilities proportional to the sample weights."""
    return factor.sample.masses


def _pivot_odds(factor: PartialFactor) -> np.ndarray:
    """The diagonal of the residual that the landmarks leave unexplained."""
    return factor.sample.masses * factor.unexplained


def _distance_odds(factor: PartialFactor) -> np.ndarray:
    """Squared distances to the nearest landmark, in the space of the kernel."""
    return factor.sample.masses * (factor.distances if len(factor.index) else 1.0)


def _leverage_odds(factor: PartialFactor) -> np.ndarray:
    """Ridge leverage scores of the projected Gram matrix plus the unexplained residual, at most one."""
    sample, shift = factor.sample, factor.sample.lam * float(factor.sample.masses.sum())
    scores = factor.unexplained / shift
    if factor.blocks:
        F = np.concatenate([host(block) for block in factor.blocks], axis=1, dtype=np.float64)
        inverse = np.linalg.inv(F.T @ (sample.masses[:, None] * F) + shift * np.eye(F.shape[1]))
        scores = scores + np.einsum("ij,ij->i", F @ inverse, F)
    return sample.masses * np.minimum(scores, 1.0)


RULES: dict[str, Callable[[PartialFactor], np.ndarray]] = {
    "rpcholesky": _pivot_odds,
    "uniform": _uniform_odds,
    "kmeans++": _distance_odds,
    "leverage": _leverage_odds,
}
