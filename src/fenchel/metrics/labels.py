"""Metrics for predicted label sets and rankings of candidates, and scorers for scikit-learn's searches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Outputs, host
from fenchel._check import Interval, Options, check_parameter, unmasked
from fenchel.metrics.scores import Predictor

__all__ = ["f1_scores", "hamming_losses", "label_scorer", "ranks_of", "subset_accuracies", "top_k_accuracies"]


def hamming_losses(Y: Outputs, predicted: Outputs) -> np.ndarray:
    """Return the share of wrong labels of each sample.

    Parameters
    ----------
    Y, predicted : array of shape (n, d)
        True and predicted labels, 0 or 1.

    Returns
    -------
    losses : ndarray of shape (n,)
        Losses in [0, 1]; lower is better.

    Examples
    --------
    >>> from fenchel.metrics import hamming_losses
    >>> hamming_losses([[1, 0, 1, 0], [0, 0, 1, 1]], [[1, 0, 0, 0], [0, 0, 1, 1]])
    array([0.25, 0.  ])
    """
    truth, guess = _labels(Y, predicted)
    return np.mean(truth != guess, axis=1)


def f1_scores(Y: Outputs, predicted: Outputs) -> np.ndarray:
    r"""Return the F1 score of each sample over its labels, :math:`2 |y \cap \hat y| / (|y| + |\hat y|)`.

    Parameters
    ----------
    Y, predicted
        As for ``hamming_losses``.

    Returns
    -------
    scores : ndarray of shape (n,)
        Scores in [0, 1]; higher is better. Two empty label sets have score 1.

    Examples
    --------
    >>> from fenchel.metrics import f1_scores
    >>> f1_scores([[1, 1, 1, 0], [0, 0, 0, 0]], [[1, 0, 0, 0], [0, 0, 0, 0]])
    array([0.5, 1. ])
    """
    truth, guess = _labels(Y, predicted)
    sizes = truth.sum(axis=1) + guess.sum(axis=1)
    return np.where(sizes > 0, 2 * np.sum(truth & guess, axis=1) / np.maximum(sizes, 1), 1.0)


def subset_accuracies(Y: Outputs, predicted: Outputs) -> np.ndarray:
    """Return 1.0 for each sample whose labels are all correct and 0.0 for the others.

    Parameters
    ----------
    Y, predicted
        As for ``hamming_losses``.

    Returns
    -------
    scores : ndarray of shape (n,)
        Zeros and ones.

    Examples
    --------
    >>> from fenchel.metrics import subset_accuracies
    >>> subset_accuracies([[1, 0], [0, 1]], [[1, 1], [0, 1]])
    array([0., 1.])
    """
    truth, guess = _labels(Y, predicted)
    return np.all(truth == guess, axis=1).astype(np.float64)


def ranks_of(scores: Sequence[ArrayLike], true: ArrayLike) -> np.ndarray:
    """Return the rank of each sample's true candidate by distance, 0 for the nearest.

    Parameters
    ----------
    scores : array of shape (n, C) or list of arrays of shape (C_i,)
        Distances to the candidates, such as ``StructuredPredictor.decision_scores`` returns; lower is better.
    true : array of int of shape (n,)
        Index of the true candidate among each sample's candidates.

    Returns
    -------
    ranks : ndarray of int of shape (n,)
        Number of candidates ranked before the true one. A candidate at the same distance ranks before it, so that a
        model that cannot tell candidates apart earns nothing.

    Examples
    --------
    >>> from fenchel.metrics import ranks_of
    >>> ranks_of([[0.1, 0.5, 0.3], [0.2, 0.2]], [2, 0])
    array([1, 1])
    """
    places = host(true)
    if len(scores) != len(places):
        raise ValueError(f"scores and true must have the same number of samples. Got {len(scores)} and {len(places)}.")
    if places.dtype.kind not in "iu":
        raise ValueError(f"true must hold the index of a candidate for each sample, as integers. Got {places.dtype}.")
    ranks = np.zeros(len(places), dtype=np.int64)
    for i, place in enumerate(places):
        row = host(scores[i]).astype(np.float64)
        if not 0 <= place < len(row):
            raise ValueError(f"true must be an index into the candidates. Sample {i} has {len(row)}, got {place}.")
        if np.isnan(row).any():
            raise ValueError(f"scores must not be NaN. Those of sample {i} are.")
        ranks[i] = np.sum(row <= row[place]) - 1
    return ranks


def top_k_accuracies(ranks: ArrayLike, k: int) -> np.ndarray:
    """Return 1.0 for each sample whose true candidate is among the first k, and 0.0 for the others.

    Parameters
    ----------
    ranks : array of int of shape (n,)
        Rank of the true candidate of each sample, 0 for the first, such as ``ranks_of`` returns.
    k : int
        Number of candidates that count.

    Returns
    -------
    scores : ndarray of shape (n,)
        Zeros and ones.

    Examples
    --------
    >>> from fenchel.metrics import top_k_accuracies
    >>> top_k_accuracies([0, 4, 2], 3)
    array([1., 0., 1.])
    """
    check_parameter("top_k_accuracies", "k", k, Interval(1, np.inf, "left", integer=True))
    places = host(ranks)
    if places.ndim != 1 or places.dtype.kind not in "iu" or (places < 0).any():
        raise ValueError(
            f"ranks must be a vector of non-negative integers. Got {places.dtype} of shape {places.shape}."
        )
    return (places < k).astype(np.float64)


_SCORES: dict[str, tuple[Callable[[Outputs, Outputs], np.ndarray], float]] = {
    "hamming": (hamming_losses, -1.0),
    "f1": (f1_scores, 1.0),
    "subset": (subset_accuracies, 1.0),
}
# the same as losses of each sample, from 0 to 1
LABEL_LOSSES: dict[str, Callable[[Outputs, Outputs], np.ndarray]] = {
    "hamming": hamming_losses,
    "f1": lambda Y, predicted: 1 - f1_scores(Y, predicted),
    "subset": lambda Y, predicted: 1 - subset_accuracies(Y, predicted),
}


def label_scorer(score: str = "hamming") -> "_LabelScorer":
    """Return a scorer of label sets for ``GridSearchCV``, ``cross_val_score`` and the like; greater is better.

    Parameters
    ----------
    score : {"hamming", "f1", "subset"}, default="hamming"
        Minus the mean of ``hamming_losses``, or the mean of ``f1_scores`` or ``subset_accuracies``.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)``, for any estimator that predicts 0/1 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from fenchel import StructuredPredictor
    >>> from fenchel.metrics import label_scorer
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = (np.hstack([X, 3 - X]) > 1.5).astype(float)
    >>> cross_val_score(StructuredPredictor(decoder="threshold"), X[::-1], Y[::-1], scoring=label_scorer("f1")).shape
    (5,)
    """
    check_parameter("label_scorer", "score", score, Options(tuple(_SCORES)))
    return _LabelScorer(score)


@dataclass(frozen=True)
class _LabelScorer:
    """A scorer, as an object so that it can be pickled."""

    score: str

    def __call__(self, estimator: Predictor, X: object, y: Outputs) -> float:
        function, sign = _SCORES[self.score]
        return sign * float(np.mean(function(y, estimator.predict(X))))


def _labels(Y: Outputs, predicted: Outputs) -> tuple[np.ndarray, np.ndarray]:
    """Return two checked label matrices as booleans."""
    label_sets = []
    for name, given in (("Y", Y), ("predicted", predicted)):
        labels = host(unmasked(given, name))
        if labels.ndim != 2:
            raise ValueError(f"{name} must have one row of labels for each sample. Got shape {labels.shape}.")
        if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
            raise ValueError(f"{name} must hold labels that are 0 or 1. Use a decoder such as 'threshold'.")
        label_sets.append(labels.astype(bool))
    truth, guess = label_sets
    if truth.shape != guess.shape:
        raise ValueError(f"predicted must have the shape of Y, {truth.shape}. Got {guess.shape} instead.")
    return truth, guess
