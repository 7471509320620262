"""Representation of outputs of any kind in the feature space of a kernel."""

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from fenchel._array import (
    Array,
    Index,
    Outputs,
    as_index,
    as_like,
    host,
    is_numpy,
    joined,
    namespace,
    pivoted_cholesky,
    row_norms,
    triangular_solve,
)
from fenchel._check import check_memory, check_no_overflow, check_psd
from fenchel.approximations import Approximation
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Linear, as_scalar_kernel
from fenchel.kernels.scalar_kernel import OutputOperator, ScalarKernel
from fenchel.representations.coordinates import Coordinates
from fenchel.representations.gram_factor import GramFactor
from fenchel.representations.representation import Representation

__all__ = ["KernelOutputs"]

_BLOCK = 2**23  # entries of a block of kernel values
_SAME = 1e-8  # relative difference below which norms are considered equal
_LEFT = 1e-6  # relative residual allowed between a positive semidefinite matrix and its factor


class _Pivots:
    """A Gram matrix through a pivoted Cholesky factor: every element of the span is a combination of the pivots.

    It is an order of magnitude cheaper than an eigendecomposition, and has the rank of the matrix, since duplicate
    outputs share one pivot.
    """

    def __init__(self, K: np.ndarray, rtol: float | None) -> None:
        given = rtol or 0.0
        rtol = len(K) * float(np.finfo(K.dtype).eps) if rtol is None else rtol
        self.targets_, self.pivots = pivoted_cholesky(K, rtol)
        self._lower = self.targets_[self.pivots]
        if self._lower[0, 0] == 0:  # every output is zero, and so are the coordinates and weights
            self._lower = np.ones_like(self._lower)
        probe = np.random.default_rng(0).standard_normal((len(K), 1)).astype(K.dtype)
        left = K @ probe - self.targets_ @ (self.targets_.T @ probe)
        size = float(np.max(np.abs(K))) * float(np.linalg.norm(probe))
        if not np.linalg.norm(left.astype(np.float64)) <= max(_LEFT, 64 * rtol) * len(K) ** 0.5 * size:
            check_psd(K, "The output Gram matrix", given)

    def encode(self, products: np.ndarray) -> Coordinates:
        """Return the coordinates of outputs given by their inner products with the pivots, (m, r)."""
        return Coordinates(triangular_solve(self._lower, products.T).T)

    def weights(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the weights (m, r) of the pivots in elements with these coordinates."""
        return triangular_solve(self._lower, coordinates.T, transposed=True).T

    def decode(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the inner products with the training outputs, shape (m, n)."""
        return np.asarray(coordinates @ self.targets_.T)


class KernelOutputs(Representation):
    r"""Outputs in the feature space of a kernel, :math:`y \mapsto \phi(y)`.

    A kernel with finitely many features, such as ``Linear``, uses these as coordinates, :math:`V = Y`. For other
    kernels the coordinates are the rows of a factor of the Gram matrix, :math:`V V^\top = K_Y`, of the same rank.

    Parameters
    ----------
    kernel : ScalarKernel, str or callable, default="linear"
        Kernel on the outputs; with ``"precomputed"`` the outputs are given by their Gram matrix.
    rtol : float or None, default=None
        As for ``GramFactor``.
    center : bool, default=False
        Whether to subtract the mean of the outputs in the feature space.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` takes 500 features of the kernel as coordinates: the outputs are projected, and no n × n matrix
        is formed. Norms of outputs remain those of the kernel, so the distance of a prediction to an output is exact.

    Attributes
    ----------
    targets_ : array of shape (n, p)
        Coordinates of the training outputs.
    outputs_ : array
        The training outputs.
    mean_ : array of shape (1, p)
        Coordinates of the mean that was subtracted; zero unless the outputs are centred.
    kernel_ : ScalarKernel
        The kernel with its data-dependent parameters resolved.
    representation_error_ : float
        Share of the squared norm of the training outputs that lies outside the span of an approximation. The certified
        problem does not include it.

    References
    ----------
    [Laforgue2020]_, section 4.1 and Thm 4; [Brouard2016]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.representations import KernelOutputs
    >>> Y = np.array([[0.0], [1.0], [2.0]])
    >>> representation = KernelOutputs(Gaussian(1.0)).fit(Y)
    >>> coordinates = representation.encode(Y).rows
    >>> bool(np.allclose(coordinates @ coordinates.T, Gaussian(1.0)(Y)))
    True
    """

    def __init__(
        self,
        kernel: ScalarKernel | str = "linear",
        rtol: float | None = None,
        center: bool = False,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.rtol = rtol
        self.center = center
        self.approximation = approximation

    def learn(self, Y: Outputs, weights: Array | None = None, operator: OutputOperator | None = None) -> Coordinates:
        """Compute the coordinates of the training outputs."""
        self.kernel_ = as_scalar_kernel(self.kernel).resolve(Y, weights)
        self.outputs_ = Y
        self._feature_kernel = self.kernel_ if self.approximation is None else self._approximated(weights)
        features = self._feature_kernel.features(Y)
        self._factor: _Pivots | GramFactor | None = None
        if features is None:
            n, advice = int(Y.shape[0]), "Use output_approximation=Nystrom(500), or fit on a part of the sample"
            check_memory(16 * n**2, f"The Gram matrix of {n} outputs", advice)
            K = self.kernel_(Y)
            if K.shape[0] != K.shape[1]:
                raise ValueError(f"The output Gram matrix must be square. Got shape {tuple(K.shape)} instead.")
            check_no_overflow(K, f"The Gram matrix of {self.kernel_!r}")
            self._factor = _Pivots(K, self.rtol) if is_numpy(K) else GramFactor(self.rtol).fit(K)
            features = self._factor.targets_
        self.representation_error_ = 0.0 if self.approximation is None else self._lost(features)
        xp = namespace(features)
        counts = xp.ones_like(features[:, 0]) if weights is None else weights
        mean = (counts[None, :] @ features) / xp.sum(counts)
        self.mean_ = mean if self.center else 0 * mean
        self.targets_ = features - self.mean_ if self.center else features
        return Coordinates(self.targets_)

    def _approximated(self, weights: Array | None) -> ScalarKernel:
        """Return the kernel of the features that approximate the outputs."""
        approximation = cast(Approximation, self.approximation)
        if self.is_pairwise or approximation.n_components == "auto":
            raise IncompatibleError(
                f"{approximation!r} cannot approximate {self.kernel_!r} of the outputs. Use a kernel on the outputs "
                "themselves and a number of components, such as Nystrom(500)."
            )
        return approximation.approximate(self.kernel_, self.outputs_, weights)

    def _lost(self, features: Array) -> float:
        """Return the share of the squared norm of the outputs that their features miss."""
        total = float(np.sum(host(self.kernel_.diag(self.outputs_))))
        kept = float(namespace(features).sum(features**2))
        return max(0.0, 1 - kept / total) if total > 0 else 0.0

    @property
    def has_points(self) -> bool:  # type: ignore[override]
        """Whether coordinates are features of the outputs, such as their entries."""
        return self.approximation is None and as_scalar_kernel(self.kernel).tags.has_features

    @property
    def is_pairwise(self) -> bool:  # type: ignore[override]  # depends on the kernel
        """Whether outputs are given by their Gram matrix."""
        return self.kernel_.tags.is_pairwise

    def take(self, Y: Outputs, index: Index) -> Outputs:
        """Return the selected outputs, or the corresponding part of a Gram matrix."""
        kernel = as_scalar_kernel(self.kernel)
        return GramFactor().take(Y, index) if kernel.tags.is_pairwise else namespace(Y).take(Y, index, axis=0)

    def encode(self, Y: Outputs) -> Coordinates:
        """Return the coordinates of the projections of outputs on the span of the training outputs."""
        Y = self.own(Y)
        if self._factor is None:
            return Coordinates(self._features(Y))
        return self._factor.encode(self._values(Y))

    def decode(self, coordinates: Array) -> Array:
        """Return the features or, for kernels without features, the inner products with the training outputs."""
        return coordinates if self._factor is None else self._factor.decode(coordinates)

    def congruence(self, matrix: Array) -> Array:
        """Return the matrix if the kernel is linear, as coordinates are then the outputs themselves; else raise."""
        if self.approximation is None and isinstance(self.kernel_, Linear):
            return self._on_columns(matrix, int(self.targets_.shape[1]))
        raise IncompatibleError(
            f"A matrix acts on outputs that are vectors with a linear kernel. The kernel of the outputs is "
            f"{self.kernel_!r}{' with an approximation' if self.approximation else ''}. Use output_kernel='linear', or "
            "Identity() or Covariance() as the operator."
        )

    def squared_norms(self, outputs: Outputs) -> Array:
        """Return k(y, y) for each output, (C,)."""
        if self.is_pairwise:
            raise IncompatibleError(
                "Candidates given by their inner products with the training outputs need their own norms. Give a "
                "pair (products, squared norms), or decode among the training outputs."
            )
        return self.kernel_.diag(outputs)

    def known_norms(self, outputs: Outputs, given: Array | None = None) -> Array:
        """Return the squared norms of outputs (C,), as given or else by the kernel.

        If the training outputs of a Gram matrix all have the same norm, other outputs are assumed to have it too.
        """
        if given is not None:
            if tuple(np.shape(given)) != (outputs.shape[0],):
                raise ValueError(f"squared_norms must have shape ({outputs.shape[0]},). Got {np.shape(given)} instead.")
            return as_like(given, self.targets_)
        if not self.is_pairwise:
            return as_like(self.squared_norms(outputs), self.targets_)
        own = host(namespace(self.outputs_).linalg.diagonal(self.outputs_))
        if np.ptp(own) > _SAME * np.max(np.abs(own)):
            raise IncompatibleError(
                "The training points of this Gram matrix have different norms, so inner products with them do not "
                "determine those of other points. Give squared_norms, k(x, x) of each point."
            )
        return as_like(np.full(outputs.shape[0], own[0]), self.targets_)

    def products(self, coordinates: Array, outputs: Outputs) -> Array:
        """Return the inner products of elements of the feature space (m, p) with outputs (C, ...), shape (m, C)."""
        parts = list(self.product_blocks(coordinates, outputs))
        return parts[0] if len(parts) == 1 else namespace(coordinates).concat(parts, axis=1)

    def product_blocks(self, coordinates: Array, outputs: Outputs) -> Iterator[Array]:
        """Yield the same for consecutive blocks of outputs, so that only a part is in memory."""
        left = self._dual(coordinates)
        for _, block in self._blocks(left, outputs):
            yield left @ block.T

    def paired_products(self, coordinates: Array, outputs: Outputs, owner: Array) -> Array:
        """Return the inner product of each output (C, ...) with its element, given by an index (C,) into the rows."""
        xp, left, first, parts = namespace(coordinates), self._dual(coordinates), 0, []
        for _, block in self._blocks(left, outputs):
            rows = xp.take(left, owner[first : first + block.shape[0]], axis=0)
            parts.append(xp.sum(rows * block, axis=1))
            first += block.shape[0]
        return parts[0] if len(parts) == 1 else xp.concat(parts)

    @property
    def has_weights(self) -> bool:
        """Whether coordinates define weights of the training outputs."""
        return self._factor is not None

    def weights(self, coordinates: Array) -> Array:
        """Return the weights (m, n) of the training outputs in elements with these coordinates."""
        if self._factor is None:
            raise IncompatibleError(
                "Coordinates that are features do not define weights on the training outputs. Use an output kernel "
                "without features, such as Gaussian()."
            )
        weights = self._factor.weights(coordinates)
        if not isinstance(self._factor, _Pivots):
            return weights
        spread = np.zeros((len(weights), len(self.targets_)), dtype=weights.dtype)
        spread[:, self._factor.pivots] = weights
        return spread

    def distances(self, coordinates: Array, outputs: Outputs, norms: Array | None = None) -> Array:
        """Return the squared distances between elements (m, p) and outputs (C, ...), shape (m, C)."""
        parts = list(self.distance_blocks(coordinates, outputs, norms))
        return parts[0] if len(parts) == 1 else namespace(coordinates).concat(parts, axis=1)

    def distance_blocks(self, coordinates: Array, outputs: Outputs, norms: Array | None = None) -> Iterator[Array]:
        """Yield the same for consecutive blocks of outputs, so that only a part is in memory."""
        left, sizes = self._dual(coordinates), row_norms(coordinates) ** 2
        for rows, block in self._blocks(left, outputs):
            own = self.squared_norms(self.own(outputs[rows])) if norms is None else norms[rows]
            yield sizes + as_like(own, coordinates)[None, :] - 2 * (left @ block.T)

    def magnitudes(self, coordinates: Array, outputs: Outputs) -> Array:
        """Return the size of the terms of squared distances, (m,); those of an output are at most a distance."""
        return row_norms(coordinates)[:, 0] ** 2

    def paired_distances(
        self, coordinates: Array, sets: Sequence[Outputs], norms: Sequence[Array | None]
    ) -> list[Array]:
        """Return the squared distances between each element (m, p) and the outputs of its own set, in one product."""
        xp, sizes = namespace(coordinates), [len(outputs) for outputs in sets]
        owner = as_index(np.repeat(np.arange(len(sets)), sizes), coordinates)
        own = [
            as_like(self.squared_norms(self.own(outputs)) if norm is None else norm, coordinates)
            for outputs, norm in zip(sets, norms, strict=True)
        ]
        products = self.paired_products(coordinates, joined(sets), owner)
        distances = xp.take(row_norms(coordinates)[:, 0] ** 2, owner) - 2 * products + xp.concat(own)
        ends = np.cumsum(sizes)
        return [distances[end - size : end] for end, size in zip(ends, sizes, strict=True)]

    def _dual(self, coordinates: Array) -> Array:
        """Return the factor that multiplies blocks of outputs: coordinates of features, or weights on the outputs."""
        return coordinates if self._factor is None else as_like(self._factor.weights(coordinates), coordinates)

    def _blocks(self, left: Array, outputs: Outputs) -> Iterator[tuple[slice, Array]]:
        """Yield features of outputs, or their inner products with the training outputs, in blocks of bounded size."""
        step = max(1, _BLOCK // max(left.shape))
        for first in range(0, len(outputs), step):
            rows = slice(first, first + step)
            part = self.own(outputs[rows])
            yield rows, as_like(self._features(part) if self._factor is None else self._values(part), left)

    def own(self, outputs: Outputs) -> Outputs:
        """Convert outputs to the array library and number of dimensions of the training outputs."""
        if is_numpy(outputs) and not is_numpy(self.outputs_):
            outputs = as_like(outputs, self.targets_)
        elif is_numpy(outputs) and outputs.dtype.kind == "O" and self.outputs_.dtype.kind != "O":
            outputs = outputs.astype(self.outputs_.dtype)  # numbers stored as objects
        if self.is_pairwise and outputs.shape[1] != self.outputs_.shape[0]:
            raise ValueError(
                f"Outputs must have {self.outputs_.shape[0]} columns, their products with the training outputs. "
                f"Got shape {tuple(outputs.shape)} instead."
            )
        return outputs[:, None] if outputs.ndim == 1 and self.outputs_.ndim == 2 else outputs

    def _values(self, Y: Outputs) -> Array:
        """Return the inner products of outputs with the training outputs that span the elements."""
        if not isinstance(self._factor, _Pivots):
            return Y if self.is_pairwise else self.kernel_(Y, self.outputs_)
        pivots = self._factor.pivots
        return Y[:, pivots] if self.is_pairwise else self.kernel_(Y, self.outputs_[pivots])

    def _features(self, Y: Outputs) -> Array:
        features = self._feature_kernel.features(Y)
        if features is None or features.shape[1] != self.targets_.shape[1]:
            raise ValueError(
                f"Outputs must have {self.targets_.shape[1]} columns, as the training outputs have. "
                f"Got shape {tuple(Y.shape)} instead."
            )
        return features
