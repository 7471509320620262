"""The race of candidate kernels: on parts of the sample first, and on all of it for the better ones."""

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from fenchel._progress import here
from fenchel._statistics import ranked
from fenchel.search.race.candidates import Candidate, reweighted
from fenchel.search.race.inputs import Inputs
from fenchel.search.race.parts import PartInputs
from fenchel.search.race.ridge import GappedRidge, Ridge, compressed

__all__ = ["Board", "Ridges", "Trial", "race_cost"]

_FEWEST = 100  # samples in the first rung
_KEPT = {8: 24, 4: 8, 2: 3}  # candidates kept after a part of the sample, by the inverse of its share
# the same if the race has a part of the sample, of whose time it takes little
_KEPT_OF_PART = {8: 24, 2: 8}
_WIDTHS = 2  # trials that refine the width
_STEPS = (4.0, 4.0, 2.0, 2.0)  # factors of the weights of parts
_WHOLE = 200  # samples on which weights of parts are compared; of more, they are compared on half of them


@dataclass(frozen=True)
class Trial:
    """Result for one candidate on a part of the sample: the best lam and its leave-one-out error."""

    candidate: Candidate
    n_samples: int
    lam: float
    error: float
    seconds: float


class Ridges:
    """Ridge regressions of candidates on the first samples, each factorised once, for several searches."""

    def __init__(
        self,
        inputs: Inputs | PartInputs,
        order: np.ndarray,
        weights: np.ndarray,
        groups: np.ndarray | None,
        gaps: np.ndarray | None = None,
    ) -> None:
        self.inputs = inputs
        self.order = order  # places of the samples in the data
        self.weights = weights
        self.groups = groups
        self.gaps = gaps  # (n, p), 0 where a target is missing; None if targets are complete
        self._known: dict[tuple[Candidate, int], Ridge | GappedRidge] = {}

    def of(self, candidate: Candidate, n: int) -> Ridge | GappedRidge:
        """Return the ridge regressions with a candidate on the first n samples."""
        if (candidate, n) not in self._known:
            groups = None if self.groups is None else self.groups[:n]
            matrix, weights = self.inputs.matrix(candidate, n), self.weights[:n]
            if self.gaps is None:
                self._known[candidate, n] = Ridge.of(matrix, weights, groups)
            else:
                self._known[candidate, n] = GappedRidge(matrix, weights, groups, self.gaps[:n])
        return self._known[candidate, n]


class Board:
    """Evaluates candidates on parts of the sample and records the results."""

    def __init__(self, ridges: Ridges, Y: np.ndarray, seen: np.ndarray | None) -> None:
        self.ridges = ridges
        self.Y = compressed(Y) if seen is None or seen.shape[1] == 1 else Y
        self.seen = seen
        self.trials: list[Trial] = []
        self._done, self._cost = 0.0, math.inf  # of the trials, in eigendecompositions of the whole sample

    def race(self, candidates: list[Candidate], is_part: bool = False) -> Trial:
        """Return the best trial on the whole sample, by successive halving; ``is_part``: there are more samples."""
        n = len(self.Y)
        self._cost = race_cost(n, len(candidates), is_part)
        for rows, count in _rungs(n, len(candidates), is_part):
            trials = [self.run(one, rows) for one in candidates[:count]]
            trials = [trials[place] for place in ranked([trial.error for trial in trials])]
            candidates = [trial.candidate for trial in trials]
        return trials[0]

    def reweighted(self, best: Trial) -> Trial:
        """Return the best trial after changes of the weights of the parts of the inputs, on half of a large sample."""
        n = len(self.Y)
        rows, found = n if n < _WHOLE else n // 2, best
        if len(best.candidate.weights) < 2:
            return best
        found = best if rows == n else self.run(best.candidate, rows)
        for step in _STEPS:
            for place in range(len(best.candidate.weights)):
                for factor in (step, 1 / step, 0.0):
                    other = reweighted(found.candidate, place, factor)
                    trial = None if other is None else self.run(other, rows)
                    if trial is not None and ranked([found.error, trial.error])[0]:
                        found = trial
        if rows == n or found.candidate == best.candidate:
            return found if rows == n else best
        trial = self.run(found.candidate, n)
        return trial if ranked([best.error, trial.error])[0] else best

    def refined(self, best: Trial) -> Trial:
        """Return the best trial after refining the width of the kernel."""
        for factor in (math.sqrt(2), 1 / math.sqrt(2)):
            other = self.run(replace(best.candidate, width=best.candidate.width * factor), len(self.Y))
            if ranked([best.error, other.error])[0]:
                return other
        return best

    def run(self, candidate: Candidate, n: int) -> Trial:
        """Return the best lam of a candidate on the first n samples."""
        start = time.perf_counter()
        ridge = self.ridges.of(candidate, n)
        lam, error = ridge.best_lam(self.Y[:n], None if self.seen is None else self.seen[:n])
        trial = Trial(candidate, n, lam, error, time.perf_counter() - start)
        self.trials.append(trial)
        self._done += (n / len(self.Y)) ** 3
        here().reach(self._done / self._cost)
        return trial


def race_cost(n: int, count: int, is_part: bool = False) -> float:
    """Return the cost of a race and its refinement, in eigendecompositions of all n samples."""
    return _WIDTHS + sum(trials * (rows / n) ** 3 for rows, trials in _rungs(n, count, is_part))


def _rungs(n: int, count: int, is_part: bool) -> list[tuple[int, int]]:
    """Return the samples and the candidates of each rung of a race."""
    rungs = []
    for share, kept in (_KEPT_OF_PART if is_part else _KEPT).items():
        if n // share >= _FEWEST and count > kept:
            rungs.append((n // share, count))
            count = kept
    return [*rungs, (n, count)]
