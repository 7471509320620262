"""What remains of a fit: enough to predict, to explain and to be saved."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array
from fenchel.approximations import Approximation
from fenchel.model.codec import Codec, Expansion
from fenchel.model.forms import InputForm, OutputForm
from fenchel.model.spec import Spec
from fenchel.representations import Coordinates

__all__ = ["Duals", "Model", "Record"]


@dataclass(frozen=True)
class Duals:
    """Dual variables of a solution, one row for each given sample, and the outlier scores that follow from them."""

    coef: Array  # (n, p)
    support: np.ndarray  # indices of the non-zero rows
    outlier_score: Array | None  # (n,): dual norm divided by its bound, for losses with bounded duals
    point_outlier_score: Array | None  # (n, p)

    @property
    def sparsity(self) -> float:
        """Share of samples whose dual variable is zero."""
        n = int(self.coef.shape[0])
        return (n - len(self.support)) / n


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

    def read(self, X: Array, at: ArrayLike | None = None, derivative: bool = False) -> Array:
        """Return the predictions at checked inputs, in units of the outputs."""
        return self.codec.read(self.expansion, X, at, derivative)
