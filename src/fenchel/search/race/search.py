"""The kernel and lam with the smallest closed-form leave-one-out error."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, host
from fenchel._progress import part
from fenchel.data.content import contents, shuffled
from fenchel.kernels import ScalarKernel
from fenchel.model.parts import Blocks
from fenchel.search.race.candidates import Candidate, dictionary, dictionary_of_parts
from fenchel.search.race.inputs import Inputs
from fenchel.search.race.parts import PartInputs
from fenchel.search.race.race import Board, Ridges, Trial, race_cost
from fenchel.search.race.ridge import GappedRidge, Ridge, sums_of_squares
from fenchel.search.race.robust import cleaned_targets, relative_sizes

__all__ = ["MOST_REFINED", "MOST_SAMPLES", "KernelSearch", "race_share", "search_kernel"]

Cleaning = Callable[[Ridge | GappedRidge, np.ndarray, np.ndarray | None], tuple[np.ndarray, np.ndarray]]
# an eigendecomposition takes n^3: on 1000 rows a race takes a second, on 2000 eight times as long
MOST_SAMPLES = 1000
MOST_REFINED = 2000  # samples on which the width of the best kernel is refined
_REST = 5.0  # cost of what follows, in eigendecompositions of all samples: five folds of four fifths, and the last fit
_PILOT = Candidate("exponential", 1.0, 1.0)  # approximates linear and any other continuous functions


@dataclass(frozen=True)
class KernelSearch:
    """The kernel and lam with the smallest leave-one-out error, with all data-dependent parameters resolved.

    ``error`` is the mean squared leave-one-out error, of the shortened targets in a robust search. ``left_out`` (n, p)
    are the leave-one-out residuals of the samples listed in ``index``, which are all samples unless there are more than
    ``max_samples``, and ``residuals`` (n, p) those of the fitted model, with which the threshold of a loss is compared;
    ``sizes`` (n,) those of ``left_out`` relative to what is expected at the inputs,
    ``cleaned`` (n, p) are the targets that the square loss has seen; ``trials`` lists what was tried, in order;
    ``ridges`` holds the factorisations, for a search with other targets; ``by_value`` says what was cleaned.
    """

    kernel: ScalarKernel
    lam: float
    error: float
    candidate: Candidate
    left_out: np.ndarray
    residuals: np.ndarray
    sizes: np.ndarray
    index: np.ndarray
    cleaned: np.ndarray
    trials: tuple[Trial, ...]
    ridges: Ridges = field(repr=False)
    by_value: bool = False

    @property
    def finals(self) -> list[Trial]:
        """The trials on all samples of the race, which has a sample given twice once; the best first."""
        n = min(MOST_SAMPLES, max(trial.n_samples for trial in self.trials))
        return sorted((trial for trial in self.trials if trial.n_samples == n), key=lambda trial: trial.error)

    def rivals(self) -> list[ScalarKernel]:
        """Return the best kernel of each other width that was tried on all samples, the best of all first."""
        found = dict[float, Candidate]()
        for trial in self.finals:
            if trial.candidate.width != self.candidate.width:
                found.setdefault(trial.candidate.width, trial.candidate)
        return [self.ridges.inputs.kernel(candidate) for candidate in found.values()]


def search_kernel(
    X: Array,
    targets: Array,
    weights: Array | None = None,
    candidates: Sequence[Candidate] | None = None,
    robust: bool = False,
    curves: bool = False,
    grid: ArrayLike | None = None,
    max_samples: int = MOST_REFINED,
    observed: Array | None = None,
    metric: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    ridges: Ridges | None = None,
    imputed: bool = True,
    by_value: bool = False,
    blocks: Blocks | None = None,
    refines: bool = True,
) -> KernelSearch:
    """Return the kernel and the lam of the square loss with the smallest leave-one-out error.

    Columns of ``X`` (channels, for curves) are divided by their standard deviations, so that their units do not matter.
    Candidates are compared on an eighth of the sample, the better ones on a quarter, on half and on all of it; the
    width of the winner is then refined.

    Parameters
    ----------
    X : array of shape (n, d), (n, m) or (n, m, c)
        Inputs; three dimensions mean curves.
    targets : array of shape (n, p)
        Centred outputs in orthonormal coordinates.
    weights : array of shape (n,) or None, default=None
        Sample weights.
    candidates : sequence of Candidate or None, default=None
        The kernels to choose from; ``None`` means ``dictionary()``.
    robust : bool, default=False
        Whether targets may contain gross errors. Targets far from their leave-one-out predictions are first moved
        towards them, to twice a robust scale of the residuals, by a pilot kernel and again by the winner.
    curves : bool, default=False
        Whether the rows of a matrix ``X`` are curves, with one scale for all of their points.
    grid : array of shape (m,) or None, default=None
        Points of the curves.
    max_samples : int, default=2000
        Maximum number of samples of the result, drawn from what the samples contain. Kernels are compared on at most
        1000 of these, and the width of the best one is refined on all of them.
    observed : array of shape (n, p) or None, default=None
        1 for known targets and 0 for others, whose errors do not count. ``targets`` holds estimates of these, from the
        known targets of the same sample. (Predictions in their place would leak the output of a sample into its own
        leave-one-out prediction; zeros, the centre, would pull all predictions towards the centre.)
    metric : array of shape (d,) or (d, k) or None, default=None
        Weights of the standardised columns, or linear combinations of them, that define the distances; the linear part
        uses the columns themselves. Not for curves.
    groups : array of shape (n,) or None, default=None
        Groups of samples that are left out together, such as replicates.
    ridges : Ridges or None, default=None
        Factorisations of another search on the same inputs, with the same weights, metric, groups and gaps.
    imputed : bool, default=True
        Whether ``targets`` holds estimates of unknown targets. Otherwise each output is fitted to the samples that have
        it.
    by_value : bool, default=False
        Whether a robust search moves single targets, in robust scales of their outputs, rather than whole rows.
    blocks : Blocks or None, default=None
        What the columns of inputs in parts are, without categories.
    refines : bool, default=True
        Whether to refine the width of the best kernel on more samples than kernels are compared on.

    Returns
    -------
    search : KernelSearch
        The kernel, resolved on the whole sample, and lam for ``OperatorKernelRegressor`` on the whole sample: lam
        times the weight of the samples, the ridge that is added to the Gram matrix, is that of the race.
    """
    X, Y = host(X), host(targets).astype(np.float64)
    counts = np.ones(len(X)) if weights is None else host(weights).astype(np.float64)
    labels = None if groups is None else np.asarray(groups)
    most = min(max_samples, max_samples if imputed or observed is None else MOST_SAMPLES)  # each gap has a matrix
    order = shuffled(contents(Y, X, counts, labels))[:most] if ridges is None else ridges.order
    is_curves = curves or X.ndim == 3
    seen = None if observed is None else host(observed).astype(np.float64)[order]
    if ridges is None:
        metric = None if metric is None else _checked_metric(metric, X, is_curves)
        inputs: Inputs | PartInputs
        if blocks is None:
            inputs = Inputs.of(X, counts, order, is_curves, grid, metric)
        else:
            inputs = PartInputs.of(X, counts, order, blocks)
        gaps = None if imputed else seen
        ridges = Ridges(inputs, order, counts[order], None if labels is None else labels[order], gaps)
    if candidates is None:
        candidates = dictionary(curves=is_curves) if blocks is None else dictionary_of_parts(len(blocks.names))
    candidates = list(candidates)
    share = float(np.sum(counts[order]) / np.sum(counts))
    clean = partial(cleaned_targets, by_value=by_value) if robust else None
    found = _found(ridges, Y[order], seen, candidates, clean, order, share, len(X) > MOST_SAMPLES, refines)
    return replace(found, by_value=robust and by_value)


def race_share(n: int, most: int = MOST_REFINED) -> float:
    """Return the share of a search on at most so many samples in the work of a fit to n samples."""
    n_kept = min(n, most)
    n_raced = min(n_kept, MOST_SAMPLES)
    cost = race_cost(n_raced, len(dictionary()), n > MOST_SAMPLES) + _winner_cost(n_kept)
    cost *= (n_raced / n) ** 3
    return cost / (cost + _REST)


def _winner_cost(n: int) -> float:
    """Return the cost of three widths on n samples, in eigendecompositions of the samples of the race."""
    return 3 * (n / MOST_SAMPLES) ** 3 if n > MOST_SAMPLES else 0.0


def _winner(
    ridges: Ridges,
    Y: np.ndarray,
    seen: np.ndarray | None,
    candidates: list[Candidate],
    clean: Cleaning | None,
    is_part: bool,
) -> tuple[Candidate, list[Trial]]:
    """Return the best candidate, and what was tried, on the first samples."""
    n = min(len(Y), MOST_SAMPLES)
    cleaned, counted = Y[:n], None if seen is None else seen[:n]
    if clean is not None:
        with part(1 / (1 + race_cost(n, len(candidates), is_part))):
            cleaned, counted = clean(ridges.of(_PILOT, n), cleaned, counted)
    board = Board(ridges, cleaned, counted)
    with part():
        best = board.reweighted(board.race(candidates, is_part))
        best = best if n < len(Y) else board.refined(best)
    return best.candidate, board.trials


def _refined(
    ridges: Ridges, Y: np.ndarray, seen: np.ndarray | None, best: Candidate, clean: Cleaning | None
) -> tuple[Candidate, list[Trial]]:
    """Return the best width of the winner on more samples than those of the race, and what was tried."""
    cleaned, counted = (Y, seen) if clean is None else clean(ridges.of(best, len(Y)), Y, seen)
    board = Board(ridges, cleaned, counted)
    return board.refined(board.run(best, len(Y))).candidate, board.trials


def _found(
    ridges: Ridges,
    Y: np.ndarray,
    seen: np.ndarray | None,
    candidates: list[Candidate],
    clean: Cleaning | None,
    order: np.ndarray,
    share: float,
    is_part: bool,
    refines: bool,
) -> KernelSearch:
    """Return the result of a search on samples in random order.

    ``order`` holds their places in the data, and ``share`` is their part of the weight of the data. ``is_part`` says
    whether the race has a part of the data, ``refines`` whether the width is refined where that is so.
    """
    cost = race_cost(min(len(Y), MOST_SAMPLES), len(candidates), is_part)
    with part(cost / (cost + _winner_cost(len(Y)))):
        best, trials = _winner(ridges, Y, seen, candidates, clean, is_part)
    if refines and len(Y) > MOST_SAMPLES:
        best, more = _refined(ridges, Y, seen, best, clean)
        trials += more
    ridge = ridges.of(best, len(Y))
    cleaned, counted = (Y, seen) if clean is None else clean(ridge, Y, seen)
    lam, _ = ridge.best_lam(cleaned, counted)
    left_out, fitted = ridge.left_out(lam, cleaned), ridge.fitted_residuals(lam, cleaned)
    error = float(np.average(sums_of_squares(left_out, counted), weights=ridges.weights))
    back, moved = np.argsort(order), Y - cleaned
    if seen is not None:
        left_out, fitted, moved = seen * left_out, seen * fitted, seen * moved
    return KernelSearch(
        ridges.inputs.kernel(best),
        lam * ridge.scale * share,  # more samples need less: the ridge n lam stays the same
        error,
        best,
        (left_out + moved)[back],
        (fitted + moved)[back],
        relative_sizes(ridge, left_out + moved, seen)[back],
        order[back],
        cleaned[back],
        tuple(trials),
        ridges,
    )


def _checked_metric(metric: np.ndarray, X: np.ndarray, is_curves: bool) -> np.ndarray:
    """Return a metric as an array of floats, or raise."""
    values = np.asarray(metric, dtype=np.float64)
    is_fit = values.ndim in (1, 2) and len(values) == X.shape[1] and bool(np.all(np.isfinite(values)))
    if is_curves or not is_fit:
        raise ValueError(
            f"metric must hold finite numbers, shape (d,) or (d, k), for vectors with d columns. Got shape "
            f"{values.shape} for inputs of shape {X.shape}{' that are curves' if is_curves else ''}."
        )
    return values
