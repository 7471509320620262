"""Representations of outputs by orthonormal coordinates."""

from fenchel.representations import basis, eigenbasis, euclidean, gram_factor, kernel_outputs, spline_grid
from fenchel.representations.basis import *  # noqa: F403
from fenchel.representations.coordinates import Coordinates, CoordinateSpace
from fenchel.representations.curves import CurveRepresentation
from fenchel.representations.eigenbasis import *  # noqa: F403
from fenchel.representations.euclidean import *  # noqa: F403
from fenchel.representations.gram_factor import *  # noqa: F403
from fenchel.representations.kernel_outputs import *  # noqa: F403
from fenchel.representations.representation import Representation
from fenchel.representations.spline_grid import *  # noqa: F403

__all__ = [
    *basis.__all__,
    *eigenbasis.__all__,
    *euclidean.__all__,
    *gram_factor.__all__,
    *kernel_outputs.__all__,
    *spline_grid.__all__,
    "CoordinateSpace",
    "Coordinates",
    "CurveRepresentation",
    "Representation",
]
