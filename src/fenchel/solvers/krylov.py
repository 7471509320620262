"""Exact solutions without a factorisation of the Gram matrix: the splitting, with conjugate gradients inside."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from fenchel._array import Array, as_like, is_lazy, is_on_cpu, is_single, namespace
from fenchel._check import Interval, Options
from fenchel.losses.loss import Loss, is_square, row_saturation
from fenchel.operators import fits_in_single, is_thin, kronecker, streamed
from fenchel.problem import DualProblem, Shared
from fenchel.problem.batch import Batch
from fenchel.problem.derived import rotated
from fenchel.solvers.costs import CALL, CPU, Cost, Known, Rates
from fenchel.solvers.linear import LOOSE, Conjugate, Mark
from fenchel.solvers.loop import Point, ProblemwiseSolver, comparable
from fenchel.solvers.solver import Callback, Solution, watched
from fenchel.solvers.splitting import DouglasRachford, State, Warm
from fenchel.solvers.state_file import StateFile, chunks_of, key_of

__all__ = ["Krylov"]

_LOG = logging.getLogger("fenchel")
# over the kernel to a gap of 1e-6 where the condition of the preconditioned systems is 1, for Huber's loss; a fifth for
# the square loss, four times as many without curvature. They grow as the root of the condition
_PASSES = 20.0
# condition with 6 sqrt(n) features where the kernel is not known, and its product with small lam n: n = 2500, smooth
# targets without noise, square loss, lam from 1e-6 to 1e-9: 44, 176, 547 and 3219 passes
_CONDITION = 100.0
_RIDGE = 0.25
ALONE = 1e-9  # rho for the square loss, where there is nothing to split
_BETTER = 0.25  # of the last certified gap, from which on float32 tiles still help
IDLE = 20  # steps after which a certificate is computed whatever the estimate says


class Krylov(ProblemwiseSolver[State]):
    r"""Douglas–Rachford splitting of the exact problem, with a Gram matrix that is not factorised.

    The problem with a few features in place of the kernel is solved first. The splitting continues from the state of
    that solution, and its linear systems are solved by conjugate gradients, preconditioned by the features.

    Parameters
    ----------
    max_iter : int, default=20000
        Maximum number of iterations of the splitting.
    n_components : int or None, default=None
        Number D of features, drawn as by :class:`~fenchel.approximations.Nystrom`; ``None`` means :math:`6 \sqrt n`, or
        more where these are estimated to save time at the ``lam`` of the fit.
    tiles : {"float64", "float32"}, default="float32"
        Precision of the kernel in the iterations; sums, duals and certificates always use that of the data. In float32
        the matrix is stored if it takes at most half of the free memory. Iterations that end at the round-off of
        float32 go on in float64.
    checkpoint : path or None, default=None
        File that stores the state during the solve. If the process dies, the same fit resumes from it. A file of
        another problem (data, kernel, loss or lam) is an error; a smaller ``tol`` is the same problem.

    Notes
    -----
    An iteration takes about two products with the kernel, which are counted as passes. The gap is estimated in each
    iteration from the last linear system; if the estimate is within ``tol``, or a tenth of the last certificate, the
    certificate is computed in one pass. With float32 tiles on a device, where that pass takes as long as five others,
    there is only the certificate within ``tol``, and one after every 20 iterations. The smaller the gap, the more
    accurately linear systems are solved. Messages at level INFO of the logger ``fenchel`` report the passes, the gap
    and the estimated remaining time. ``KeyboardInterrupt`` ends the solve with the best certified point.

    A checkpoint holds one array of the shape of the targets. It is written after the solve with features and after
    iterations, using at most a twentieth of the time, and is replaced atomically. It remains after the solve.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 2))
    >>> y = np.sin(X[:, 0]) * X[:, 1]
    >>> model = OperatorKernelRegressor(loss="huber", lam=1e-5, solver="krylov").fit(X, y)
    >>> model.certificate_, bool(model.duality_gap_ <= 1e-6)
    ('exact', True)
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "max_iter": Interval(1, math.inf, "left", integer=True),
        "n_components": Interval(1, math.inf, "left", integer=True, also=(None,)),
        "tiles": Options(("float64", "float32")),
    }

    streams = True
    is_interruptible = True
    check_every = 1
    patience = 10

    def __init__(
        self,
        max_iter: int = 20000,
        n_components: int | None = None,
        tiles: str = "float32",
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.n_components = n_components
        self.tiles = tiles
        self.checkpoint = checkpoint

    def why_not(self, problem: DualProblem) -> str | None:
        """Return why not: the Gram matrix is stored, or the loss needs points that only a factorisation gives."""
        if streamed(problem.gram) is None and not is_thin(problem.gram):
            return "it needs the Gram matrix of one kernel on points, in tiles. Use DouglasRachford() or Auto()."
        if self.checkpoint is not None and is_single(problem.targets):
            return "a checkpoint needs data in float64. Use checkpoint=None or X.astype('float64')."
        return self.why_not_loss(problem.loss)

    def why_not_loss(self, loss: Loss) -> str | None:
        """Return why this solver does not support a loss, or ``None`` if it does."""
        if loss.profile is not None and math.isfinite(loss.profile.radius):
            return f"{loss!r} is infinite outside a ball. Use DouglasRachford() or Auto() and a smaller sample."
        return None

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Return the cost of the features and of the passes over the kernel."""
        n, p = problem.targets.shape
        return self.estimate(n, p, problem.loss, problem.lam, fits_in_single(n, problem.targets))

    def estimate(
        self,
        n: int,
        p: int,
        loss: Loss,
        lam: float,
        is_stored: bool = False,
        n_features: int | None = None,
        condition: float | None = None,
        rates: Rates = CPU,
    ) -> Cost:
        """Return the same from the sizes alone, before the problem is built, or from the condition of its systems."""
        D = self.n_features(n) if n_features is None else n_features
        if condition is None:
            condition = max(_CONDITION, _RIDGE / (lam * n)) if lam > 0 else math.inf
        share = 0.2 if is_square(loss) else 1.0 if loss.curvature > 0 else 4.0
        first = n**2 * rates.entry if is_stored else 0.0
        passes = share * _PASSES * math.sqrt(condition)
        return Cost(first + rates.setup(n, D) + 300 * CALL, rates.step(n, p, D, is_stored), passes)

    def _file(self, problem: DualProblem) -> StateFile:
        """Return the checkpoint of a problem, whose key depends on every number of it."""
        assert self.checkpoint is not None  # otherwise there is none
        scalar: Any = problem.gram.terms[0][0]
        points = (scalar.left,) if streamed(problem.gram) is None else (scalar.kernel, scalar.X)
        rest = problem.targets, problem.loss, problem.lam, problem.root, problem.mask
        return StateFile(self.checkpoint, key_of(*points, problem.gram.terms[0][1].matrix, *rest))

    def n_features(self, n: int) -> int:
        """Return the number of features for n samples."""
        return min(n, int(6 * math.sqrt(n)) if self.n_components is None else self.n_components)

    def solve_all(
        self,
        problems: Sequence[DualProblem],
        tol: float = 1e-6,
        starts: Sequence[object] | None = None,
        callback: Callback | None = None,
    ) -> list[Solution]:
        """Solve the problems one after the other; if the kernel has few features, they are the whole problem."""
        if problems and (
            is_thin(problems[0].gram) or (is_lazy(problems[0].targets) and not streamed(problems[0].gram))
        ):
            splitting = DouglasRachford(self.max_iter)
            if self.checkpoint is not None and len(problems) == 1:
                splitting.file = self._file(problems[0])
                starts = [_kept(splitting.file, problems[0]) or (starts or [None])[0]]
            return splitting.solve_all(problems, tol, starts, callback)
        return super().solve_all(problems, tol, starts, callback)

    def turned(self, problems: Sequence[DualProblem]) -> list[DualProblem]:
        """Return the problems in output coordinates in which the operator is diagonal."""
        return [rotated(problem) for problem in problems]

    def first_state(self, problem: DualProblem, start: object) -> State:
        """Start from the solution with features, or from the state of an earlier solve."""
        scalar = streamed(problem.gram)
        assert scalar is not None  # checked by why_not
        splitting, file = DouglasRachford(), None if self.checkpoint is None else self._file(problem)
        splitting.file = file
        if (kept := None if file is None else _kept(file, problem)) is not None:
            warm = kept
        elif isinstance(start, Warm) and start.z.shape == problem.targets.shape:
            warm = start
        else:
            warm = _thin_solution(problem, start)
        rhos = np.asarray([ALONE if _is_alone(problem) else warm.rho])
        batch = Batch((problem,))
        gram = problem.gram if self.tiles == "float64" else kronecker(scalar.rounded, problem.gram.terms[0][1].matrix)
        return splitting.begun(batch, warm.z[:, None, :], rhos, Conjugate(batch, rhos, gram))

    def next_state(self, problem: DualProblem, state: State) -> State:
        """Take a step of the splitting."""
        return DouglasRachford().step([problem], state)

    def standing(self, state: tuple[State, ...], place: int) -> Warm:  # type: ignore[override]
        """Return the state of the splitting for one problem, as a start for another solve."""
        return DouglasRachford().standing(state[place], 0)

    def points(self, problem: DualProblem, state: State) -> Iterator[tuple[Array, Array]]:
        """Yield the prox point and the scaled solution of the last system, with estimates of their predictions."""
        gradients = _systems(state).gradients
        scale = problem.scale
        solved, product = state.solved[:, 0, :], scale * gradients.product()[:, 0, :]
        prox = state.prox[:, 0, :]
        yield prox, product + scale * gradients.thin_product(prox - solved)
        if not problem.loss.sparse and problem.mask is None:
            ratios = row_saturation(problem.loss, problem.unscale(solved))
            factor = 1.0 if ratios is None else 1 / max(1.0, float(namespace(solved).max(ratios)))
            yield factor * solved, factor * product

    def certify(self, problems: Sequence[DualProblem], state: tuple[State, ...], tol: float) -> list[Point | None]:  # type: ignore[override]
        """Return the certified point of each problem, or ``None`` if the estimate says that it is not worth a pass."""
        return [self._look(problem, each, tol) for problem, each in zip(problems, state, strict=True)]

    def _look(self, problem: DualProblem, state: State, tol: float) -> Point | None:
        linear = _systems(state)
        duals = state.prox[:, 0, :]
        # on a device a pass in float64 takes as long as five in float32: one certificate, at the end
        is_dear = linear.gradients.gram is not problem.gram and not is_on_cpu(duals)
        if state.age > 0:
            estimates = [(*pair, problem.certificate(*pair)) for pair in self.points(problem, state)]
            duals, _, guess = min(estimates, key=comparable)
            gap, last = guess.relative_gap, linear.marks[-1]
            linear.gradients.rtol = tightness(_is_alone(problem), gap, tol)
            share = 0.0 if is_dear else 0.1 if linear.gradients.gram is problem.gram else 0.01
            enough = max(0.9 * tol, share * last.gap)
            if not (gap <= enough or state.age >= min(last.age + IDLE, self.max_iter)):
                return None
        is_estimate = is_dear and state.age == 0
        scalar, output = (linear.gradients.gram if is_estimate else problem.gram).terms[0]
        product = scalar.matmul(duals)
        predictions = problem.scale * output.times(product)
        certificate = problem.certificate(duals, predictions)
        if state.age == 0:
            linear.gradients.begin(linear.gradients.gram, state.prox, product[:, None, :])
            linear.gradients.rtol = tightness(_is_alone(problem), certificate.relative_gap, tol)
        elif not certificate.relative_gap <= max(tol, 2 * gap):
            # float32 tiles are too coarse: from this product on they have the digits of corrections, once or twice
            is_better = certificate.relative_gap <= _BETTER * last.gap
            gram = linear.gradients.gram if is_better else problem.gram
            linear.gradients.begin(gram, duals[:, None, :], product[:, None, :])
        linear.marks.append(Mark(state.age, time.perf_counter(), certificate.relative_gap))
        passes = {id(each): each.n_passes for each in (streamed(problem.gram), streamed(linear.gradients.gram)) if each}
        _LOG.info(progress(linear.marks, sum(passes.values()), tol))
        return None if is_estimate else (duals, predictions, certificate)


def _is_alone(problem: DualProblem) -> bool:
    """Whether the problem is a single linear system."""
    return is_square(problem.loss) and problem.mask is None


def _systems(state: State) -> Conjugate:
    """Return the linear systems of a state, which are those that ``first_state`` has chosen."""
    assert isinstance(state.linear, Conjugate)
    return state.linear


def _kept(file: StateFile, problem: DualProblem) -> Warm | None:
    """Return the state left by an earlier solve of the same problem."""
    if (kept := file.load(list(chunks_of(problem.targets, np.shape)))) is None:
        return None
    rho, chunks = kept
    _LOG.info(f"Krylov: resuming from {file.file}")
    targets = problem.targets
    return Warm(targets.filled(chunks) if is_lazy(targets) else as_like(next(chunks), targets), rho, None)


def progress(marks: list[Mark], n_passes: int, tol: float) -> str:
    """Return a progress message, with the remaining time if the gap keeps falling at the same rate."""
    first, last = marks[0], marks[-1]
    text = f"Krylov: {n_passes} passes over the kernel, gap {last.gap:.1e}"
    if not 0 < last.gap < first.gap:
        return text
    left = (last.seconds - first.seconds) * math.log(max(1.0, last.gap / tol)) / math.log(first.gap / last.gap)
    return f"{text} after {last.seconds - first.seconds:.0f} s, about {left:.0f} s left"


def tightness(is_alone: bool, gap: float, tol: float) -> float:
    """Return the relative residual to which a linear system, possibly the whole problem, is solved.

    Passes to a gap of 1e-6 for Huber, epsilon-ridge and epsilon-SVR losses (n = 3000, lam = 1e-5, 300 features): 52,
    114 and 264 with 0.3 and 10 roots of the gap; 59, 127 and 318 with 0.3 and 3; 129 and 250 with 0.01 and 0.1.
    """
    if is_alone:  # the gap is the square of the residual
        return min(LOOSE, 0.5 * math.sqrt(tol / gap)) if gap > 0 else LOOSE
    return min(LOOSE, 10 * math.sqrt(max(gap, 0.0)) + 1e-8)


def _thin_solution(problem: DualProblem, start: object) -> Warm:
    """Return the final state of the splitting of the problem with features in place of the kernel."""
    scalar = streamed(problem.gram)
    assert scalar is not None  # checked by why_not
    output = problem.gram.terms[0][1]
    gram = kronecker(scalar.thin, output.matrix)
    basis = replace(scalar.basis, right=output.eigh[1], right_values=output.eigh[0])
    shared = Shared(gram, problem.targets, lambda: basis)
    thin = replace(problem, gram=gram, shared=shared)
    with watched(lambda n_iter, certificate: None):  # the gap with features is not the gap with the kernel
        solution = DouglasRachford(max_iter=2000).solve(thin, 1e-8, start)
    assert isinstance(solution.state, Warm)
    return solution.state
