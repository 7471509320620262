"""Metrics for predicted curves, quantiles, label sets, rankings and tables, and scorers for scikit-learn's searches."""

from fenchel.metrics import curves, labels, quantiles, scores
from fenchel.metrics.curves import *  # noqa: F403
from fenchel.metrics.labels import *  # noqa: F403
from fenchel.metrics.quantiles import *  # noqa: F403
from fenchel.metrics.scores import *  # noqa: F403

__all__ = [*curves.__all__, *labels.__all__, *quantiles.__all__, *scores.__all__]
