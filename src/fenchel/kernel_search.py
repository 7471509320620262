"""Moved to ``fenchel.search.race``; this name goes with the next release."""

from fenchel.search.race import *  # noqa: F403
from fenchel.search.race import __all__  # noqa: F401
