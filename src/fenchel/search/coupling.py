"""An output operator by which outputs with missing values learn from one another."""

import math
import time
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fenchel._array import host
from fenchel._progress import here
from fenchel._statistics import is_clearly_positive, ranked
from fenchel.data.content import shuffled
from fenchel.kernels import Matrix
from fenchel.representations import CoordinateSpace
from fenchel.search.aggregates import clipped
from fenchel.search.choice import KernelChoice, repeated_pairs
from fenchel.search.race import KernelSearch, Trial

__all__ = ["coupled"]

_SHARES = (0.0, 0.3, 0.6, 0.9)  # of the correlations in the operator; with 1 it may be singular
_STEPS = 10.0 ** np.array([-0.5, 0.0, 0.5])  # lam, relative to that of the kernel without coupling
_KERNELS = 3  # the best of the race: coupled outputs may need another one than single outputs
_MOST_VALUES = 1500  # whose matrix is inverted for each kernel, share and lam, in a third of a second
_ERRORS = 1.0  # standard errors by which coupled outputs must win


def coupled(choice: KernelChoice, groups: np.ndarray | None) -> KernelChoice:
    """Return a choice with the output operator by which outputs with missing values help each other, if they do.

    The operator is (1 - s) I + s C, where C is the correlation of the pairs of outputs that were observed. Kernel, s
    and lam are compared by the errors of samples that are left out, or groups of samples, in closed form. The identity
    is kept unless the error of coupled outputs is smaller by more than a standard error of the difference.
    """
    values = _Values.of(choice, groups)
    if values is None:
        return choice
    correlation, best = _correlation(choice), list[_Fit]()
    for k, trial in enumerate(choice.search.finals[:_KERNELS]):
        here().reach(k / _KERNELS)
        gram = values.gram(choice.search.ridges.inputs.kernel(trial.candidate)(values.X))
        best += [_best(choice, values, trial, share, gram * values.between(correlation, share)) for share in _SHARES]
    found = choice.told("share", [(fit.trial, fit.share) for fit in best])
    alone, joint = _first([fit for fit in best if fit.share == 0]), _first(best)
    if not is_clearly_positive(alone.errors - joint.errors, _ERRORS):
        return found
    operator = Matrix(_operator(correlation, joint.share))
    return replace(found, search=values.searched(choice.search, joint), operator=operator)


@dataclass(frozen=True)
class _Fit:
    """The fit of the observed values with one kernel, share and lam."""

    trial: Trial
    share: float
    lam: float  # that of the trial is relative to the mean diagonal
    left_out: np.ndarray  # (N,): residuals of each value, without its part of the sample
    fitted: np.ndarray  # (N,): residuals of the model of all values
    errors: np.ndarray  # (parts,)


@dataclass(frozen=True)
class _Values:
    """Observed values of some samples, one entry for each."""

    X: np.ndarray  # inputs of the samples
    kept: np.ndarray  # places of the samples in the search
    rows: np.ndarray  # (N,): place of the sample among these
    columns: np.ndarray  # (N,)
    targets: np.ndarray  # (N,)
    cleaned: np.ndarray  # (N,): targets without gross errors
    weights: np.ndarray  # of the samples
    parts: np.ndarray  # of the samples: equal numbers are left out together

    @classmethod
    def of(cls, choice: KernelChoice, groups: np.ndarray | None) -> Self | None:
        """Return the values of as many samples of a search as fit, drawn at random; ``None`` for fewer than two."""
        training_set, index = choice.training_set, choice.search.index
        sample, seen = training_set.sample, host(training_set.targets.observed)[index] > 0
        order = shuffled(sample.contents()[index])
        kept = np.sort(order[np.cumsum(np.sum(seen[order], axis=1)) <= _MOST_VALUES])
        labels, repeats = sample.kept(groups), repeated_pairs(sample, groups)
        if labels is None:
            labels = np.arange(sample.n_samples) if repeats is None else repeats[1]
        parts = np.unique(np.asarray(labels)[index[kept]], return_inverse=True)[1]
        if len(kept) == 0 or parts.max() == 0:
            return None
        rows, columns = np.nonzero(seen[kept])
        places = kept[rows], columns
        targets, cleaned = host(training_set.targets.rows)[index][places], choice.search.cleaned[places]
        X = host(sample.X)[index[kept]].astype(np.float64)
        return cls(X, kept, rows, columns, targets, cleaned, sample.counts[index[kept]], parts)

    def gram(self, matrix: np.ndarray) -> np.ndarray:
        """Return the Gram matrix of the samples between their values, (N, N)."""
        return matrix[np.ix_(self.rows, self.rows)]

    def between(self, correlation: np.ndarray, share: float) -> np.ndarray:
        """Return the operator of a share between the values, (N, N)."""
        return _operator(correlation, share)[np.ix_(self.columns, self.columns)]

    def residuals(self, gram: np.ndarray, lam: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals of the square loss, without the part of each value and with all of them.

        With A = G + lam S / s and a = A^-1 y, the residuals of a part that is left out are ((A^-1)_pp)^-1 a_p. Lam is
        scaled by the weight of the remaining parts, as in the race.
        """
        count, of_values = int(self.parts.max()) + 1, self.parts[self.rows]
        penalty = lam * float(np.sum(self.weights)) * (count - 1) / count / self.weights[self.rows]
        factor = cho_factor(gram + np.diag(penalty))
        inverse, left_out = cho_solve(factor, np.eye(len(gram))), np.empty(len(gram))
        duals = inverse @ self.cleaned
        for part in range(count):
            at = np.flatnonzero(of_values == part)
            left_out[at] = np.linalg.solve(inverse[np.ix_(at, at)], duals[at])
        moved = self.targets - self.cleaned
        return left_out + moved, penalty * duals + moved

    def errors(self, residuals: np.ndarray, ceiling: float | np.ndarray) -> np.ndarray:
        """Return the weighted squared errors of the parts, of each sample or value at most the ceiling."""
        squares = np.zeros((len(self.weights), int(self.columns.max()) + 1))  # each output was observed
        squares[self.rows, self.columns] = residuals**2
        return np.bincount(self.parts, self.weights * clipped(squares, ceiling))

    def searched(self, search: KernelSearch, fit: _Fit) -> KernelSearch:
        """Return the search with the kernel, lam and residuals of a fit, on its samples."""
        left_out, fitted = np.zeros((2, len(self.kept), search.cleaned.shape[1]))
        left_out[self.rows, self.columns], fitted[self.rows, self.columns] = fit.left_out, fit.fitted
        return replace(
            search,
            kernel=search.ridges.inputs.kernel(fit.trial.candidate),
            lam=fit.lam,
            error=fit.trial.error,
            candidate=fit.trial.candidate,
            left_out=left_out,
            residuals=fitted,
            sizes=search.sizes[self.kept],
            index=search.index[self.kept],
            cleaned=search.cleaned[self.kept],
        )


def _best(choice: KernelChoice, values: _Values, trial: Trial, share: float, gram: np.ndarray) -> _Fit:
    """Return the fit with the best lam near that of a trial of the race."""
    start, fits = time.perf_counter(), list[_Fit]()
    ceiling = choice.ceiling if choice.is_robust else math.inf
    size = float(np.average(np.diag(gram), weights=values.weights[values.rows]))
    for lam in (trial.lam * _STEPS).tolist():
        left_out, fitted = values.residuals(gram, lam * size)
        errors = values.errors(left_out, ceiling)
        seconds, error = time.perf_counter() - start, float(np.sum(errors) / np.sum(values.weights))
        found = Trial(trial.candidate, len(values.kept), lam, error, seconds)
        fits.append(_Fit(found, share, lam * size, left_out, fitted, errors))
    return _first(fits)


def _first(fits: list[_Fit]) -> _Fit:
    """Return the fit with the smallest error."""
    return fits[int(ranked([fit.trial.error for fit in fits])[0])]


def _correlation(choice: KernelChoice) -> np.ndarray:
    """Return the correlation of the pairs of outputs that were observed, without gross errors, (p, p)."""
    targets, index = choice.training_set.targets, choice.search.index
    cleaned, observed = choice.search.cleaned, host(targets.observed)[index]
    weights = choice.training_set.sample.counts[index]
    moments = CoordinateSpace(choice.training_set.codec.representation, cleaned, weights, observed).covariance()
    sizes = np.sqrt(np.diag(moments))
    sizes = np.where(sizes > 0, sizes, 1.0)
    found: np.ndarray = moments / sizes / sizes[:, None]
    return found


def _operator(correlation: np.ndarray, share: float) -> np.ndarray:
    found: np.ndarray = (1 - share) * np.eye(len(correlation)) + share * correlation
    return found
