"""Representations: outputs as orthonormal coordinates."""

from fenchel.representations import euclidean, gram_factor
from fenchel.representations.base import Representation
from fenchel.representations.euclidean import *  # noqa: F403
from fenchel.representations.gram_factor import *  # noqa: F403

__all__ = [*euclidean.__all__, *gram_factor.__all__, "Representation"]
