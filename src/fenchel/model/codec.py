"""What is learned from the outputs of a sample, and the only way back from coordinates to outputs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from fenchel._array import Array, Outputs, as_like
from fenchel.kernels import OperatorKernel
from fenchel.kernels.scalar_kernel import BoundKernel
from fenchel.model.sample import Sample
from fenchel.representations import Coordinates, Representation

__all__ = ["Codec", "Expansion", "Reading", "Task"]


class Expansion(Protocol):
    """The interface of a kernel expansion, or of several at once."""

    @property
    def kernel(self) -> Any:
        """The kernel, bound to the sample and its coordinates."""

    def coordinates(self, X: Array) -> Array:
        """Return the values at checked inputs, in coordinates (m, p)."""

    def evaluate(self, X: Array, matrices: Sequence[Array]) -> Array:
        """Return the values at checked inputs: sums over terms of the kernel, whose matrix (p, q) has the operator."""


@dataclass(frozen=True)
class Reading:
    """An affine way from images of the kernel to values: ``images @ matrix * scale + shift``, summed over its terms."""

    matrices: tuple[Array, ...]  # (p, q), with the output operator of each term of the kernel
    scale: np.ndarray | None = None  # (q,)
    shift: np.ndarray | None = None  # (q,)
    has_operator: bool = True  # False: one matrix, of coordinates, for kernels that are no sum of separable terms

    def of(self, expansion: Expansion, X: Array) -> Array:
        """Return the values of an expansion at checked inputs, (n, q)."""
        if self.has_operator:
            values = expansion.evaluate(X, self.matrices)
        else:
            coordinates = expansion.coordinates(X)
            values = coordinates @ as_like(self.matrices[0], coordinates)
        values = self.scaled(values)
        return values if self.shift is None else values + as_like(self.shift, values)

    def scaled(self, values: Array) -> Array:
        """Return values (n, q) times the scale."""
        return values if self.scale is None else values * as_like(self.scale, values)


class Codec(ABC):
    """What was learned from the outputs of a sample: their centre, scale and coordinates, and the only way back."""

    representation: Representation  # fitted; holds no training outputs unless its basis consists of them
    grid: np.ndarray | None = None  # points of curves
    is_returned: ClassVar[bool] = False  # whether ``predict`` returns decoded coordinates, so that they can be encoded

    @property
    def units(self) -> float | np.ndarray:
        """Size of one coordinate in units of the outputs, one number or one for each."""
        return 1.0

    @abstractmethod
    def encode(self, y: Outputs) -> Coordinates:
        """Return checked outputs in coordinates."""

    @abstractmethod
    def decode(self, rows: Array) -> Array:
        """Return coordinates (n, p) as outputs, at the points of the training outputs."""

    def encode_values(self, values: Array) -> Coordinates:
        """Return predictions, as ``decode`` returns them, in coordinates."""
        return self.encode(values)

    def truth(self, y: Outputs) -> Array:
        """Return checked outputs as ``decode`` returns predictions; NaN where nothing was observed."""
        return self.decode(self.encode(y).rows)

    def restored(self, rows: Array) -> Array:
        """Return the outputs with these coordinates; ``decode`` returns predictions, which may be means of others."""
        return self.decode(rows)

    def near(self, values: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return values as they are closest to others: the same, unless one output has several names, as an angle."""
        return values

    def residuals(self, truth: np.ndarray, predictions: np.ndarray) -> np.ndarray:
        """Return outputs minus predictions, both as ``decode`` returns them; NaN where nothing was observed."""
        return self.near(truth, predictions) - predictions

    def reading(self, kernel: BoundKernel, at: ArrayLike | None = None, derivative: int = 0) -> Reading | None:
        """Return how an expansion of a kernel is read at any points; ``None`` means through ``decode``."""
        return None

    def read(self, expansion: Expansion, X: Array, at: ArrayLike | None = None, derivative: int = 0) -> Array:
        """Return the values of an expansion at checked inputs."""
        reading = self.reading(expansion.kernel, at, derivative)
        return self.decode(expansion.coordinates(X)) if reading is None else reading.of(expansion, X)


class Task(ABC):
    """A kind of data: how it is checked, what is learned from its outputs, which kernel acts on it."""

    @abstractmethod
    def sample(self, owner: BaseEstimator, X: Array, y: Outputs, sample_weight: Array | None = None) -> Sample:
        """Return checked data; scikit-learn's attributes of the inputs are set on the owner."""

    def unlearned(self) -> Representation | None:
        """Return the representation before it is learned, which tells whether a loss fits it; ``None``: learn first."""
        return None

    @abstractmethod
    def learn(self, sample: Sample) -> tuple[Codec, Coordinates]:
        """Return what is learned from the outputs of a sample, and these outputs in coordinates."""

    @abstractmethod
    def kernel_of(self, sample: Sample, codec: Codec) -> OperatorKernel:
        """Return the kernel, with the names of columns replaced by their positions."""
