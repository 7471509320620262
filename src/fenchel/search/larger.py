"""Width and ridge of a large sample: what a small part has found is compared again on larger and larger ones."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fenchel._array import host
from fenchel._progress import part
from fenchel._statistics import ranked
from fenchel.model.sample import Sample
from fenchel.model.training_set import TrainingSet
from fenchel.operators import error_in_single, fits_in_single
from fenchel.resample.folds import whole_part
from fenchel.resample.streamed import LOOSE_GAP
from fenchel.search.result import Larger, SearchResult
from fenchel.search.scoring import Measure
from fenchel.search.search import MOST_SEARCHED, Search

__all__ = ["Ladder", "sizes"]

# the largest part is half of the sample: a product with its matrix takes a quarter of one in the last fit
_PART = 0.5
_GROWTH = 4  # so that all smaller parts together take a fifteenth of the time of the largest
_STEPS = 10.0 ** np.array([-0.5, 0.0, 0.5])  # lam relative to what was carried, extended while the error decreases
_WIDTHS = (1 / math.sqrt(2), math.sqrt(2))  # more samples resolve more: a narrower kernel is tried first
_PLACES = 8  # of a decade: parabolas through errors of loose solves are no finer


def sizes(n: int, width: int) -> list[int]:
    """Return the sizes of the parts, the smallest first; ``width`` is the number of features of the last fit, or n."""
    found, size = list[int](), _PART * math.sqrt(n * width)
    while size > MOST_SEARCHED:
        found.append(int(size))
        size /= _GROWTH
    return found[::-1]


@dataclass(frozen=True)
class Ladder:
    """Comparisons of widths and of the ridge lam n on larger and larger parts of a sample.

    The best loss is fitted to four fifths of each part and judged on the last fifth, by solves with a loose gap that
    share a matrix which is not factorised. ``learn(sample, lam, factor)`` returns the training set of a part with a
    multiple of the width of the kernel, ``None`` if the kernel has none; ``measure`` that of a search.
    """

    search: Search
    result: SearchResult  # of the search on a part
    whole: Sample
    learn: Callable[[Sample, float, float], TrainingSet | None]
    measure: Callable[[TrainingSet, list[np.ndarray]], Measure]

    def __call__(self, ridge: float, width: int) -> list[Larger]:
        """Return what each part has said, beginning at a ridge; the best of the last part is the last."""
        found, factor = list[Larger](), 1.0
        # a matrix that is stored once serves every lam; computed again in each product, it would cost several last fits
        parts = [size for size in sizes(self.whole.n_samples, width) if fits_in_single(size, self.whole.X)]
        for k, size in enumerate(parts):
            with part(1 / (len(parts) - k)):
                trials = list(self._on(self._part(size), ridge, factor))
            if not trials:
                break
            best = int(ranked([trial.error for trial in trials])[0])
            found += [*trials[:best], *trials[best + 1 :], trials[best]]
            ridge, factor = found[-1].ridge, found[-1].factor
            if not all(trial.is_whole for trial in trials):
                break
        return found

    def _part(self, size: int) -> Sample:
        """Return a part of so many samples, in whole groups and in an order that their contents give."""
        ranks = self.whole.contents()
        places = whole_part(ranks, size, self.whole.kept(self.search.groups))
        return self.whole.keeping(places[np.argsort(ranks[places], kind="stable")])

    def _on(self, sample: Sample, ridge: float, factor: float) -> Iterator[Larger]:
        """Yield what a part says about a width, and about its neighbours until one is better."""
        first = self._trial(sample, ridge, factor)
        if first is None:
            return
        yield first
        for step in _WIDTHS:
            other = self._trial(sample, ridge, factor * step)
            if other is not None:
                yield other
                if ranked([first.error, other.error])[0]:
                    break

    def _trial(self, sample: Sample, ridge: float, factor: float) -> Larger | None:
        """Return what a part says about a width, ``None`` if it cannot."""
        begin, weight = time.perf_counter(), float(np.sum(sample.counts))
        lams = (ridge / weight * _STEPS).tolist()
        training_set = self.learn(sample, min(lams), factor)
        if training_set is None:
            return None
        size = float(np.mean(host(training_set.ridge.gram.diag())))
        if not min(lams) * weight > error_in_single(sample.n_samples, size):
            return None
        share = weight / float(np.sum(self.whole.counts))
        least = self.search.least_lam * self.search.share / share
        search = replace(self.search, losses=[self.result.loss], lams=lams, checkpoint=None, unseen=(), tol=LOOSE_GAP)
        search = replace(search, share=share, least_lam=least)
        folds = search.folds(training_set)[:1]
        result = search(training_set, folds, self.measure(training_set, folds))
        lam = _least(result)
        seconds, held_out = time.perf_counter() - begin, len(folds[0])
        return Larger(
            sample.n_samples, factor, lam / size, result.least, seconds, held_out, lam * weight, result.is_whole
        )


def _least(result: SearchResult) -> float:
    """Return lam at the minimum of the parabola through the smallest error and its neighbours."""
    errors, (_, k) = result.cv_errors[0], result.best
    if not 0 < k < len(errors) - 1 or not np.isfinite(errors[k - 1 : k + 2]).all():
        return result.lam
    before, least, after = errors[k - 1 : k + 2]
    bend = before - 2 * least + after
    steps = (before - after) / bend / 2 if bend > 0 else 0.0
    width = math.log10(result.lams[k + 1] / result.lams[k])
    return float(result.lam * 10 ** (round(_PLACES * width * steps) / _PLACES))
