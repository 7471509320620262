"""Task losses of the loss trick: what a prediction costs, and what its decoder needs."""

from fenchel.task_losses import base, finite, histograms, interval, ranking, squared
from fenchel.task_losses.base import *  # noqa: F403
from fenchel.task_losses.finite import *  # noqa: F403
from fenchel.task_losses.histograms import *  # noqa: F403
from fenchel.task_losses.interval import *  # noqa: F403
from fenchel.task_losses.ranking import *  # noqa: F403
from fenchel.task_losses.squared import *  # noqa: F403

__all__ = [
    *base.__all__,
    *finite.__all__,
    *histograms.__all__,
    *interval.__all__,
    *ranking.__all__,
    *squared.__all__,
]
