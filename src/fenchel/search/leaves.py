"""A kernel of trees beside the smooth one, where targets jump."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.tree import ExtraTreeRegressor

from fenchel._array import host
from fenchel._statistics import is_clearly_positive, ranked
from fenchel.data.content import shuffled
from fenchel.kernels import Leaves, ScalarKernel, Scaled, Standardized
from fenchel.search.aggregates import clipped
from fenchel.search.choice import KernelChoice, repeated_pairs
from fenchel.search.race import Trial

__all__ = ["with_leaves"]

_LEAST_SAMPLES = 50  # below, the errors of held-out samples do not tell kernels apart
_MOST_SAMPLES = 1000  # above, five folds with Gram matrices of their own cost more than the rest of the fit
_TREES = 50  # 20 of them have not seen a fold of five
_HIDDEN = 0.4  # share of the folds that a tree does not see: the rest is about what a bootstrap sample holds
_LEAST_LEAF = 3  # samples in a leaf
_WEIGHTS = (0.0, 0.3, 2.0)  # of the trees, relative to the smooth kernel
_STEPS = 10.0 ** np.array([0.0, 1.0, 2.0])  # lam, relative to that of the smooth kernel; refined later, by the grid
_ERRORS = 1.0  # standard errors by which the trees must win
_LEAST_LAM = 1e-10  # an interpolating kernel leaves nothing to trees, and its Gram matrix may not be factorised
_GRID = 2.0**20  # targets become multiples of its inverse: sums are exact, and ties the same in other units


def with_leaves(choice: KernelChoice, groups: np.ndarray | None, folds: Sequence[np.ndarray]) -> KernelChoice:
    """Return a choice with the kernel of a forest in it, if that predicts held-out samples better.

    Each tree is grown without some of the folds. The errors of a fold are those of the trees that have not seen it, for
    several weights of the forest and several lam. The smooth kernel stays alone unless the error decreases by more than
    a standard error of the difference.
    """
    forest = _Forest.of(choice, groups, folds)
    if forest is None:
        return choice
    fits = [_best(choice, forest, weight) for weight in _WEIGHTS]
    alone, joint = fits[0], fits[1 + int(ranked([fit.trial.error for fit in fits[1:]])[0])]
    found = choice.told("leaves", [(fit.trial, fit.weight) for fit in fits])
    if not is_clearly_positive(alone.errors - joint.errors, _ERRORS):
        return found
    return forest.chosen(found, joint)


@dataclass(frozen=True)
class _Fit:
    """Fits without each fold with one weight of the forest, and the best lam."""

    trial: Trial
    weight: float
    lam: float
    left_out: np.ndarray  # (n, p), of the cleaned targets
    errors: np.ndarray  # (n,)


@dataclass(frozen=True)
class _Forest:
    """Trees grown on distinct samples, each without some of the folds."""

    images: np.ndarray  # standardised inputs of the distinct samples
    targets: np.ndarray  # without gross errors
    weights: np.ndarray
    labels: np.ndarray  # the fold of each
    places: np.ndarray  # (n,): which of them each sample of the search is
    smooth: np.ndarray  # Gram matrix of the chosen kernel
    trees: Leaves
    is_hidden: np.ndarray  # (trees, folds)

    @classmethod
    def of(cls, choice: KernelChoice, groups: np.ndarray | None, folds: Sequence[np.ndarray]) -> Self | None:
        """Return the forest of a choice; ``None`` if there are too few or too many samples, or folds overlap."""
        search, sample = choice.search, choice.training_set.sample
        n = sample.n_samples
        labels = np.full(n, -1)
        for k, fold in enumerate(folds):
            labels[fold] = k
        is_partition = len(folds) > 1 and sum(map(len, folds)) == n and labels.min() >= 0
        is_small = _LEAST_SAMPLES <= n == len(search.index) <= _MOST_SAMPLES and search.lam >= _LEAST_LAM
        if not (is_partition and is_small) or search.ridges.inputs.is_curves:
            return None
        first, places = repeated_pairs(sample, groups) or (np.arange(n), np.arange(n))
        if len(first) < _LEAST_SAMPLES:
            return None
        kernel = cast(Standardized, search.kernel)
        images = kernel.image(host(sample.X)[first].astype(np.float64))
        targets, weights = search.cleaned[first], np.bincount(places, sample.counts)
        order = shuffled(sample.contents()[first])
        is_hidden = _hidden(len(folds))
        trees = _grown(images[order], targets[order], weights[order], labels[first][order], is_hidden)
        return cls(images, targets, weights, labels[first], places, kernel.kernel(images), trees, is_hidden)

    def kernel(self, smooth: ScalarKernel, weight: float, fold: int | None = None) -> ScalarKernel:
        """Return the sum of the smooth kernel and of all trees, or of those that have not seen a fold."""
        outer = cast(Standardized, smooth)
        parts = Scaled(outer.kernel, 1 / (1 + weight)), Scaled(self.unseen(fold), weight / (1 + weight))
        return Standardized(parts[0] + parts[1], outer.mean, outer.scale, outer.by)

    def unseen(self, fold: int | None) -> Leaves:
        """Return the trees that have not seen a fold; all for ``None``."""
        trees = self.trees
        roots = trees.roots if fold is None else trees.roots[self.is_hidden[:, fold]]
        return Leaves(trees.columns, trees.thresholds, trees.children, roots)

    @cached_property
    def shares(self) -> list[np.ndarray]:
        """The Gram matrices of the trees that have not seen each fold."""
        return [self.unseen(fold)(self.images) for fold in range(self.is_hidden.shape[1])]

    def left_out(self, weight: float, lams: np.ndarray) -> np.ndarray:
        """Return the residuals of the square loss without the fold of each sample, (lams, n, p)."""
        found = np.empty((len(lams), *self.targets.shape))
        for k, share in enumerate(self.shares):
            out, rest = np.flatnonzero(self.labels == k), np.flatnonzero(self.labels != k)
            gram = (self.smooth + weight * share) / (1 + weight)
            inner, cross, weights = gram[np.ix_(rest, rest)], gram[np.ix_(out, rest)], self.weights[rest]
            for one, lam in zip(found, lams, strict=True):
                factor = cho_factor(inner + np.diag(lam * np.sum(weights) / weights))
                one[out] = self.targets[out] - cross @ cho_solve(factor, self.targets[rest])
        return found

    def chosen(self, choice: KernelChoice, fit: _Fit) -> KernelChoice:
        """Return the choice with the trees of a fit in its kernel, on the samples of the search."""
        search, smooth = choice.search, choice.search.kernel
        gram = (self.smooth + fit.weight * self.trees(self.images)) / (1 + fit.weight)
        ridge = np.diag(fit.lam * np.sum(self.weights) / self.weights)
        fitted = ridge @ cho_solve(cho_factor(gram + ridge), self.targets)
        moved = host(choice.training_set.targets.rows)[search.index] - search.cleaned
        found = replace(
            search,
            kernel=self.kernel(smooth, fit.weight),
            lam=fit.lam,
            error=fit.trial.error,
            left_out=fit.left_out[self.places] + moved,
            residuals=fitted[self.places] + moved,
        )
        unseen = tuple(self.kernel(smooth, fit.weight, fold) for fold in range(self.is_hidden.shape[1]))
        return replace(choice, search=found, unseen=unseen)


def _hidden(count: int) -> np.ndarray:
    """Return which folds each tree does not see, (trees, folds); all folds are hidden from as many trees."""
    rng, width = np.random.default_rng(0), max(1, round(_HIDDEN * count))
    found = list[np.ndarray]()
    while len(found) < _TREES:
        order = rng.permutation(count)
        found += [np.isin(np.arange(count), order[(np.arange(width) + first) % count]) for first in range(count)]
    return np.array(found)


def _grown(X: np.ndarray, Y: np.ndarray, weights: np.ndarray, labels: np.ndarray, is_hidden: np.ndarray) -> Leaves:
    """Return extremely randomised trees, each grown on the samples of the folds that it sees."""
    sizes = np.std(Y, axis=0)
    Y = np.round(Y / np.where(sizes > 0, sizes, 1.0) * _GRID) / _GRID
    X, trees = X.astype(np.float32), []
    for seed, hidden in enumerate(is_hidden):
        seen = ~hidden[labels]
        tree = ExtraTreeRegressor(min_samples_leaf=_LEAST_LEAF, random_state=seed)
        trees.append(tree.fit(X[seen], Y[seen], sample_weight=weights[seen], check_input=False))
    return Leaves.of(trees)


def _best(choice: KernelChoice, forest: _Forest, weight: float) -> _Fit:
    """Return the fits with the lam of the smallest error."""
    start, lams = time.perf_counter(), choice.search.lam * _STEPS
    ceiling = choice.ceiling if choice.is_robust else math.inf
    first = np.unique(forest.places, return_index=True)[1]
    moved = host(choice.training_set.targets.rows)[choice.search.index][first] - forest.targets
    left_out = forest.left_out(weight, lams)
    squares = clipped((left_out + moved) ** 2, ceiling) * forest.weights
    at = int(ranked(np.sum(squares, axis=1))[0])
    error = float(np.sum(squares[at]) / np.sum(forest.weights))
    trial = Trial(choice.search.candidate, len(forest.places), float(lams[at]), error, time.perf_counter() - start)
    return _Fit(trial, weight, float(lams[at]), left_out[at], squares[at])
