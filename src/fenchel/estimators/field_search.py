"""Which map between fields is kept: of whole fields or of patches, by held-out fields or by held-out rollouts."""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fenchel._array import Array, as_index, host, namespace
from fenchel._statistics import distinct_rows
from fenchel.data.content import contents
from fenchel.estimators.field_maps import (
    SECOND_LOOK,
    STOREYS,
    FieldMap,
    GlobalPlan,
    LocalPlan,
    Neighbourhood,
    as_rows,
)
from fenchel.estimators.field_rollouts import HeldOut, chains, pieces, successors
from fenchel.exceptions import DataWarning, warn_user
from fenchel.resample.folds import split_whole, whole_part

__all__: list[str] = []

_LOG = logging.getLogger("fenchel")
_COMPARED = 250  # fields of which the maps are compared; a fifth of them is held out
_FEWEST = 4  # fields, or groups of them: two to learn from, in two folds, and two to compare maps with
_HELD_OUT = 0.2  # share of these, or eight fields, of which a standard error can be taken, but no more than half
_FOLLOWED = 50  # steps of held-out rollouts, at most, where nobody said how many are needed
_NOISE = (1.0, 4.0)  # in the inputs, in units of the error of one step: what a rollout feeds on

Plan = GlobalPlan | LocalPlan


def longest_chain(X: Array, Y: Array) -> int:
    """Return the number of steps that pairs of states follow each other, no more than can be compared."""
    return 1 if X.shape != Y.shape else min(_FOLLOWED, max(len(chain) for chain in chains(successors(X, Y))))


def best_map(
    plan: GlobalPlan,
    is_local: bool,
    steps: int,
    X: Array,
    Y: Array,
    sample_weight: np.ndarray | None,
    groups: np.ndarray | None = None,
) -> FieldMap:
    """Return the map of whole fields, or the local one that predicts held-out fields better, fitted to all fields.

    With more than one step, it is the one whose predictions from predictions are better. Groups are held out together.
    """
    best: Plan = plan
    if plan.estimator is None:
        counts = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        parts = [host(as_rows(X)), host(as_rows(Y)), *([] if groups is None else [groups[:, None]])]
        first, totals = distinct_rows(np.hstack(parts), host(counts))
        X, Y = (namespace(X).take(each, as_index(first, each), axis=0) for each in (X, Y))
        sample_weight, groups = None if np.all(totals == 1) else totals, _of_rows(groups, first)
        n_units = X.shape[0] if groups is None else _checked_number(groups, is_local)
        if is_local and X.shape[1:-1] == Y.shape[1:-1] and n_units >= _FEWEST and min(X.shape[1:-1]) > 2:
            best = _compared(plan, steps, X, Y, sample_weight, groups)
    if isinstance(best, LocalPlan):
        best = replace(best, storeys=STOREYS)
    return best.fit(X, Y, sample_weight, groups)


def _of_rows(labels: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if labels is None else labels[rows]


def _checked_number(groups: np.ndarray, is_local: bool) -> int:
    """Return the number of groups; raise if there is one, and warn if there are too few to compare maps."""
    count = len(np.unique(groups))
    if count < 2:
        raise ValueError("Samples with a positive weight and observed outputs must be of at least 2 groups. Got 1.")
    if is_local and count < _FEWEST:
        warn_user(
            f"Local maps were not tried: this needs at least {_FEWEST} groups, of which some are held out and others "
            f"are learned from. Got {count}. Pass smaller groups, or none if samples are independent.",
            DataWarning,
            "few-groups",
        )
    return count


def _compared(
    plan: GlobalPlan,
    steps: int,
    X: Array,
    Y: Array,
    sample_weight: np.ndarray | None,
    groups: np.ndarray | None,
) -> Plan:
    """Return the plan with the smallest errors of held-out fields.

    The best of each step replaces a simpler plan if it is better by two standard errors of the difference. Border and
    reach are decided upon first, then the shape, then whether the images of whole fields help. For rollouts, noise in
    the inputs and farther reaches follow.
    """
    xp, ranks, labels = namespace(X), contents(as_rows(Y), as_rows(X)), groups
    if steps > 1 and groups is None:
        labels = pieces(successors(X, Y))
    part = whole_part(ranks, _COMPARED, labels, 2 if groups is None else _FEWEST)
    inside, outside = (part[rows] for rows in _split(ranks[part], _of_rows(labels, part)))
    weights, together = _of_rows(sample_weight, inside), _of_rows(groups, inside)
    (X_in, Y_in), (X_out, Y_out) = (
        [xp.take(each, as_index(rows, each), axis=0) for each in (X, Y)] for rows in (inside, outside)
    )
    counts = np.ones(len(outside)) if sample_weight is None else sample_weight[outside]
    held_out = replace(HeldOut.of(X_out, Y_out, Y_in), steps=steps)

    def errors(candidate: Plan) -> np.ndarray:
        return held_out.errors(candidate.fit(X_in, Y_in, weights, together))

    def rollout_errors(candidate: Plan) -> np.ndarray:
        return held_out.rollout_errors(candidate.fit(X_in, Y_in, weights, together))

    shortest = min(X.shape[1:-1])
    best, least = _raced((_borders, _far, _wider, _wider, _with_images), plan, plan, shortest, errors, counts)
    if steps == 1:
        return best
    noise = float(np.sqrt(np.average(least, weights=counts) / held_out.variance))

    def noisy(best: Plan, plan: GlobalPlan, shortest: int) -> list[LocalPlan]:
        return [replace(best, noise=size * noise) for size in _NOISE] if isinstance(best, LocalPlan) else []

    def far(best: Plan, plan: GlobalPlan, shortest: int) -> list[LocalPlan]:
        if isinstance(best, GlobalPlan):
            return []
        around = replace(best.neighbourhood, reach=2 * best.neighbourhood.reach)
        return _within(noisy(replace(best, neighbourhood=around), plan, shortest), shortest)

    start = replace(best, storeys=SECOND_LOOK) if isinstance(best, LocalPlan) else best
    steady = (noisy, far, far, _whole)
    return _raced(steady, start, plan, shortest, rollout_errors, counts[held_out.starts()])[0]


def _split(ranks: np.ndarray, labels: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the fields that are learned from, and of those that are held out."""
    n, groups = len(ranks), len(ranks) if labels is None else len(np.unique(labels))
    count = max(int(_HELD_OUT * groups), min(-(-8 * groups // n), groups // 2))
    return split_whole(ranks, labels, count, 0)


def _raced(
    rounds: tuple[Callable[[Plan, GlobalPlan, int], list[LocalPlan] | list[GlobalPlan]], ...],
    start: Plan,
    plan: GlobalPlan,
    shortest: int,
    errors: Callable[[Plan], np.ndarray],
    counts: np.ndarray,
) -> tuple[Plan, np.ndarray]:
    """Return the best plan after several rounds, and its errors; the candidates of each depend on the best before."""
    best, least, tried = start, errors(start), [start]
    for number, candidates_after in enumerate(rounds, start=1):
        _LOG.info("Round %d of %d of maps between fields; error %.3g of %s", number, len(rounds), least.mean(), best)
        candidates = [each for each in candidates_after(best, plan, shortest) if each not in tried]
        tried += candidates
        found = [errors(each) for each in candidates]
        place = int(np.argmin([counts @ each for each in found])) if found else 0
        if found and _is_better(found[place], least, counts):
            best, least = candidates[place], found[place]
    return best, least


def _borders(best: Plan, plan: GlobalPlan, shortest: int) -> list[LocalPlan]:
    return [LocalPlan(Neighbourhood(1, is_periodic)) for is_periodic in (False, True)]


def _far(best: Plan, plan: GlobalPlan, shortest: int) -> list[LocalPlan]:
    return _within([LocalPlan(Neighbourhood(4, is_periodic)) for is_periodic in (False, True)], shortest)


def _wider(best: Plan, plan: GlobalPlan, shortest: int) -> list[LocalPlan]:
    if isinstance(best, GlobalPlan):
        return []
    around = best.neighbourhood
    larger = replace(around, is_cross=False), replace(around, reach=2 * around.reach)
    return _within([replace(best, neighbourhood=each) for each in larger], shortest)


def _with_images(best: Plan, plan: GlobalPlan, shortest: int) -> list[LocalPlan]:
    local = best if isinstance(best, LocalPlan) else LocalPlan(Neighbourhood(1, False))
    return [replace(local, after=plan)]


def _whole(best: Plan, plan: GlobalPlan, shortest: int) -> list[GlobalPlan]:
    return [plan]


def _within(plans: list[LocalPlan], shortest: int) -> list[LocalPlan]:
    """Return the plans whose neighbourhood is within an axis of so many points."""
    return [plan for plan in plans if 2 * plan.neighbourhood.reach < shortest]


def _is_better(found: np.ndarray, least: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether errors of the same fields are smaller in the mean, and by two standard errors of their log ratio.

    Errors of fields differ by orders of magnitude: a standard error of their difference is that of a few fields.
    """
    tiny, total = np.finfo(np.float64).tiny, float(np.sum(counts))
    gains = np.log((least + tiny) / (found + tiny))
    mean = float(counts @ gains) / total
    spread = float(np.sqrt(counts @ (gains - mean) ** 2 / max(total - 1, 1) / total))
    return bool(counts @ found < counts @ least) and mean > 2 * spread
