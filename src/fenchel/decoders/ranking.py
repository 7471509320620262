"""Decoder of rankings from weighted preferences."""

from typing import ClassVar, Self

import numpy as np

from fenchel._array import Outputs
from fenchel._check import Interval, Options
from fenchel.decoders._ties import first_least, round_off
from fenchel.decoders.decoder import Decoder, Space

__all__ = ["FeedbackArcSet", "insert_items", "order_items"]

_BLOCK = 2**25  # entries of the preferences in memory at a time


class FeedbackArcSet(Decoder):
    """Greedy ranking of items that violates as few weighted preferences as possible.

    The best ranking is a minimum feedback arc set of the preference graph, which is NP-hard to find; items are ordered
    by the heuristic of [Eades1993]_, in O(M²) for M items.

    Parameters
    ----------
    sweeps : int, default=0
        Number of sweeps that then move each item to its best position, keeping the others; O(M²) each. A sweep never
        makes a ranking worse, and the first one gains much if many pairs are unknown.

    Notes
    -----
    A prediction assigns each item a number from 1, ..., M, the largest to the best.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LossTrickPredictor
    >>> from fenchel.decoders import FeedbackArcSet
    >>> from fenchel.task_losses import RankLoss
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = np.hstack([X, 3 - X])
    >>> model = LossTrickPredictor(task_loss=RankLoss(), decoder=FeedbackArcSet()).fit(X, Y)
    >>> np.argmax(model.predict(X[[0, -1]]), axis=1).tolist()
    [1, 0]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"sweeps": Interval(0, float("inf"), "left", integer=True)}

    def __init__(self, sweeps: int = 0) -> None:
        self.sweeps = sweeps

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Check that the task loss is a loss of rankings."""
        self._loss = self._task_loss(representation, "preferences", what="rankings")
        return super().fit(Y, representation)

    def decode(self, coordinates: np.ndarray) -> np.ndarray:
        """Return one ranking for each row of weights, (m, M)."""
        outputs = np.asarray(self.representation_.outputs_)
        M = outputs.shape[1]
        ranks, step = np.empty((len(coordinates), M), dtype=np.int64), max(1, _BLOCK // M**2)
        for start in range(0, len(ranks), step):
            preferences = self._loss.preferences(coordinates[start : start + step], outputs)
            for k, order in enumerate(order_items(preferences), start):
                ranks[k, insert_items(preferences[k - start], order, self.sweeps)] = np.arange(M, 0, -1)
        return ranks


def order_items(preferences: np.ndarray) -> np.ndarray:
    """Order items, best first, by the heuristic of Eades, Lin and Smyth.

    Parameters
    ----------
    preferences : array of shape (M, M) or (m, M, M)
        Antisymmetric gains of placing item i before item j. Several matrices are processed side by side.

    Returns
    -------
    order : array of shape (M,) or (m, M)
        Items that lose against no other go first, those that win against no other last; if there are neither, the item
        with the largest sum of preferences goes first. Among sums that differ only by round-off, the first is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.decoders import order_items
    >>> preferences = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])  # 0 before 1 before 2
    >>> order_items(preferences).tolist()
    [0, 1, 2]
    """
    graphs = preferences.reshape(-1, *preferences.shape[-2:])
    m, M = graphs.shape[:2]
    score, equal = graphs.sum(axis=2), round_off(M * np.max(graphs, axis=(1, 2)))
    n_wins, n_losses = (np.count_nonzero(arcs, axis=2) for arcs in (graphs > 0, graphs < 0))
    order, everyone = np.empty((m, M), dtype=np.int64), np.arange(m)
    first, last = np.zeros(m, dtype=np.int64), np.full(m, M - 1)  # the positions that are still free
    for _ in range(M):
        sink, source = np.argmin(n_wins, axis=1), np.argmin(n_losses, axis=1)
        is_sink, is_source = n_wins[everyone, sink] == 0, n_losses[everyone, source] == 0
        item = np.where(is_sink, sink, np.where(is_source, source, first_least(-score, equal)))
        order[everyone, np.where(is_sink, last, first)] = item
        last -= is_sink
        first += ~is_sink
        row = graphs[everyone, item]
        score += row  # subtracts what each item won against this one: the matrix is antisymmetric
        n_wins -= row < 0
        n_losses -= row > 0
        score[everyone, item] = -np.inf
        n_wins[everyone, item] = n_losses[everyone, item] = 2 * M  # never zero again: at most M are subtracted
    return order.reshape(preferences.shape[:-1])


def insert_items(preferences: np.ndarray, order: np.ndarray, sweeps: int) -> np.ndarray:
    """Improve an order by moving each item in turn to its best position.

    Parameters
    ----------
    preferences : array of shape (M, M)
        Antisymmetric gains of placing item i before item j.
    order : array of shape (M,)
        The items, best first.
    sweeps : int
        Maximum number of passes over the items; it stops early if no item moves.

    Returns
    -------
    order : array of shape (M,)
        The items, best first.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.decoders import insert_items
    >>> preferences = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])  # 0 before 1 before 2
    >>> insert_items(preferences, np.array([2, 1, 0]), sweeps=2).tolist()
    [0, 1, 2]
    """
    order = order.copy()
    least = round_off(np.sum(np.abs(preferences), axis=1))  # a smaller gain does not count
    for _ in range(sweeps):
        has_moved = False
        for item in order.copy():
            here = int(np.argmax(order == item))
            won = np.cumsum(preferences[item].take(order))  # gain against the items up to each position
            place = int(np.argmax(won <= np.min(won) + least[item]))
            if won[place] >= -least[item]:
                place = -1  # the very first position, before which nothing is won or lost
            if won[here] - (won[place] if place >= 0 else 0.0) <= least[item]:
                continue
            has_moved = True
            if place < here:
                order[place + 2 : here + 1] = order[place + 1 : here]
                order[place + 1] = item
            else:
                order[here:place] = order[here + 1 : place + 1]
                order[place] = item
        if not has_moved:
            break
    return order
