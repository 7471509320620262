"""Decoders: from predictions in a feature space back to objects."""

from fenchel.decoders import candidates, preimage, vectors
from fenchel.decoders.base import Decoder
from fenchel.decoders.candidates import *  # noqa: F403
from fenchel.decoders.preimage import *  # noqa: F403
from fenchel.decoders.vectors import *  # noqa: F403

__all__ = [*candidates.__all__, *preimage.__all__, *vectors.__all__, "Decoder"]
