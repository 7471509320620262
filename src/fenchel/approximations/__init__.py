"""Approximations of kernels by a few features, for samples whose Gram matrix is too large."""

from fenchel.approximations import nystrom, random_features, sketches
from fenchel.approximations.approximation import Approximation
from fenchel.approximations.nystrom import *  # noqa: F403
from fenchel.approximations.random_features import *  # noqa: F403
from fenchel.approximations.sketches import *  # noqa: F403

__all__ = ["Approximation", *nystrom.__all__, *random_features.__all__, *sketches.__all__]
