"""Estimated cost of a solver: flops, bytes and array calls, from the sizes and the zero model.

The rates are roughly those of one server core with OpenBLAS; only their ratios matter for the choice.
The numbers of steps are fitted to 351 problems: Huber, epsilon-ridge and epsilon-SVR losses, n from 100 to 1000, 1 to
50 outputs, lam from 1e-6 to 0.1, 10 to 90 % of the samples active or at their bound (``benchmarks/auto.py``).
"""

import math
from dataclasses import dataclass
from functools import cached_property

from fenchel._array import Array, eps, host, namespace
from fenchel.losses.loss import row_saturation
from fenchel.operators import is_thin, width
from fenchel.problem import DualProblem

__all__ = ["BANDWIDTH", "CALL", "CPU", "DEVICE", "EIGEN", "FLOPS", "Cost", "Known", "Rates", "Shares", "trace"]

FLOPS = 2.5e10  # of a matrix product, per second
EIGEN = 9.0  # operations of an eigendecomposition, per cubed number of rows
BANDWIDTH = 4e10  # bytes per second streamed through the last-level cache
CALL = 3e-6  # seconds per call on small arrays

_FLAT = 0.5  # steps relative to a loss with curvature, divided by sqrt(number of kinks) (n = 100: 5, n = 1000: 16)
_LARGEST = 1e300  # cap on the norm, so that estimates stay comparable if the Gram matrix overflows
_PACKED = 4  # passes over the matrix in a product with several columns, which BLAS packs first (n = 1000, p = 5: 1 ms)


@dataclass(frozen=True)
class Cost:
    """Cost estimate: seconds of setup, seconds per step, and the number of steps to a gap of 1e-6."""

    setup: float
    step: float
    n_steps: float

    @property
    def seconds(self) -> float:
        """The total estimate."""
        return self.setup + self.step * self.n_steps


@dataclass(frozen=True)
class Rates:
    """Seconds of the parts of a fit by conjugate gradients."""

    entry: float  # of a kernel entry, which is used twice
    stored: float  # of an entry of a stored matrix
    operation: float  # of a product
    cube: float  # of the eigenvectors and singular values of a matrix, per cubed row

    def step(self, n: int, p: int, n_features: int, is_stored: bool) -> float:
        """Return the seconds of a pass over the kernel with p columns, and of its preconditioner."""
        entry = self.stored if is_stored else self.entry
        return n**2 * (entry + 2 * p * self.operation) + 4 * n * n_features * p * self.operation

    def setup(self, n: int, n_features: int) -> float:
        """Return the seconds of orthogonal features."""
        return 8 * n * n_features**2 * self.operation + self.cube * n_features**3


# one core: features (n = 6000, D = 2000 and 3000) 8 and 26 s; a pass over 10 000 rows with 5 columns 0.08 s in tiles of
# distances, 0.2 s of other kernels, and 0.04 s stored
CPU = Rates(1e-9, 4e-10, 1 / FLOPS, 3e-10)
# one H200: features (n = 100 000, D = 6000 and 16 000) 1.2 and 16 s, a pass with 20 columns 0.01 s
DEVICE = Rates(4e-13, 4e-13, 2e-14, 3e-12)


@dataclass(frozen=True)
class Shares:
    """Properties of a problem at the zero model, each computed once."""

    problem: DualProblem

    @cached_property
    def outside(self) -> float:
        """Share of samples that the zero model does not fit."""
        values: Array = host(self.problem.loss.value(self.problem.unscale(self.problem.targets)))
        return float((values > 0).mean())

    @cached_property
    def at_bound(self) -> float:
        """Share of samples whose dual is at its bound; 0 for a loss without curvature, whose dual is not unique."""
        if self.problem.curvature == 0:
            return 0.0
        ratios = row_saturation(self.problem.loss, self.problem.unscale(self._gradient))
        return 0.0 if ratios is None else float((host(ratios) >= 1 - 16 * eps(ratios)).mean())

    @cached_property
    def gap(self) -> float:
        """Gap of the duals at the zero model, small if the duals hardly depend on the model."""
        return self.problem.certificate(self._gradient, self.problem.predictions(self._gradient)).relative_gap

    @cached_property
    def _gradient(self) -> Array:
        """The gradient of the loss at the targets."""
        curvature = self.problem.curvature
        return self.problem.prox_remainder(self.problem.targets / curvature, 1 / curvature)


@dataclass(frozen=True)
class Known:
    """Inputs of a cost estimate; ``norm`` is the Lipschitz constant or an approximation of it."""

    shares: Shares
    norm: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", self.norm if self.norm < _LARGEST else _LARGEST)

    @classmethod
    def of(cls, problem: DualProblem) -> "Known":
        """Return the inputs for a problem, including its Lipschitz constant."""
        return cls(Shares(problem), problem.lipschitz)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of samples, of output columns, and of columns of the Gram factor."""
        n, p = self.shares.problem.targets.shape
        return n, p, width(self.shares.problem.gram)

    @property
    def has_identity(self) -> bool:
        """Whether the operator is the identity and the Gram matrix is stored."""
        gram = self.shares.problem.gram
        return gram.n_outputs is None and not is_thin(gram)

    @property
    def flatness(self) -> float:
        """Factor by which kinks increase the number of steps if the conjugate has no curvature."""
        loss = self.shares.problem.loss
        if loss.curvature > 0:
            return 1.0
        n, p, _ = self.sizes
        is_radial = loss.profile is not None  # the kinks of a norm matter less with more columns
        return max(1.0, _FLAT * math.sqrt(n / p ** (1 / 3) if is_radial else n * p))

    @property
    def product(self) -> float:
        """Seconds of a product with the Gram operator; with one column it is limited by memory bandwidth."""
        n, p, width = self.sizes
        passes = 1 if p == 1 else _PACKED
        return max(2 * n * width * p / FLOPS, passes * 8 * n * width / BANDWIDTH)

    def passes(self, count: float) -> float:
        """Return the seconds of passes over an array of duals."""
        n, p, _ = self.sizes
        return count * 8 * n * p / BANDWIDTH


def trace(problem: DualProblem) -> float:
    """Return the scaled sum of the norms of the diagonal blocks, an upper bound on the Lipschitz constant."""
    norms = problem.gram.diag()
    return float(namespace(norms).sum(norms)) * problem.scale
