"""States that follow each other, and how far predictions from predictions stay from them."""

from dataclasses import dataclass

import numpy as np

from fenchel._array import Array, as_index, as_like, host, namespace
from fenchel.estimators.field_bases import channel_units, in_units
from fenchel.estimators.field_maps import FieldMap, as_rows

__all__: list[str] = []

_PIECES = 10  # parts, at least, into which states that follow each other are cut, to be held out as a whole
_PREDICTED = 400_000  # points that a map predicts to be compared with others, and at least four fields
_UNRELATED = 2.0  # mean squared difference of two independent states, in variances


def successors(X: Array, Y: Array) -> np.ndarray:
    """Return for each pair the one whose input is its output, -1 if there is none."""
    inputs, outputs = (host(as_rows(each)) + 0.0 for each in (X, Y))  # -0.0 is 0.0
    places = {row.tobytes(): place for place, row in enumerate(inputs)}
    after = np.asarray([places.get(row.tobytes(), -1) for row in outputs])
    return np.where(after == np.arange(len(after)), -1, after)


def chains(after: np.ndarray) -> list[np.ndarray]:
    """Return the places of the pairs of each chain, in their order; each pair is in one chain."""
    is_seen, found = np.zeros(len(after), dtype=bool), []
    for place in (*np.flatnonzero(~np.isin(np.arange(len(after)), after)).tolist(), *range(len(after))):
        chain = []
        while place >= 0 and not is_seen[place]:
            is_seen[place] = True
            chain.append(place)
            place = int(after[place])
        if chain:
            found.append(np.asarray(chain))
    return found


def pieces(after: np.ndarray) -> np.ndarray | None:
    """Return the label of the piece of a chain to which each pair belongs, ``None`` if no pair follows another."""
    if np.all(after < 0):
        return None
    labels, count = np.zeros(len(after), dtype=int), 0
    for chain in chains(after):
        parts = np.array_split(chain, -(-len(chain) // -(-len(after) // _PIECES)))
        for part in parts:
            labels[part] = count
            count += 1
    return labels


@dataclass(frozen=True)
class HeldOut:
    """Pairs of states on which maps are compared, after one step or several."""

    X: Array
    Y: Array
    units: Array | None  # of the values of the outputs
    variance: float  # of the outputs, in these units
    steps: int = 1

    @classmethod
    def of(cls, X: Array, Y: Array, Y_in: Array) -> "HeldOut":
        """Return the pairs, with the units of outputs that are learned from."""
        units = channel_units(as_rows(Y_in), as_like(np.ones(Y_in.shape[0]), Y_in), int(Y_in.shape[-1]))
        rows = host(in_units(as_rows(Y_in), units))
        return cls(X, Y, units, float(np.nanmean((rows - np.nanmean(rows, axis=0)) ** 2)))

    def errors(self, fitted: FieldMap) -> np.ndarray:
        """Return the mean squared error of each field after one step."""
        return self._distances(fitted.predict(self.X), self.Y)

    def starts(self) -> np.ndarray:
        """Return the places of the pairs from which maps are followed over several steps."""
        n, points = self.X.shape[0], int(np.prod(self.X.shape[1:-1]))
        count = min(n, max(4, _PREDICTED // (2 * self.steps * points)))
        return np.linspace(0, n - 1, count).astype(int)

    def rollout_errors(self, fitted: FieldMap) -> np.ndarray:
        """Return the mean over steps of the largest squared error up to each step, for each start.

        The truth is the state that was observed, or the image of the last one: where states are not followed, this is
        what the error of one step becomes. Errors stop at the distance of unrelated states, and do not decrease:
        a prediction that has lost the truth meets it again by chance only.
        """
        xp, places = namespace(self.X), self.starts()
        after, lost = successors(self.X, self.Y), _UNRELATED * self.variance
        state, truth = (xp.take(each, as_index(places, each), axis=0) for each in (self.X, self.Y))
        worst = total = np.zeros(len(places))
        for step in range(self.steps):
            state = fitted.predict(state)
            truth = xp.where(xp.isnan(truth), state, truth)
            worst = np.maximum(worst, np.minimum(np.nan_to_num(self._distances(state, truth), nan=lost), lost))
            total = total + worst
            if np.all(worst == lost):
                return np.asarray((total + (self.steps - 1 - step) * lost) / self.steps)
            places = np.where(places < 0, -1, after[places])
            seen = xp.take(self.Y, as_index(np.maximum(places, 0), self.Y), axis=0)
            is_seen = as_like((places >= 0).astype(float).reshape(-1, *[1] * (truth.ndim - 1)), truth) > 0
            truth = xp.where(is_seen, seen, fitted.predict(truth))
        return np.asarray(total / self.steps)

    def _distances(self, fields: Array, truth: Array) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.asarray(np.nanmean(host(in_units(as_rows(fields - truth), self.units)) ** 2, axis=1))
