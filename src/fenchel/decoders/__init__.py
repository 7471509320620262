"""Decoders, which map predictions in a feature space, or weights on the training outputs, back to objects."""

from fenchel.decoders import candidates, circle, preimage, ranking, riemannian, scalar, simplex, vectors, weighted
from fenchel.decoders.candidates import *  # noqa: F403
from fenchel.decoders.circle import *  # noqa: F403
from fenchel.decoders.decoder import Decoder
from fenchel.decoders.preimage import *  # noqa: F403
from fenchel.decoders.ranking import *  # noqa: F403
from fenchel.decoders.riemannian import *  # noqa: F403
from fenchel.decoders.scalar import *  # noqa: F403
from fenchel.decoders.simplex import *  # noqa: F403
from fenchel.decoders.vectors import *  # noqa: F403
from fenchel.decoders.weighted import *  # noqa: F403

__all__ = [
    *candidates.__all__,
    *circle.__all__,
    *preimage.__all__,
    *ranking.__all__,
    *riemannian.__all__,
    *scalar.__all__,
    *simplex.__all__,
    *vectors.__all__,
    *weighted.__all__,
    "Decoder",
]
