"""Candidate kernels of a search: families, widths and linear parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from fenchel.kernels import (
    FunctionalGaussian,
    FunctionalLaplacian,
    Gaussian,
    IntegralLaplacian,
    Laplacian,
    Matern,
    ScalarKernel,
)

__all__ = ["FAMILIES", "Candidate", "Family", "dictionary", "dictionary_of_parts", "reweighted"]

_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # in median distances: factors of two, since the width of the winner is refined
_OF_PARTS = ("gaussian", "exponential")  # families of Euclidean distances, whose squares add up over parts
_LINEAR = (0.0, 0.1, 1.0, 10.0)  # weights of a linear part, relative to a kernel of mean diagonal 1: decades, and none


@dataclass(frozen=True)
class Family:
    """A function of a distance, and the corresponding kernels on points and on curves.

    A family with metric ``"pointwise"`` averages a function of the pointwise distance over the points of a curve.
    """

    metric: str
    profile: Callable[[np.ndarray], np.ndarray] | None = None  # of distances divided by the width
    of_points: Callable[[float], ScalarKernel] | None = None  # from the width
    of_curves: Callable[[float, ArrayLike | None], ScalarKernel] | None = None  # from the width and the grid


FAMILIES: dict[str, Family] = {
    "gaussian": Family(
        "euclidean",
        lambda t: np.exp(-(t**2) / 2),
        lambda width: Gaussian(1 / (2 * width**2)),
        lambda width, grid: FunctionalGaussian(1 / (2 * width**2), grid),
    ),
    "exponential": Family(
        "euclidean",
        lambda t: np.exp(-t),
        lambda width: Matern(width, 0.5),
        lambda width, grid: FunctionalLaplacian(1 / width, grid),
    ),
    "laplacian": Family("cityblock", lambda t: np.exp(-t), lambda width: Laplacian(1 / width)),
    "integral": Family("pointwise", of_curves=lambda width, grid: IntegralLaplacian(1 / width, grid)),
}


@dataclass(frozen=True)
class Candidate:
    """A candidate kernel: a family, its width in median distances, and the relative weight of a linear part.

    Of inputs in parts it also has the weight of each part in the distances, or in the sum of kernels of single parts.
    """

    family: str
    width: float
    linear: float
    weights: tuple[float, ...] = ()  # of the parts of the inputs, the largest 1; none for inputs of one kind
    is_sum: bool = False  # whether the kernel is a sum of kernels of single parts


def dictionary(families: Sequence[str] = tuple(FAMILIES), curves: bool = False) -> list[Candidate]:
    """Return the candidates: families, widths and linear parts."""
    known = [
        name for name in families if (FAMILIES[name].of_curves if curves else FAMILIES[name].of_points) is not None
    ]
    return [Candidate(name, width, linear) for name in known for width in _WIDTHS for linear in _LINEAR]


def dictionary_of_parts(count: int) -> list[Candidate]:
    """Return the candidates for inputs in parts: of all parts together, of their sum, and of each part alone."""
    equal, alone = (1.0,) * count, [tuple(row) for row in np.eye(count).tolist()]
    patterns = [(equal, False), *([(equal, True), *((one, False) for one in alone)] if count > 1 else [])]
    return [
        replace(one, weights=weights, is_sum=is_sum) for weights, is_sum in patterns for one in dictionary(_OF_PARTS)
    ]


def reweighted(candidate: Candidate, place: int, factor: float) -> Candidate | None:
    """Return a candidate with the weight of a part times a factor; ``None`` if no part is left or nothing changes."""
    weights = np.array(candidate.weights)
    weights[place] *= factor
    if not np.any(weights) or candidate.weights[place] == 0:
        return None
    return replace(candidate, weights=tuple((weights / weights.max()).tolist()))
