"""Convex losses, each known by its value, its conjugate and the prox of its conjugate."""

from fenchel.losses import margin, pnorm, radial
from fenchel.losses.base import Loss
from fenchel.losses.margin import *  # noqa: F403
from fenchel.losses.pnorm import *  # noqa: F403
from fenchel.losses.radial import *  # noqa: F403

__all__ = [*margin.__all__, *pnorm.__all__, *radial.__all__, "Loss"]
