"""Default choice of a decoder."""

import math
from contextlib import suppress

import numpy as np

from fenchel._array import Outputs, host
from fenchel.decoders.candidates import TrainingSet
from fenchel.decoders.decoder import Decoder, Space
from fenchel.decoders.preimage import Preimage
from fenchel.decoders.vectors import Clamp, Threshold
from fenchel.exceptions import IncompatibleError

__all__ = ["are_label_sets", "fitted_decoder", "suitable_decoders"]


def are_label_sets(outputs: Outputs) -> bool:
    """Whether outputs are rows of zeros and ones."""
    values = host(outputs)
    return values.ndim == 2 and values.dtype.kind in "biuf" and bool(np.all((values == 0) | (values == 1)))


def suitable_decoders(representation: Space) -> list[Decoder]:
    """Return the default decoders to choose from: for label sets a threshold, and the training outputs."""
    decoders: list[Decoder] = [TrainingSet()]
    if representation.has_points and are_label_sets(representation.outputs_):
        decoders.insert(0, Threshold("auto"))
    return decoders


def fitted_decoder(decoder: Decoder | None, representation: Space) -> Decoder:
    """Return a decoder fitted to a representation; ``None`` means the first that it supports.

    That is the coordinates themselves for vectors, a pre-image for a Gaussian kernel, and otherwise the nearest
    training output.
    """
    Y = representation.outputs_
    if decoder is not None:
        return decoder.fit(Y, representation)
    for chosen in (Clamp(-math.inf, math.inf), Preimage()):
        with suppress(IncompatibleError):
            return chosen.fit(Y, representation)
    return TrainingSet().fit(Y, representation)
