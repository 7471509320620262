"""What remains of a fit: enough to predict, to explain and to be saved."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array
from fenchel.approximations import Approximation
from fenchel.kernels.separable import BoundTerms
from fenchel.model.codec import Codec, Expansion
from fenchel.model.forms import InputForm, OutputForm
from fenchel.model.sample import Sample, spread
from fenchel.model.spec import Spec
from fenchel.model.training_set import TrainingSet
from fenchel.representations import Coordinates
from fenchel.solvers import Solution

__all__ = ["Duals", "Model", "Record"]


@dataclass(frozen=True)
class Duals:
    """Dual variables of a solution, one row for each given sample, and the outlier scores that follow from them."""

    coef: Array  # (n, p)
    support: np.ndarray | None  # indices of the non-zero rows; None for chunks
    outlier_score: Array | None  # (n,): dual norm divided by its bound, for losses with bounded duals
    point_outlier_score: Array | None  # (n, p)

    @property
    def sparsity(self) -> float | None:
        """Share of samples whose dual variable is zero; ``None`` for chunks."""
        n = int(self.coef.shape[0])
        return None if self.support is None else (n - len(self.support)) / n

    def among(self, index: np.ndarray | None, n: int) -> "Duals":
        """Return the duals of n samples, those of an index and others of weight zero; ``None`` means all."""
        if index is None:
            return self
        parts = self.coef, self.outlier_score, self.point_outlier_score
        coef, *scores = (None if part is None else spread(part, index, n) for part in parts)
        return Duals(coef, None if self.support is None else index[self.support], *scores)


@dataclass(frozen=True)
class Record:
    """How accurate a solution is, and how it was found."""

    primal: float
    dual: float
    gap: float  # relative
    kind: str  # of the certificate: "exact", "sampled" or "approximate"
    standard_error: float | None  # of a sampled gap
    n_iter: int
    status: str
    history: list[tuple[int, float]]  # iteration and relative gap at each convergence check
    solver_info: Mapping[str, object]

    @classmethod
    def of(cls, solution: Solution, kind: str, standard_error: float | None = None) -> Self:
        """Return the record of a solution."""
        reasons = [stage.reason for stage in solution.stages if stage.solver == solution.solver]
        return cls(
            solution.certificate.primal,
            solution.certificate.dual,
            solution.certificate.relative_gap,
            kind,
            standard_error,
            max(1, solution.n_iter),  # the first point counts as an iteration
            solution.status.value,
            [(n_iter, certificate.relative_gap) for n_iter, certificate in solution.history],
            {
                "solver": solution.solver,
                "reason": reasons[0] if reasons else "chosen by the user",
                "stages": [asdict(stage) for stage in solution.stages],
            },
        )


@dataclass(frozen=True)
class Model:
    """What remains of a fit; of the size of the data, never of their square."""

    spec: Spec
    inputs: InputForm
    outputs: OutputForm
    codec: Codec
    targets: Coordinates  # of the training outputs
    expansion: Expansion
    duals: Duals
    record: Record
    approximation: Approximation | None = None
    weights: Array | None = None  # of the training samples with a positive weight; None counts each once

    def training_set(self, sample: Sample) -> TrainingSet:
        """Return a sample in float64 in the coordinates of the model, with its kernel; nothing is learned anew."""
        targets = self.codec.encode(sample.outputs_like(self.targets.rows)).double()
        kernel = self.expansion.kernel
        kernel = kernel.like(targets.rows) if isinstance(kernel, BoundTerms) else kernel
        return TrainingSet.bound(sample.double(), self.codec, targets, kernel)

    @property
    def dual_coef(self) -> Array:
        """Dual variables of vector outputs, (n,) if outputs are numbers, else (n, p)."""
        return self.duals.coef[:, 0] if self.outputs.is_flat else self.duals.coef

    def read(self, X: Array, at: ArrayLike | None = None, derivative: int = 0) -> Array:
        """Return the predictions at checked inputs, in units of the outputs."""
        return self.codec.read(self.expansion, X, at, derivative)
