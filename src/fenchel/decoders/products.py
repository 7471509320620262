"""Output space of losses of inner products: the best output has the largest product with the prediction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._array import Array, Outputs, as_index, joined, namespace, row_norms
from fenchel.decoders.decoder import Decoder, Space
from fenchel.exceptions import IncompatibleError
from fenchel.losses import Loss
from fenchel.representations import KernelOutputs

__all__: list[str] = []


@dataclass(frozen=True)
class InnerProducts:
    r"""A feature space in which the negative product :math:`-\langle h, \phi(c) \rangle` takes the place of a distance.

    ``h`` is the prediction without the mean of centred outputs, as in the loss.
    """

    representation: KernelOutputs
    has_points = False  # the nearest vector is not the best one

    @property
    def outputs_(self) -> Outputs:
        """The training outputs."""
        return self.representation.outputs_

    @property
    def is_pairwise(self) -> bool:
        """Whether outputs are given by their Gram matrix."""
        return self.representation.is_pairwise

    def weights(self, coordinates: Array) -> Array:
        """Return the weights of the training outputs, (m, n)."""
        return self.representation.weights(coordinates)

    def distances(self, coordinates: Array, outputs: Outputs, norms: Array | None = None) -> Array:
        """Return the negative inner products, (m, C)."""
        return -self.representation.products(self._centred(coordinates), outputs)

    def distance_blocks(self, coordinates: Array, outputs: Outputs, norms: Array | None = None) -> Iterator[Array]:
        """Yield the same for consecutive blocks of candidates."""
        for block in self.representation.product_blocks(self._centred(coordinates), outputs):
            yield -block

    def paired_distances(
        self, coordinates: Array, sets: Sequence[Outputs], norms: Sequence[Array | None]
    ) -> list[Array]:
        """Return the negative inner products of each prediction with its own candidates."""
        sizes = [len(outputs) for outputs in sets]
        owner = as_index(np.repeat(np.arange(len(sets)), sizes), coordinates)
        products = self.representation.paired_products(self._centred(coordinates), joined(sets), owner)
        ends = np.cumsum(sizes)
        return [-products[end - size : end] for end, size in zip(ends, sizes, strict=True)]

    def magnitudes(self, coordinates: Array, outputs: Outputs) -> Array:
        """Return the size of the terms of inner products, (m,), with the longest training output."""
        xp, targets = namespace(coordinates), self.representation.targets_
        longest = float(xp.max(row_norms(targets + self.representation.mean_)))
        return row_norms(self._centred(coordinates))[:, 0] * longest

    def _centred(self, coordinates: Array) -> Array:
        return coordinates - namespace(coordinates).astype(self.representation.mean_, coordinates.dtype)


def decoding_space(loss: Loss, representation: KernelOutputs) -> Any:
    """Return the space in which a decoder minimises the loss: of distances, or of inner products."""
    return InnerProducts(representation) if loss.compares_products else representation


def needs_distances(decoder: Decoder, space: Space) -> None:
    """Raise if the decoder finds the nearest object but the loss compares inner products."""
    if isinstance(space, InnerProducts):
        raise IncompatibleError(
            f"{type(decoder).__name__} finds the nearest object, and a loss of inner products such as MaxMargin wants "
            "the one with the largest product with the prediction. Use TrainingSet() or Candidates()."
        )
