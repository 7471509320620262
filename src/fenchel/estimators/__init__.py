"""Estimators: scikit-learn conventions over the dual problem."""

from fenchel.estimators import regression
from fenchel.estimators.regression import *  # noqa: F403

__all__ = [*regression.__all__]
