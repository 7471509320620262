"""Rankings from weighted preferences."""

from typing import Any, Self

import numpy as np

from fenchel.decoders.base import Decoder

__all__ = ["FeedbackArcSet", "order_items"]


class FeedbackArcSet(Decoder):
    """The ranking of items that goes against as little preference as a greedy order finds.

    The best ranking is a minimum feedback arc set of the graph of preferences, which is hard to find; items are put in
    order by the heuristic of [Eades1993]_, in O(M²) for M items.

    Notes
    -----
    A prediction gives each item a number of 1, ..., M, the greatest to the best.
    """

    def fit(self, Y: Any, representation: Any) -> Self:
        """Look whether the task loss is one of rankings."""
        self._loss = self._task_loss(representation, "preferences", what="rankings")
        return super().fit(Y, representation)

    def decode(self, coordinates: np.ndarray) -> np.ndarray:
        """Return one ranking for each row of weights, (m, M)."""
        outputs = np.asarray(self.representation_.outputs_)
        ranks = np.empty((len(coordinates), outputs.shape[1]), dtype=np.int64)
        for row, weights in zip(ranks, coordinates, strict=True):
            row[order_items(self._loss.preferences(weights, outputs))] = np.arange(len(row), 0, -1)
        return ranks


def order_items(preferences: np.ndarray) -> np.ndarray:
    """Return the items, the best first, in the order of Eades, Lin and Smyth.

    Parameters
    ----------
    preferences : array of shape (M, M)
        Antisymmetric: what is won by item i coming before item j.

    Returns
    -------
    order : array of shape (M,)
        Items that lose against no other go first, those that win against no other last; when there is neither, the item
        with the greatest sum of preferences goes first.
    """
    M = len(preferences)
    wins, losses = preferences > 0, preferences < 0
    total, n_wins, n_losses = preferences.sum(axis=1), wins.sum(axis=1), losses.sum(axis=1)
    left: list[int] = []
    right: list[int] = []
    remaining = np.ones(M, dtype=bool)
    score = total.copy()  # minus infinity once an item has its place
    for _ in range(M):
        last = np.flatnonzero(remaining & (n_wins == 0))
        first = np.flatnonzero(remaining & (n_losses == 0)) if len(last) == 0 else last
        item = int(first[0]) if len(first) else int(np.argmax(score))
        (right if len(last) else left).append(item)
        remaining[item], score[item] = False, -np.inf
        score += preferences[item]  # less what each item won against this one: the matrix is antisymmetric
        n_wins -= losses[item]
        n_losses -= wins[item]
    return np.array(left + right[::-1])
