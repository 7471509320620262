"""Out-of-sample predictions for every (loss, lam) pair, by folds or leave-one-out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from fenchel._array import Array, as_index, host, namespace
from fenchel._progress import counted, here
from fenchel.losses.loss import Loss, rows_of
from fenchel.operators import streamed
from fenchel.operators.eigenbasis import Function
from fenchel.problem import DualProblem
from fenchel.problem.derived import bound_loss, holding_out, restricted
from fenchel.resample.ridge import approximate_loo, double_expansion
from fenchel.resample.streamed import streamed_predictions
from fenchel.resample.surface import Trail, batch_size, descending, factor_share, solve_bound_grid, solve_grid
from fenchel.solvers import ClosedForm, DouglasRachford, Solution

__all__ = ["HeldOut", "held_out", "joined", "nearly_held_out", "ridge_filter"]

# steps of the splitting for one pair and fold: most take 10 to 400, and weights spread over twelve decades may take any
# number; the gap is told
_MOST_STEPS = 2000
_FEW_FOLDS = 20  # with more folds, each is small and shares the factorisation of the whole sample


@dataclass(frozen=True)
class HeldOut:
    """Out-of-sample predictions of one (loss, lam) pair: each sample is predicted by a model that did not see it."""

    loss: int
    lam: int
    predictions: Array  # (n, p), or weights of the outputs (n, n); NaN for samples that no fold holds out
    gap: float  # largest relative gap over the folds


def held_out(
    problem: DualProblem,
    losses: Sequence[Loss],
    lams: Sequence[float],
    folds: Sequence[np.ndarray],
    tol: float = 1e-6,
    expanded: bool = False,
) -> Iterator[HeldOut]:
    """Yield the out-of-sample predictions of every (loss, lam) pair, from one eigendecomposition for all folds.

    A small fold is solved on the Gram matrix of the whole sample with the duals of its test part set to zero, so that
    all folds share the factorisation and are solved side by side. A large fold is solved on the Gram matrix of its
    training part, with its own factorisation, as a surface. The square loss needs no solve at all.

    With ``expanded=True`` predictions are weights of the outputs of the other samples, see ``double_expansion``.
    """
    bound = [bound_loss(problem, loss) for loss in losses]
    if streamed(problem.gram) is not None and not expanded:
        pairs = streamed_predictions(problem, bound, lams, folds, tol)
        yield from counted((HeldOut(*pair) for pair in pairs), len(bound) * len(lams))
        return
    is_square = [not expanded and ClosedForm().why_not(problem.with_(loss=loss)) is None for loss in bound]
    if any(is_square):
        ridge = _RidgeHeldOut(problem, folds)
        yield from counted(_ridge_pairs(ridge, np.flatnonzero(is_square), lams), sum(is_square) / len(losses))
    others = [i for i, is_done in enumerate(is_square) if not is_done]
    if others:
        solver = _folds_solver(problem, folds, expanded)
        for fold_predictions in counted(solver([bound[i] for i in others], lams, tol)):
            yield replace(fold_predictions, loss=others[fold_predictions.loss])


def joined(parts: Sequence[HeldOut]) -> HeldOut:
    """Return the out-of-sample predictions of one pair from those of each fold."""
    predictions = np.array(host(parts[0].predictions))
    for one in parts[1:]:
        predictions = np.where(np.isnan(predictions), host(one.predictions), predictions)
    return replace(parts[0], predictions=predictions, gap=max(one.gap for one in parts))


def _ridge_pairs(ridge: "_RidgeHeldOut", losses: np.ndarray, lams: Sequence[float]) -> Iterator[HeldOut]:
    """Yield the predictions of the square loss; those of all pairs count as one more factorisation."""
    pairs = list(product(losses.tolist(), descending(lams)))
    for k, (i, j) in enumerate(pairs, 1):
        predictions = ridge(float(lams[j]))
        here().reach((ridge.n_factors + k / len(pairs)) / (ridge.n_factors + 1))
        yield HeldOut(i, j, predictions, 0.0)


def nearly_held_out(
    problem: DualProblem, losses: Sequence[Loss], lams: Sequence[float], tol: float = 1e-6
) -> Iterator[HeldOut]:
    """Yield approximate leave-one-out predictions of every (loss, lam) pair, from one solve and one linear system each.

    The solves use lam (n - 1) / n, which gives the whole sample the same regularisation as a model without one sample:
    the result is exact for the square loss.
    """
    n = problem.targets.shape[0]
    bound, same = [bound_loss(problem, loss) for loss in losses], [float(lam) * (n - 1) / n for lam in lams]
    for i, j, solution in solve_grid(problem, losses, same, tol):
        predictions = approximate_loo(problem.with_(loss=bound[i], lam=same[j]), solution)
        yield HeldOut(i, j, predictions, solution.certificate.distance)


class _Folds(ABC):
    """The folds of one problem."""

    def __init__(self, problem: DualProblem, folds: Sequence[np.ndarray], expanded: bool) -> None:
        self.problem = problem
        self.folds = folds
        self.expanded = expanded

    @abstractmethod
    def __call__(self, losses: list[Loss], lams: Sequence[float], tol: float) -> Iterator[HeldOut]:
        """Yield the out-of-sample predictions of every pair, from large to small lam; losses are bound."""

    def _unknown(self) -> np.ndarray:
        """Return an array of NaN for predictions that are not yet known."""
        n, p = self.problem.targets.shape
        return np.full((n, n if self.expanded else p), np.nan)

    def _expand(self, problem: DualProblem, solution: Solution, fold: np.ndarray, train: np.ndarray) -> np.ndarray:
        """Return the weights of all outputs in the predictions of a fold; ``train`` are the samples of ``problem``."""
        like, root = self.problem.targets, self.problem.root
        active, omega = double_expansion(problem, solution)
        cross = self.problem.gram.block(as_index(fold, like), as_index(train[active], like))
        weights = np.zeros((len(fold), like.shape[0]))
        weights[:, train] = host(cross.matmul(omega)) * problem.scale
        return weights if root is None else weights * host(root).T / host(root)[fold]


class _Masked(_Folds):
    """Folds solved side by side on the Gram matrix of the whole sample, with their test parts held out."""

    def __init__(self, problem: DualProblem, folds: Sequence[np.ndarray], expanded: bool) -> None:
        super().__init__(problem, folds, expanded)
        problem.shared.factorize()
        self.cut = [holding_out(problem, fold) for fold in folds]

    def __call__(self, losses: list[Loss], lams: Sequence[float], tol: float) -> Iterator[HeldOut]:
        """Yield the out-of-sample predictions, starting each solve from an extrapolation of the last two lam."""
        everyone = np.arange(self.problem.targets.shape[0])
        n_pairs = len(losses) * len(lams)
        first = factor_share(self.problem, n_pairs * len(self.folds))
        here().reach(first)
        for i, loss in enumerate(losses):
            trails = [Trail() for _ in self.folds]
            for k, j in enumerate(descending(lams), i * len(lams) + 1):
                lam = float(lams[j])
                problems = [cut.with_(loss, lam) for cut in self.cut]
                starts, solutions = [trail.start(lam) for trail in trails], list[Solution]()
                for begin in range(0, len(problems), batch_size(self.problem)):
                    part = slice(begin, begin + batch_size(self.problem))
                    solutions += DouglasRachford(max_iter=_MOST_STEPS).solve_all(problems[part], tol, starts[part])
                predictions = self._unknown()
                for problem, solution, fold, trail in zip(problems, solutions, self.folds, trails, strict=True):
                    trail.add(lam, solution.state)
                    if self.expanded:
                        predictions[fold] = self._expand(problem, solution, fold, everyone)
                    else:
                        predictions[fold] = host(self.problem.unscale(solution.predictions))[fold]
                here().reach(first + (1 - first) * k / n_pairs)
                yield HeldOut(i, j, predictions, max(solution.certificate.distance for solution in solutions))


class _Cut(_Folds):
    """Folds that each have a surface, on the smaller Gram matrix of their training part."""

    def __init__(self, problem: DualProblem, folds: Sequence[np.ndarray], expanded: bool) -> None:
        super().__init__(problem, folds, expanded)
        everyone = np.arange(problem.targets.shape[0])
        self.train = [np.setdiff1d(everyone, fold) for fold in folds]
        self.alone = [restricted(problem, train) for train in self.train]
        self.cross = [
            problem.gram.block(as_index(fold, problem.targets), as_index(train, problem.targets))
            for fold, train in zip(folds, self.train, strict=True)
        ]

    def __call__(self, losses: list[Loss], lams: Sequence[float], tol: float) -> Iterator[HeldOut]:
        """Yield the out-of-sample predictions from one surface per fold; the surfaces advance side by side."""
        root = None if self.problem.root is None else host(self.problem.root)
        rows = [[rows_of(loss, train) for loss in losses] for train in self.train]
        splitting = DouglasRachford(max_iter=_MOST_STEPS)
        surfaces = [
            counted(solve_bound_grid(part, row, lams, tol, splitting=splitting), 1 / (len(rows) - k))
            for k, (part, row) in enumerate(zip(self.alone, rows, strict=True))
        ]
        for members in zip(*surfaces, strict=True):
            predictions, gap = self._unknown(), 0.0
            i, j, _ = members[0]
            for f, (_, _, solution) in enumerate(members):
                gap = max(gap, solution.certificate.distance)
                fold, problem = self.folds[f], self.alone[f].with_(rows[f][i], float(lams[j]))
                if self.expanded:
                    predictions[fold] = self._expand(problem, solution, fold, self.train[f])
                    continue
                rows_out = host(self.cross[f].matmul(solution.duals)) * problem.scale
                predictions[fold] = rows_out if root is None else rows_out / root[fold]
            yield HeldOut(i, j, predictions, gap)


def _folds_solver(problem: DualProblem, folds: Sequence[np.ndarray], expanded: bool = False) -> _Folds:
    """Return the solver of the folds: small folds side by side, large folds as separate problems."""
    n = problem.targets.shape[0]
    is_large = len(folds) <= _FEW_FOLDS and min(len(fold) for fold in folds) > 0.05 * n
    kind = _Cut if is_large and len(problem.gram.terms) == 1 else _Masked
    return kind(problem, folds, expanded)


class _RidgeHeldOut:
    """Exact out-of-sample predictions for the square loss.

    With G = I + H on the whole sample (H scaled for the training samples) and a = G^-1 y, the residual of a single
    left-out sample is a_i / (G^-1)_ii, from the eigenbasis of the whole sample. A larger fold has its own eigenbasis,
    for every lam.
    """

    def __init__(self, problem: DualProblem, folds: Sequence[np.ndarray]) -> None:
        self.problem = problem
        self.folds = folds
        self.is_single = all(len(fold) == 1 for fold in folds)
        self.n_factors = 1 if self.is_single else len(folds)
        self._predictors: list[Callable[[Function], Array]] = []
        self._scales: list[float] = []

    def __call__(self, lam: float) -> np.ndarray:
        """Return the out-of-sample predictions."""
        if not self._scales:
            self._scales = [holding_out(self.problem, fold).total for fold in self.folds]
        scales = [1 / (lam * total) for total in self._scales]
        predictions = self._alone(scales) if self.is_single else self._cut(scales)
        return predictions if self.problem.root is None else predictions / host(self.problem.root)

    def _cut(self, scales: list[float]) -> np.ndarray:
        """Return predictions from the eigenbasis of the training part of each fold."""
        targets = self.problem.targets
        if not self._predictors:
            everyone = np.arange(targets.shape[0])
            for fold in self.folds:
                train, test = as_index(np.setdiff1d(everyone, fold), targets), as_index(fold, targets)
                part, cross = self.problem.gram.block(train), self.problem.gram.block(test, train)
                known = namespace(targets).take(targets, train, axis=0)
                self._predictors.append(part.factorize().images(cross, known))
                here().reach(len(self._predictors) / (self.n_factors + 1))
        predictions = np.full(tuple(targets.shape), np.nan)
        for scale, fold, images in zip(scales, self.folds, self._predictors, strict=True):
            predictions[fold] = scale * host(images(partial(ridge_filter, scale)))
        return predictions

    def _alone(self, scales: list[float]) -> np.ndarray:
        """Return predictions of samples left out one by one, from the eigenbasis of the whole sample."""
        basis, targets = self.problem.shared.factorize(), self.problem.targets
        predictions = np.full(tuple(targets.shape), np.nan)
        by_scale: dict[float, np.ndarray] = {}
        for scale, fold in zip(scales, self.folds, strict=True):
            if scale not in by_scale:
                ridge = partial(ridge_filter, scale)
                residuals = basis.left_out(ridge, basis.function(ridge)(targets))
                by_scale[scale] = host(targets) - host(residuals)
            predictions[fold] = by_scale[scale][fold]
        return predictions


def ridge_filter(scale: float, values: Array) -> Array:
    """Return the function of the eigenvalues that gives the duals of the square loss."""
    return 1 / (1 + scale * values)
