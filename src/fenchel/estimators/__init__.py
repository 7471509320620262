"""Estimators: scikit-learn conventions over the dual problem."""

from fenchel.estimators import (
    autoencoder,
    cost_sensitive,
    cross_validation,
    functional,
    loss_trick,
    quantile,
    quantile_selection,
    regression,
    selection,
    structured,
    structured_selection,
    tables,
)
from fenchel.estimators.autoencoder import *  # noqa: F403
from fenchel.estimators.cost_sensitive import *  # noqa: F403
from fenchel.estimators.cross_validation import *  # noqa: F403
from fenchel.estimators.functional import *  # noqa: F403
from fenchel.estimators.loss_trick import *  # noqa: F403
from fenchel.estimators.quantile import *  # noqa: F403
from fenchel.estimators.quantile_selection import *  # noqa: F403
from fenchel.estimators.regression import *  # noqa: F403
from fenchel.estimators.selection import *  # noqa: F403
from fenchel.estimators.structured import *  # noqa: F403
from fenchel.estimators.structured_selection import *  # noqa: F403
from fenchel.estimators.tables import *  # noqa: F403

__all__ = [
    *autoencoder.__all__,
    *cost_sensitive.__all__,
    *cross_validation.__all__,
    *functional.__all__,
    *loss_trick.__all__,
    *quantile.__all__,
    *quantile_selection.__all__,
    *regression.__all__,
    *selection.__all__,
    *structured.__all__,
    *structured_selection.__all__,
    *tables.__all__,
]
