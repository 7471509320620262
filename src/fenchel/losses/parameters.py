"""Losses as parameters of estimators: what is known before they are parsed."""

from fenchel._component import parts_of
from fenchel.losses import convolution, integral, margin, pnorm, radial
from fenchel.losses.loss import Loss

__all__: list[str] = []


def fits_targets(loss: object) -> bool:
    """Whether a fit with a loss follows the targets themselves, as scores of regressors expect."""
    if isinstance(loss, str):
        part = parts_of((convolution, integral, margin, pnorm, radial)).get(loss)
        return bool(getattr(part, "fits_targets", True))
    return not isinstance(loss, Loss) or loss.fits_targets
