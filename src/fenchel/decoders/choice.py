"""The decoder of a feature space when none is named."""

import math
from contextlib import suppress

from fenchel.decoders.base import Decoder, Space
from fenchel.decoders.candidates import TrainingSet
from fenchel.decoders.preimage import Preimage
from fenchel.decoders.vectors import Clamp
from fenchel.exceptions import IncompatibleError

__all__ = ["fitted_decoder"]


def fitted_decoder(decoder: Decoder | None, representation: Space) -> Decoder:
    """Return a decoder fitted to a representation; ``None`` is the first that it allows.

    The coordinates themselves where they are those of vectors, a pre-image where the kernel is Gaussian, else the
    nearest training output.
    """
    Y = representation.outputs_
    if decoder is not None:
        return decoder.fit(Y, representation)
    for chosen in (Clamp(-math.inf, math.inf), Preimage()):
        with suppress(IncompatibleError):
            return chosen.fit(Y, representation)
    return TrainingSet().fit(Y, representation)
