"""Memory estimates: check before a fit whether it fits in memory, and suggest alternatives."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fenchel._array import Array, is_numpy, is_on_cpu
from fenchel._check import check_memory, free_memory
from fenchel.approximations import Nystrom
from fenchel.exceptions import SlowFitWarning, warn_user
from fenchel.kernels import OperatorKernel
from fenchel.losses import Loss
from fenchel.losses.loss import is_square
from fenchel.model.spec import Spec
from fenchel.model.spectrum import Spectrum
from fenchel.operators import error_in_single, fits_in_single
from fenchel.solvers import APGD, Krylov
from fenchel.solvers.costs import CPU, DEVICE, EIGEN, FLOPS

__all__ = [
    "can_stream",
    "check_fits",
    "is_streamed",
    "preconditioner",
    "settled",
    "warn_if_slow",
    "warn_of_last_fit",
    "warn_of_time",
    "width_of",
]

Look = Callable[[], Spectrum]  # computed on the first call

_FEATURES = 2000  # suggested in messages: error .106, 500 .117, exact .1025 (benchmarks/sizes.py 10000)
_ITERATES = 24  # number of arrays of the shape of the targets that a solver holds at once
_STREAMED_ITERATES = 32  # the same if the Gram matrix is not stored
_THIN = 4  # number of feature matrices that a fit holds at once, two if there are many features
_BASES = 3  # number of feature matrices that a preconditioner needs
_PART = 0.5  # of the free memory, for these; the other half is for a stored matrix
_PART_OF_DEVICE = 0.8
_COUNTS = 40  # numbers of features that are compared
# estimated speedup at which conjugate gradients are preferred to a factorisation that fits in memory
_CERTAIN = 1.0
_LOOK = 0.1  # seconds of a spectrum
_PATIENCE = 1800.0  # seconds that an exact fit may take by estimate where landmarks are open
_FACTOR = 6.0  # operations of landmarks, per sample and squared number: features, their moments and an eigenbasis


def check_fits(X: Array, kernel: OperatorKernel, settings: Spec, n_outputs: int = 1) -> None:
    """Raise if the Gram operator, its factorisation and the iterates do not fit in memory."""
    settings = settled(X, kernel, settings, n_outputs)
    n, copies = X.shape[0], settings.solver.gram_copies
    width = _width(X, kernel, settings)
    lighter = {}
    if "approximation" in settings.adjustable and not kernel.is_pairwise:
        size = min(width, _FEATURES, _room(X, n_outputs))
        lighter[f"approximation=Nystrom({size})"] = _stored(n, size, copies, n_outputs)
    if "solver" in settings.adjustable:
        if can_stream(X, kernel, settings):
            lighter["solver='krylov'"] = _streamed(n, _least(n), n_outputs)
        lighter["solver='apgd'"] = _stored(n, width, APGD.gram_copies, n_outputs)
    what = f"A fit of {n} samples" + (f" and {n_outputs} outputs" if n_outputs > 1 else "")
    needed = _stored(n, width, copies, n_outputs)
    if is_streamed(X, kernel, settings, n_outputs):
        needed = _streamed(n, _least(n), n_outputs)
    check_memory(needed, what, "Fit on a part of the sample", lighter, X)


def is_streamed(
    X: Array, kernel: OperatorKernel, settings: Spec, n_outputs: int = 1, spectrum: Look | None = None
) -> bool:
    """Whether to compute the Gram matrix in tiles: on request, if it does not fit in memory, or if that is faster.

    The spectrum, if there is one, is looked at where the passes could be few enough.
    """
    n, solver = X.shape[0], settings.solver
    if not can_stream(X, kernel, settings):
        return False
    if solver.streams:
        return True
    if not solver.chooses or settings.is_factorised or Krylov().why_not_loss(_known(settings.loss)) is not None:
        return False
    free = free_memory(X)
    if free is not None and _stored(n, n, solver.gram_copies, n_outputs) > free:
        return True
    if not is_on_cpu(X):
        return False
    factored = n**3 / FLOPS / 3  # of the cheapest solve with a stored matrix
    if not is_square(_known(settings.loss)):
        factored *= 4  # an explicit inverse besides
    if spectrum is None:
        return _CERTAIN * _seconds(X, settings, n_outputs) < factored
    if not _CERTAIN * (_LOOK + _of_features(X, settings, n_outputs, 1.0)) < factored:
        return False
    seen = spectrum()
    is_hidden = settings.lam * n <= error_in_single(n, float(np.mean(seen.values)))
    return not is_hidden and _CERTAIN * _cheapest(X, settings, n_outputs, seen)[1] < factored


def settled(X: Array, kernel: OperatorKernel, settings: Spec, n_outputs: int) -> Spec:
    """Return the settings with landmarks, as many as fit, if these are open and an exact fit takes too long.

    On a device an exact fit is tried at any size.
    """
    if not settings.is_open or kernel.is_pairwise or kernel.width(X) < X.shape[0]:
        return settings
    if is_streamed(X, kernel, settings, n_outputs):
        is_fast = not is_on_cpu(X) or _seconds(X, settings, n_outputs) <= _PATIENCE
    else:
        free, needed = free_memory(X), _stored(X.shape[0], X.shape[0], settings.solver.gram_copies, n_outputs)
        is_short = not is_on_cpu(X) or EIGEN * X.shape[0] ** 3 / FLOPS <= _PATIENCE
        is_fast = is_short and (free is None or needed <= free)
    if is_fast:
        return settings
    n = X.shape[0]  # more than half of the samples as landmarks would cost nearly as much as an exact fit
    count = min(_room(X, n_outputs), int(math.sqrt(_PATIENCE * FLOPS / (_FACTOR * n))), n // 2)
    return replace(settings, approximation=Nystrom(count), is_open=False)


def _seconds(X: Array, settings: Spec, n_outputs: int) -> float:
    """Return the estimated seconds of an exact fit that does not factorise the Gram matrix."""
    return _of_features(X, settings, n_outputs)


def _of_features(
    X: Array, settings: Spec, n_outputs: int, condition: float | None = None, count: int | None = None
) -> float:
    """Return the same with a number of features and the condition that these leave."""
    solver, n, is_cpu = _krylov(settings), X.shape[0], is_on_cpu(X)
    is_stored, rates = fits_in_single(n, X) and is_numpy(X), CPU if is_cpu else DEVICE
    loss, lam = _known(settings.loss), settings.lam
    return solver.estimate(n, n_outputs, loss, lam, is_stored, count, condition, rates).seconds


def _krylov(settings: Spec) -> Krylov:
    return settings.solver if isinstance(settings.solver, Krylov) else Krylov()


def width_of(X: Array, kernel: OperatorKernel, settings: Spec, n_outputs: int) -> int:
    """Return how many numbers a fit holds for each sample: landmarks, or the entries of the Gram matrix."""
    return _width(X, kernel, settled(X, kernel, settings, n_outputs))


def can_stream(X: Array, kernel: OperatorKernel, settings: Spec) -> bool:
    """Whether the estimator and the kernel work without a stored matrix, and the kernel has no explicit features."""
    is_plain = settings.approximation is None and "approximation" in settings.adjustable
    return is_plain and kernel.has_points_only and kernel.width(X) == X.shape[0]


def warn_of_time(X: Array, settings: Spec, n_outputs: int) -> None:
    """Warn about a fit without a stored matrix that was not requested, if it is estimated to exceed a minute."""
    if is_on_cpu(X):
        _warn_if_slow(_seconds(X, settings, n_outputs) / 60, settings)


def warn_of_last_fit(X: Array, settings: Spec) -> None:
    """Warn before a search if the eigendecomposition of its last fit alone is estimated to exceed a minute."""
    minutes = EIGEN * X.shape[0] ** 3 / FLOPS / 60
    if settings.solver.chooses and settings.approximation is None and is_on_cpu(X) and minutes > 1:
        warn_user(
            f"After the search, the fit to all {X.shape[0]} samples is estimated to take at least {minutes:.0f} "
            "minutes on one core. A fit to a part of the sample or with landmarks (approximation=) is faster; "
            "progress=True or the logger 'fenchel' tell how far it is.",
            SlowFitWarning,
            "slow-fit",
        )


def warn_if_slow(n: int, settings: Spec, n_outputs: int, n_threads: int = 1) -> None:
    """Warn as ``warn_of_time`` does, for a fit in several threads."""
    _warn_if_slow(
        Krylov().estimate(n, n_outputs, _known(settings.loss), settings.lam).seconds / 60 / n_threads, settings
    )


def _warn_if_slow(minutes: float, settings: Spec) -> None:
    if settings.solver.chooses and minutes > 1:
        warn_user(
            f"The exact fit takes about {minutes:.0f} minutes by conjugate gradients. A fit with approximation="
            f"Nystrom({_FEATURES}) is faster and less accurate. The logger 'fenchel' reports progress; solver='krylov' "
            "runs the same fit without this warning.",
            SlowFitWarning,
            "slow-fit",
        )


def preconditioner(X: Array, settings: Spec, n_outputs: int, spectrum: Look | None = None) -> Nystrom:
    """Return the features of the preconditioner of an exact solve, as many as memory allows.

    With a spectrum they are as many as save more time in passes than they cost.
    """
    count, most = _counts(X, settings, n_outputs)
    if spectrum is not None and _krylov(settings).n_components is None and count < most:
        count, _ = _cheapest(X, settings, n_outputs, spectrum())
    return Nystrom(min(count, most), landmarks="uniform")


def _counts(X: Array, settings: Spec, n_outputs: int) -> tuple[int, int]:
    """Return the least number of features that is worth while, and the largest that memory allows."""
    n, free, part = X.shape[0], free_memory(X), _PART if is_on_cpu(X) else _PART_OF_DEVICE
    room = math.inf if free is None else (part * free - _streamed(n, 0, n_outputs)) / (8 * n * _BASES)
    return _krylov(settings).n_features(n), int(max(min(n, _least(n)), min(n, room)))


def _cheapest(X: Array, settings: Spec, n_outputs: int, spectrum: Spectrum) -> tuple[int, float]:
    """Return the number of features with the least estimated time, and that time."""
    least, most = _counts(X, settings, n_outputs)
    counts = np.unique(np.geomspace(min(least, most), most, _COUNTS).astype(int)).tolist()
    ridge = settings.lam * X.shape[0]
    times = [_of_features(X, settings, n_outputs, spectrum.condition(D, ridge), D) for D in counts]
    place = int(np.argmin(times))
    return counts[place], times[place]


def _known(loss: Loss) -> Loss:
    """Return the loss with a placeholder for a threshold that is relative to the residuals, not known yet."""
    return loss.resolve(np.ones(1)) if loss.is_relative else loss


def _least(n: int) -> int:
    """Return the smallest useful number of features."""
    return int(math.sqrt(n))


def _room(X: Array, n_outputs: int) -> int:
    """Return the largest number of features that fits in memory, a multiple of 10 and at least 10."""
    free = free_memory(X)
    room = _FEATURES if free is None else (free / (8 * X.shape[0]) - n_outputs * _ITERATES) / _THIN
    return max(10, int(room) // 10 * 10)


def _width(X: Array, kernel: OperatorKernel, settings: Spec) -> int:
    width = kernel.width(X)
    return width if settings.approximation is None else min(width, settings.approximation.count(X.shape[0]))


def _stored(n: int, width: int, copies: float, n_outputs: int) -> int:
    return int(8 * n * (width * (copies if width >= n else min(copies, _THIN)) + n_outputs * _ITERATES))


def _streamed(n: int, n_features: int, n_outputs: int) -> int:
    return int(8 * n * (n_features * _BASES + n_outputs * _STREAMED_ITERATES))
