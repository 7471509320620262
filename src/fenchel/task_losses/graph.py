"""Loss of the vertices of a graph."""

import math
from copy import copy
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Outputs
from fenchel._check import Interval, Options
from fenchel.decoders import Candidates, Decoder
from fenchel.kernels import ScalarKernel, as_scalar_kernel
from fenchel.task_losses.finite import places
from fenchel.task_losses.squared import SquaredDistance
from fenchel.task_losses.task_loss import as_outputs, numbers

__all__ = ["GraphDiffusion"]


class GraphDiffusion(SquaredDistance):
    r"""Diffusion distance between the vertices of a graph, by the spectrum of its Laplacian L.

    .. math:: \Delta(y, z) = \tfrac12 \bigl\| e^{-t L / 2} (\delta_y - \delta_z) \bigr\|^2
        = \tfrac12 \bigl(k_t(y, y) - 2 k_t(y, z) + k_t(z, z)\bigr), \qquad k_t = e^{-t L}.

    At t = 0 this is the zero-one loss. As t grows, errors cost less between vertices with many short paths between
    them, and most between the components of the graph.

    Parameters
    ----------
    adjacency : array of shape (D, D)
        Symmetric matrix of non-negative weights of the edges; the diagonal does not matter.
    time : float, default=1.0
        The diffusion time t, at least 0, in units of one over the weights of edges.
    vertices : array of shape (D,) or None, default=None
        Names of the vertices; ``None`` means 0, ..., D - 1.

    Notes
    -----
    [Ciliberto2016]_ writes :math:`1 - k_t(y, z)` on manifolds. On a graph :math:`k_t(y, y)` depends on the vertex, and
    that loss would not be zero at y = z.

    References
    ----------
    [Ciliberto2016]_, Example 1.

    Examples
    --------
    Two pairs of neighbours, joined by a weak edge:

    >>> from fenchel.task_losses import GraphDiffusion
    >>> edges = [[0, 1, 0, 0], [1, 0, 0.1, 0], [0, 0.1, 0, 1], [0, 0, 1, 0]]
    >>> GraphDiffusion(edges, time=2.0)([0, 0], [1, 2]).round(3)
    array([0.018, 0.422])
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"time": Interval(0, math.inf, "left")}
    _heat: np.ndarray | None = None  # the kernel, of a resolved loss

    def __init__(self, adjacency: ArrayLike, time: float = 1.0, vertices: ArrayLike | None = None) -> None:
        self.adjacency = adjacency
        self.time = time
        self.vertices = vertices

    def validate(self) -> Self:
        """Check the matrix and the names."""
        weights = self._weights()
        if len(np.unique(self._vertices())) != len(weights) or len(self._vertices()) != len(weights):
            raise ValueError(
                f"The 'vertices' parameter of GraphDiffusion must hold {len(weights)} distinct names. "
                f"Got {self.vertices!r} instead."
            )
        return super().validate()

    def check(self, Z: Outputs) -> Outputs:
        """Check that every output is a vertex."""
        Z = as_outputs(Z)
        self._places(Z)
        return Z

    def resolve(self, Z: Outputs) -> "GraphDiffusion":
        """Return the loss with its heat kernel, which is then computed once."""
        resolved = copy(self)
        resolved._heat = self._kernel_matrix()
        return resolved

    def products(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return half the heat kernel."""
        return np.asarray(self._kernel_matrix()[np.ix_(self._places(Y), self._places(Z))] / 2)

    def norms(self, Y: Outputs) -> np.ndarray:
        """Return half the heat that is left at each vertex."""
        return np.asarray(np.diagonal(self._kernel_matrix())[self._places(Y)] / 2)

    def decoder(self) -> Decoder:
        """Return a search among all vertices, including those that do not occur in the training outputs."""
        return Candidates(self._vertices())

    def output_kernel(self) -> ScalarKernel:
        """Return the heat kernel."""
        return as_scalar_kernel(self._kernel)

    def _kernel(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        return 2 * self.products(np.ravel(Y), np.ravel(Z))

    def _kernel_matrix(self) -> np.ndarray:
        """Return the exponential of minus the time times the Laplacian."""
        if self._heat is not None:
            return self._heat
        weights = self._weights()
        values, vectors = np.linalg.eigh(np.diag(weights.sum(axis=1)) - weights)
        return np.asarray((vectors * np.exp(-float(self.time) * np.maximum(values, 0.0))) @ vectors.T)

    def _weights(self) -> np.ndarray:
        name = "The 'adjacency' parameter of GraphDiffusion"
        weights = numbers(self.adjacency, name, (2,)).copy()
        if weights.size == 0 or weights.shape[0] != weights.shape[1] or not np.allclose(weights, weights.T):
            raise ValueError(f"{name} must be a symmetric matrix. Got shape {weights.shape}, or one that is not.")
        np.fill_diagonal(weights, 0.0)
        if np.any(weights < 0):
            raise ValueError(f"{name} must hold non-negative weights. Its smallest entry is {np.min(weights):g}.")
        return weights

    def _vertices(self) -> np.ndarray:
        return np.arange(len(self._weights())) if self.vertices is None else np.asarray(self.vertices)

    def _places(self, labels: Outputs) -> np.ndarray:
        return places(labels, self._vertices(), "GraphDiffusion", "vertices")

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances for the contract tests."""
        return [cls([[0.0, 1.0, 0.2], [1.0, 0.0, 0.0], [0.2, 0.0, 0.0]])]
