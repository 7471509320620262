"""Convex losses, each defined by its value, its conjugate and the prox of its conjugate."""

from fenchel.losses import convolution, integral, margin, pnorm, radial
from fenchel.losses.convolution import *  # noqa: F403
from fenchel.losses.integral import *  # noqa: F403
from fenchel.losses.loss import Loss
from fenchel.losses.margin import *  # noqa: F403
from fenchel.losses.pnorm import *  # noqa: F403
from fenchel.losses.radial import *  # noqa: F403

__all__ = [*convolution.__all__, *integral.__all__, *margin.__all__, *pnorm.__all__, *radial.__all__, "Loss"]
