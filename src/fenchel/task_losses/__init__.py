"""Task losses of the loss trick, which define the cost of a prediction and its decoder."""

from fenchel.task_losses import (
    algebra,
    circle,
    embedding,
    finite,
    graph,
    histograms,
    interval,
    interval_loss,
    manifold,
    ranking,
    spd,
    sphere,
    squared,
    task_loss,
    torus,
)
from fenchel.task_losses.algebra import *  # noqa: F403
from fenchel.task_losses.circle import *  # noqa: F403
from fenchel.task_losses.embedding import *  # noqa: F403
from fenchel.task_losses.finite import *  # noqa: F403
from fenchel.task_losses.graph import *  # noqa: F403
from fenchel.task_losses.histograms import *  # noqa: F403
from fenchel.task_losses.interval import *  # noqa: F403
from fenchel.task_losses.interval_loss import *  # noqa: F403
from fenchel.task_losses.manifold import *  # noqa: F403
from fenchel.task_losses.ranking import *  # noqa: F403
from fenchel.task_losses.spd import *  # noqa: F403
from fenchel.task_losses.sphere import *  # noqa: F403
from fenchel.task_losses.squared import *  # noqa: F403
from fenchel.task_losses.task_loss import *  # noqa: F403
from fenchel.task_losses.torus import *  # noqa: F403

__all__ = [
    *task_loss.__all__,
    *algebra.__all__,
    *circle.__all__,
    *embedding.__all__,
    *finite.__all__,
    *graph.__all__,
    *histograms.__all__,
    *interval.__all__,
    *interval_loss.__all__,
    *manifold.__all__,
    *ranking.__all__,
    *spd.__all__,
    *sphere.__all__,
    *squared.__all__,
    *torus.__all__,
]
