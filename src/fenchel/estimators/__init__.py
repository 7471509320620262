"""Estimators: scikit-learn conventions over the dual problem."""

from fenchel.estimators import regression, selection
from fenchel.estimators.regression import *  # noqa: F403
from fenchel.estimators.selection import *  # noqa: F403

__all__ = [*regression.__all__, *selection.__all__]
