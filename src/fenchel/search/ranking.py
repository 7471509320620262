"""Held-out errors from the rank of the true output among candidates."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import joblib
import numpy as np

from fenchel._array import Array, Outputs, as_like, host, joined, namespace
from fenchel.decoders import Candidates, Decoder, TrainingSet
from fenchel.decoders.candidates import as_sets, outputs_in
from fenchel.decoders.decoder import Space
from fenchel.metrics import ranks_of
from fenchel.model.sample import Sample
from fenchel.search.scoring import Measure

__all__ = ["RANK_SCORES", "RankErrors", "Ranking", "rank_errors"]

RANK_SCORES = "'rank', 'reciprocal_rank', 'top_1' (or 'top_3', ...)"  # for messages
_BLOCK = 2**23  # distances in memory

RankErrors = Callable[[np.ndarray, np.ndarray], np.ndarray]  # from ranks, 0 for the first, and numbers of candidates


def rank_errors(name: object) -> RankErrors | None:
    """Return the errors of samples for a name of ``scoring``; ``None`` for a value that does not name ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.search.ranking import rank_errors
    >>> ranks, sizes = np.array([0, 1, 3]), np.array([2, 5, 4])
    >>> [rank_errors(name)(ranks, sizes).tolist() for name in ("rank", "reciprocal_rank", "top_2")]
    [[0.0, 0.25, 1.0], [0.0, 0.5, 0.75], [0.0, 0.0, 1.0]]
    """
    if name == "rank":
        return lambda ranks, sizes: ranks / np.maximum(sizes - 1, 1)
    if name == "reciprocal_rank":
        return lambda ranks, sizes: 1 - 1 / (ranks + 1)
    top = re.fullmatch(r"top_([1-9]\d*)", name) if isinstance(name, str) else None
    if top is None:
        return None
    k = int(top.group(1))
    return lambda ranks, sizes: (ranks >= k).astype(np.float64)


@dataclass(frozen=True)
class Ranking:
    """What the output of each sample is ranked among: one set for all samples, or a set for each."""

    score: str
    errors: RankErrors
    shared: Outputs | None  # candidates of all samples
    sets: Sequence[Outputs] | None  # or those of each sample
    own: list[np.ndarray]  # places of the output of each sample in its set

    @classmethod
    def of(
        cls,
        score: str,
        errors: RankErrors,
        candidates: Outputs,
        sample: Sample,
        decoder: Decoder,
        space: Space,
    ) -> "Ranking":
        """Return the ranking of the outputs of a sample among the candidates that were passed to ``fit``.

        Without any they are those of the decoder. Outputs of the sample are added to a set that is shared.
        """
        outputs, given = space.outputs_, as_sets(candidates, space.is_pairwise)
        rows = [host(outputs[i : i + 1]) for i in range(len(outputs))]
        if isinstance(given, list):
            if len(given) != sample.n_given:
                raise ValueError(
                    f"candidates must be one set, or a list of one set for each of the {sample.n_given} samples. "
                    f"Got a list of {len(given)}."
                )
            places = range(sample.n_given) if sample.index is None else sample.index
            sets = [_known(given[i], sample, space) for i in places]
            own = [_own(row, one, f"of sample {i} do") for row, one, i in zip(rows, sets, places, strict=True)]
            return cls(score, errors, None, sets, own)
        everyone = TrainingSet().fit(outputs, space).inner_.candidates
        given = getattr(decoder, "candidates", None) if given is None else given
        if given is not None and len(outputs_in(given)) == 0:
            raise ValueError("candidates must hold at least one. Got an empty set. None means the training outputs.")
        shared = everyone if given is None else _both(_known(given, sample, space), everyone)
        return cls(score, errors, shared, None, [_own(row, shared) for row in rows])

    def __str__(self) -> str:
        return f"{self.score} {joblib.hash((self.shared, self.sets))}"

    def measure(self, space: Space, coordinates: Callable[[np.ndarray], Array], folds: list[np.ndarray]) -> Measure:
        """Return the measure of a search; ``coordinates`` turns predictions into elements of the output space."""
        decoder, held_out = Candidates(self.shared).fit(space.outputs_, space), np.unique(np.concatenate(folds))
        sets = [self.shared] * len(self.own) if self.sets is None else self.sets
        sizes = np.array([len(outputs_in(one)) for one in sets])
        n_blocks = min(len(held_out), 1 + int(np.sum(sizes[held_out])) // _BLOCK)

        def measured(predictions: np.ndarray) -> np.ndarray:
            found = np.full(len(predictions), np.nan)
            for rows in np.array_split(held_out, n_blocks):
                given = None if self.sets is None else [self.sets[i] for i in rows]
                distances = [np.array(host(row)) for row in decoder.distances(coordinates(predictions[rows]), given)]
                for row, i in zip(distances, rows, strict=True):
                    row[self.own[i][1:]] = np.inf  # the same object again
                ranks = ranks_of(distances, np.array([self.own[i][0] for i in rows]))
                found[rows] = self.errors(ranks, sizes[rows])
            return found

        return measured


def _known(candidates: Outputs, sample: Sample, space: Space) -> Outputs:
    """Return candidates in terms of the samples that are kept, if they are known by products with all of them."""
    if not space.is_pairwise or sample.index is None:
        return candidates
    products, norms = candidates
    return products[:, sample.index], norms


def _both(given: Outputs, everyone: Outputs) -> Outputs:
    """Return the candidates of two sets, which may be pairs with their norms."""
    if isinstance(everyone, tuple):
        return tuple(_both(one, other) for one, other in zip(given, everyone, strict=True))
    if everyone.dtype == object:
        return joined([given, everyone])
    given = as_like(given, everyone)
    shape, wanted = tuple(given.shape[1:]), tuple(everyone.shape[1:])
    if shape != wanted and (shape or wanted != (1,)):
        raise ValueError(f"candidates must have the shape of the outputs, {('C', *wanted)}. Got {tuple(given.shape)}.")
    return joined([namespace(given).reshape(given, (-1, *everyone.shape[1:])), everyone])


def _own(output: np.ndarray, candidates: Outputs, whose: str = "do") -> np.ndarray:
    """Return the places of an output (1, ...) among candidates; raise if there is none."""
    rows = host(outputs_in(candidates))
    if output.dtype == object:
        places = np.flatnonzero([np.array_equal(row, output[0]) for row in rows])
    else:
        places = np.flatnonzero(np.all(rows.reshape(len(rows), -1) == output.reshape(1, -1), axis=1))
    if not len(places):
        raise ValueError(f"The candidates {whose} not contain its output. Add it, so that its rank is known.")
    return places
