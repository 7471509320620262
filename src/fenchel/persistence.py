"""Moved to ``fenchel.app.persistence``; this name goes with the next release."""

from fenchel.app.persistence import describe, load, save, versions

__all__ = ["describe", "load", "save", "versions"]
