"""Decoders that choose the nearest of finitely many objects."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, Outputs, as_index, as_objects, has_shape, host, joined, namespace
from fenchel._check import Interval, Options, check_parameter
from fenchel.decoders._ties import least_first, round_off
from fenchel.decoders.decoder import Decoder, Space

__all__ = ["Candidates", "TrainingSet"]


@dataclass(frozen=True)
class _Known:
    """Candidates for every sample, with their squared norms if the output kernel cannot compute them."""

    outputs: Outputs
    norms: Array | None


class Candidates(Decoder):
    r"""Nearest of a set of candidates, with one set for all samples or one for each.

    .. math:: \hat y(x) = \arg\min_{c} \; k(c, c) - 2 \langle \phi(c), h(x) \rangle + \|h(x)\|^2 .

    Parameters
    ----------
    candidates : array or None, default=None
        Candidates for every sample, in the form of the training outputs; ``None`` uses those passed to ``predict``.
        Outputs known by a Gram matrix are given as a pair of their inner products with the training outputs, (C, n),
        and their squared norms, (C,).
    single : bool, default=False
        Whether to compute distances in float32: half the memory and time, with ties within its round-off.

    Notes
    -----
    The norm of the candidate counts: without it, long candidates (large label sets) would win. Ties go to the first
    candidate; distances that differ by at most 64 eps of the size of their terms are ties, so that round-off does not
    decide. Distances are computed in blocks of bounded memory.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import StructuredPredictor
    >>> from fenchel.decoders import Candidates
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> Y = (np.hstack([X, 3 - X]) > 1.5).astype(int)
    >>> decoder = Candidates(np.array([[0, 1], [1, 0], [1, 1]]))
    >>> model = StructuredPredictor(output_kernel="linear", decoder=decoder, lam=1e-4).fit(X, Y)
    >>> model.predict(X[[0, -1]]).tolist()
    [[0, 1], [1, 0]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"single": Options((False, True))}

    def __init__(self, candidates: Outputs = None, single: bool = False) -> None:
        self.candidates = candidates
        self.single = single

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Store the representation and validate the candidates."""
        super().fit(Y, representation)
        own = as_sets(self.candidates, representation.is_pairwise)
        if isinstance(own, list):
            raise ValueError("Separate sets of candidates for each sample are passed to predict, not to Candidates.")
        self._known = None if own is None else self.known(own)
        return self

    def known(self, candidates: Outputs) -> _Known:
        """Return checked candidates with their norms."""
        if self.representation_.is_pairwise:
            is_pair = isinstance(candidates, tuple) and len(candidates) == 2
            if not is_pair or len(candidates[0]) != len(candidates[1]):
                raise ValueError(
                    "Candidates of a precomputed output kernel must be a pair (products with the training outputs of "
                    f"shape (C, n), squared norms of shape (C,)). Got {type(candidates).__name__}."
                )
            outputs, norms = candidates
        else:
            outputs, norms = candidates, None
        if len(outputs) == 0:
            raise ValueError("Each set of candidates must hold at least one. Got an empty set.")
        return _Known(outputs, norms)

    def distances(self, coordinates: Array, candidates: Outputs = None) -> Outputs:
        """Return squared distances: (m, C) for one set, a list of (C_i,) for a list of sets."""
        coordinates, candidates = self._short(coordinates), as_sets(candidates, self.representation_.is_pairwise)
        if isinstance(candidates, list):
            return self._of_each(coordinates, candidates)
        known = self._set(candidates)
        return self.representation_.distances(coordinates, known.outputs, known.norms)

    def decode(self, coordinates: Array, candidates: Outputs = None) -> Outputs:
        """Return the nearest candidate of each sample."""
        best = [int(order[0]) for order in self.nearest(coordinates, 1, candidates)]
        return self._picked([[k] for k in best], candidates, single=True)

    def top_k(self, coordinates: Array, k: int, candidates: Outputs = None) -> Outputs:
        """Return the k nearest candidates of each sample, nearest first: (m, k, ...), or a list of arrays."""
        return self._picked([list(order) for order in self.nearest(coordinates, k, candidates)], candidates)

    def nearest(self, coordinates: Array, k: int, candidates: Outputs = None) -> list[np.ndarray]:
        """Return the indices of the k nearest candidates of each sample, nearest first, ties by place."""
        check_parameter("top_k", "k", k, Interval(1, float("inf"), "left", integer=True))
        coordinates, candidates = self._short(coordinates), as_sets(candidates, self.representation_.is_pairwise)
        if isinstance(candidates, list):
            distances = [host(row)[None, :] for row in self._of_each(coordinates, candidates)]
            return [
                least_first(row, k, _slack(self._sizes(coordinates[i : i + 1], outputs_in(candidates[i])), row))[0]
                for i, row in enumerate(distances)
            ]
        known = self._set(candidates)
        sizes = self._sizes(coordinates, known.outputs)
        values, places, first = np.zeros((coordinates.shape[0], 0)), np.zeros((coordinates.shape[0], 0), dtype=int), 0
        for block in self.representation_.distance_blocks(coordinates, known.outputs, known.norms):
            rows = host(block)
            order = least_first(rows, k, _slack(sizes, rows))
            values = np.hstack([values, np.take_along_axis(rows, order, 1)])
            places = np.hstack([places, order + first])
            order = least_first(values, k, _slack(sizes, values), places)
            values, places = np.take_along_axis(values, order, 1), np.take_along_axis(places, order, 1)
            first += block.shape[1]
        return list(places)

    def _sizes(self, coordinates: Array, outputs: Outputs) -> np.ndarray:
        """Return the sizes of the terms of the distances, (m,), in the dtype of the coordinates."""
        return np.asarray(host(self.representation_.magnitudes(coordinates, outputs)))

    def _set(self, candidates: Outputs) -> _Known:
        """Return the set for all samples, as given or else the decoder's own."""
        if candidates is not None:
            return self.known(candidates)
        if self._known is None:
            raise ValueError("There are no candidates. Pass them to predict, or as Candidates(candidates).")
        return self._known

    def _short(self, coordinates: Array) -> Array:
        return (
            namespace(coordinates).astype(coordinates, namespace(coordinates).float32) if self.single else coordinates
        )

    def _of_each(self, coordinates: Array, candidates: Sequence[Outputs]) -> list[Array]:
        """Return the distances of each sample to its own set."""
        if len(candidates) != coordinates.shape[0]:
            raise ValueError(
                f"A list of candidates must hold one set for each of the {coordinates.shape[0]} samples. "
                f"Got {len(candidates)}."
            )
        empty = [i for i, candidate_set in enumerate(candidates) if len(outputs_in(candidate_set)) == 0]
        if empty:
            raise ValueError(f"Each set of candidates must hold at least one. The set of sample {empty[0]} is empty.")
        sets = [self.known(candidate_set) for candidate_set in candidates]
        return self.representation_.paired_distances(
            coordinates, [known.outputs for known in sets], [known.norms for known in sets]
        )

    def _picked(self, places: list[list[int]], candidates: Outputs, single: bool = False) -> Outputs:
        """Return the candidates at the given places of each sample's set."""
        candidates = as_sets(candidates, self.representation_.is_pairwise)
        if isinstance(candidates, list):
            picked = [
                _rows(outputs_in(candidate_set), order) for candidate_set, order in zip(candidates, places, strict=True)
            ]
            return joined(picked) if single else picked
        known = self._set(candidates)
        flat = _rows(known.outputs, [k for order in places for k in order])
        if single or not has_shape(flat):
            return flat
        return namespace(flat).reshape(flat, (len(places), -1, *flat.shape[1:]))


class TrainingSet(Decoder):
    """Nearest of the distinct training outputs.

    Notes
    -----
    Outputs known by a Gram matrix are returned as indices into the training sample.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import StructuredPredictor
    >>> from fenchel.decoders import TrainingSet
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> Y = (np.hstack([X, 3 - X]) > 1.5).astype(int)
    >>> model = StructuredPredictor(output_kernel="linear", decoder=TrainingSet(), lam=1e-4).fit(X, Y)
    >>> model.predict(X[[0, -1]]).tolist()
    [[0, 1], [1, 0]]
    """

    keeps_dtype = True

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Store the distinct training outputs."""
        super().fit(Y, representation)
        if representation.is_pairwise:
            Y = (Y, namespace(Y).linalg.diagonal(Y))
        else:
            Y = _rows(Y, _distinct(host(Y)))
        self.inner_ = Candidates(Y).fit(Y, representation)
        return self

    def decode(self, coordinates: Array) -> Outputs:
        """Return the nearest training output of each sample."""
        if self.representation_.is_pairwise:
            return np.array([order[0] for order in self.inner_.nearest(coordinates, 1)])
        return self.inner_.decode(coordinates)


def as_sets(candidates: Outputs, is_pairwise: bool) -> Outputs:
    """Return one set as an array or a pair, or a list of such sets; a list of objects counts as one set."""
    if not isinstance(candidates, list):
        return candidates
    if is_pairwise:
        return candidates
    if not candidates or not (isinstance(candidates[0], list) or has_shape(candidates[0])):
        return _as_array(candidates)
    return [candidate_set if has_shape(candidate_set) else _as_array(candidate_set) for candidate_set in candidates]


def _as_array(objects: Sequence[Outputs]) -> np.ndarray:
    """Return numbers as an array, other objects as an array of objects."""
    with suppress(ValueError):
        numbers = np.asarray(objects)
        if numbers.dtype.kind in "biuf":
            return numbers
    return as_objects(objects)


def _slack(sizes: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Return by how much equal distances may differ, (m,)."""
    return round_off(sizes + np.abs(np.min(distances, axis=1)).astype(sizes.dtype))


def outputs_in(candidates: Outputs) -> Outputs:
    """Return the candidates of a set, which may be a pair with their norms."""
    return candidates[0] if isinstance(candidates, tuple) else candidates


def _distinct(outputs: np.ndarray) -> list[int]:
    """Return the indices of the first occurrences of distinct outputs; outputs that cannot be compared are kept."""
    axis = None if outputs.ndim == 1 else 0  # object arrays can only be sorted without an axis
    try:
        return [int(place) for place in np.sort(np.unique(outputs, axis=axis, return_index=True)[1])]
    except (TypeError, ValueError):
        return list(range(len(outputs)))


def _rows(outputs: Outputs, places: list[int]) -> Outputs:
    if not has_shape(outputs):
        return [outputs[k] for k in places]
    return namespace(outputs).take(outputs, as_index(np.asarray(places), outputs), axis=0)
