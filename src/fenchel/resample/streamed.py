"""Out-of-sample predictions by products with a Gram matrix that is not factorised, for large samples."""

from collections.abc import Iterator, Sequence

import numpy as np

from fenchel._array import Array, as_like, host, namespace
from fenchel.losses.loss import Loss, is_square, row_saturation
from fenchel.operators import ConjugateGradients, KeptRows, Operator, kronecker, streamed
from fenchel.problem import Certificate, DualProblem
from fenchel.problem.batch import Batch
from fenchel.problem.derived import holding_out, rotated, rotation
from fenchel.problem.dual_problem import has_gaps
from fenchel.resample.surface import Trail, descending
from fenchel.solvers import DouglasRachford
from fenchel.solvers.krylov import ALONE, tightness
from fenchel.solvers.linear import Conjugate
from fenchel.solvers.splitting import State, Warm, first_rho, shortening

__all__ = ["LOOSE_GAP", "streamed_predictions"]

# relative gap of the folds: held-out errors are then within 2 % of those of exact solves (tests/estimators/
# test_any_size.py), and neighbours on a grid of lam by half decades differ by 2 to 15 % (n from 1000 to 10 000)
LOOSE_GAP = 5e-3
_MOST_STEPS = 100  # of the splitting for one pair; most take 3 to 15


def streamed_predictions(
    problem: DualProblem, losses: Sequence[Loss], lams: Sequence[float], folds: Sequence[np.ndarray], tol: float
) -> Iterator[tuple[int, int, np.ndarray, float]]:
    """Yield (loss index, lam index, predictions (n, p), largest relative gap) of every pair.

    All folds are solved side by side, as the samples that each keeps of one Gram matrix: a product serves every fold,
    and predicts the samples that it holds out. Each lam starts from the solution of the last one.
    """
    for i, loss in enumerate(losses):
        sweep = _Sweep(problem.with_(loss=loss), folds)
        for j in descending(lams):
            predictions, gap = sweep(float(lams[j]), tol)
            yield i, j, predictions, gap


class _Sweep:
    """The folds of a problem with one loss, from large to small lam."""

    def __init__(self, problem: DualProblem, folds: Sequence[np.ndarray]) -> None:
        self.given = problem
        self.problem = rotated(problem)
        self.folds = folds
        self.cut = [holding_out(self.problem, fold) for fold in folds]
        scalar, output = streamed(self.problem.gram), self.problem.gram.terms[0][1]
        assert scalar is not None  # checked by the caller
        self.gram: Operator = kronecker(scalar.rounded, output.matrix)
        masks = [np.ones((problem.targets.shape[0], 1)) for _ in folds]
        for mask, fold in zip(masks, folds, strict=True):
            mask[fold] = 0
        self.rows = KeptRows(scalar.basis, [as_like(mask, problem.targets) for mask in masks])
        self.trails = [Trail() for _ in folds]
        self.linear: Conjugate | None = None

    def __call__(self, lam: float, tol: float) -> tuple[np.ndarray, float]:
        """Return the out-of-sample predictions and the largest relative gap."""
        batch = Batch(tuple(cut.with_(lam=lam) for cut in self.cut))
        state = self._begun(batch, [trail.start(lam) for trail in self.trails])
        for _ in range(_MOST_STEPS):
            state = DouglasRachford().step(batch.problems, state)
            predictions, certificates = self._certified(batch, state)
            gap = max(certificate.distance for certificate in certificates)
            if gap <= tol:
                break
            _gradients(state).rtol = tightness(self._is_alone, gap, tol)
        self.linear = _linear(state)
        for k, trail in enumerate(self.trails):
            trail.add(lam, DouglasRachford().standing(state, k))
        return self._held_out(predictions), gap

    @property
    def _is_alone(self) -> bool:
        return is_square(self.problem.loss) and not has_gaps(self.problem)

    def _begun(self, batch: Batch, starts: list[Warm | None]) -> State:
        """Return the first state: from the last lam, or from the solution for the square loss."""
        xp, known = namespace(self.problem.targets), [start for start in starts if start is not None]
        rhos = np.full(len(starts), ALONE)
        if not self._is_alone and known:
            rhos = np.asarray([start.rho for start in known])
        elif not self._is_alone:
            top, curvature = float(xp.max(self.rows.basis.left_values)), self.problem.curvature
            rhos = np.asarray([first_rho(curvature, top * problem.scale) for problem in batch.problems])
        linear = Conjugate(batch, rhos, self.gram, self.linear, self.rows)
        if known:
            z = xp.stack([start.z for start in known], axis=1)
        elif self._is_alone:
            z = xp.stack([0 * self.problem.targets for _ in starts], axis=1)
        else:
            z = self._from_ridge(batch, rhos)
        return DouglasRachford().begun(batch, z, rhos, linear)

    def _from_ridge(self, batch: Batch, rhos: np.ndarray) -> Array:
        """Return z at the solution for the square loss, with features in place of the kernel."""
        xp, targets = namespace(self.problem.targets), self.problem.targets
        right = xp.stack([targets for _ in batch.problems], axis=1) * self.rows.mask
        output = self.gram.terms[0][1]
        values, turn = output.eigh
        turned = right if turn is None else right @ turn
        scales = batch.scales if values is None else batch.scales * values
        found = self.rows.inverse(scales, 1.0)(turned)
        begin = found if turn is None else found @ turn.T
        factors = [
            shortening(problem, begin[:, k, :], right[:, k, :] - begin[:, k, :])
            for k, problem in enumerate(batch.problems)
        ]
        begin = begin * batch.column(factors)
        fitted = (right - begin / batch.column(np.maximum(factors, 1e-300))) * batch.column(factors)
        return begin + self.rows.mask * (right - fitted - self.problem.curvature * begin) / batch.column(rhos)

    def _certified(self, batch: Batch, state: State) -> tuple[Array, list[Certificate]]:
        """Return predictions of all samples and certificates of the solutions of the systems, scaled into the domain.

        Their products with the Gram operator are known.
        """
        xp, solved = namespace(state.solved), state.solved
        if has_gaps(self.problem):
            solved = solved * xp.stack([problem.mask for problem in batch.problems], axis=1)
        factors = np.ones(len(batch.problems))
        for k, problem in enumerate(batch.problems):
            ratios = row_saturation(problem.loss, problem.unscale(solved[:, k, :]))
            factors[k] = 1.0 if ratios is None else 1 / max(1.0, float(xp.max(ratios)))
        product = self.gram.matmul(solved) if has_gaps(self.problem) else _gradients(state).product()
        duals, predictions = (rows * batch.column(factors) for rows in (solved, product * batch.scales))
        return predictions, batch.certificates(duals, predictions)

    def _held_out(self, predictions: Array) -> np.ndarray:
        """Return the predictions of the held-out samples, in the given coordinates."""
        turn, given = rotation(self.given), self.given
        result = np.full(tuple(given.targets.shape), np.nan)
        for k, fold in enumerate(self.folds):
            rows = predictions[:, k, :] if turn is None else turn.back(predictions[:, k, :])
            result[fold] = host(given.unscale(rows))[fold]
        return result


def _linear(state: State) -> Conjugate:
    assert isinstance(state.linear, Conjugate)  # chosen by ``_begun``
    return state.linear


def _gradients(state: State) -> ConjugateGradients:
    return _linear(state).gradients
