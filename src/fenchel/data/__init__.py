"""Data: generators with a known truth, and loaders of local data sets."""

from fenchel.data import files, synthetic
from fenchel.data.files import *  # noqa: F403
from fenchel.data.synthetic import *  # noqa: F403

__all__ = [*files.__all__, *synthetic.__all__]
