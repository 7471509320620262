"""Losses of symmetric positive definite matrices, such as covariances and diffusion tensors."""

from collections.abc import Callable

import numpy as np

from fenchel._array import Outputs
from fenchel.decoders import Decoder, WeightedMean
from fenchel.kernels import ScalarKernel, as_scalar_kernel
from fenchel.task_losses.manifold import NEAR, Manifold, PowerLoss
from fenchel.task_losses.squared import SquaredDistance, least_in_interval
from fenchel.task_losses.task_loss import numbers

__all__ = ["AffineInvariant", "LogEuclidean", "PositiveDefinite"]

_SYMMETRY_TOL = 1e-6  # allowed asymmetry of an entry, relative to the largest entry
_MEAN_STEPS, _MEAN_TOL = 500, 1e-10  # for the mean of all outputs
_CONDITION = 1e-13  # relative to the largest eigenvalue, below which the smallest is zero up to round-off


class PositiveDefinite(Manifold):
    r"""Manifold of symmetric positive definite matrices with the affine-invariant metric.

    A tangent vector at Y is :math:`Y^{1/2} S Y^{1/2}`; its coordinates are the symmetric matrix S.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import PositiveDefinite
    >>> PositiveDefinite().distance(np.eye(2)[None], np.diag([np.e, 1.0])[None]).round(4).tolist()
    [1.0]
    """

    def check(self, Z: Outputs, name: str) -> np.ndarray:
        """Check that outputs are symmetric positive definite matrices."""
        matrices = numbers(Z, name, (3,))
        if matrices.shape[1] != matrices.shape[2] or matrices.shape[1] == 0:
            raise ValueError(
                f"{name} takes square matrices, in an array of shape (n, d, d). Got shape {matrices.shape}."
            )
        turned = np.swapaxes(matrices, 1, 2)
        sizes = np.max(np.abs(matrices), axis=(1, 2))
        apart = np.max(np.abs(matrices - turned), axis=(1, 2))
        if np.any(apart > _SYMMETRY_TOL * sizes):
            worst = int(np.argmax(apart / np.where(sizes > 0, sizes, 1.0)))
            raise ValueError(f"{name} takes symmetric matrices. Matrix {worst} differs from its transpose.")
        matrices = (matrices + turned) / 2
        values = np.linalg.eigvalsh(matrices)
        bad = np.flatnonzero(values[:, 0] <= _CONDITION * np.abs(values[:, -1]))
        if len(bad):
            raise ValueError(
                f"{name} takes positive definite matrices. Matrix {bad[0]} has the eigenvalue {values[bad[0], 0]:.3e} "
                f"(its largest is {values[bad[0], -1]:.3e}); add a small multiple of the identity."
            )
        return matrices

    def distance(self, Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the norms of the logarithms of the matrices Z as seen from Y."""
        values = np.linalg.eigvalsh(_between(_power(Y, -0.5), Z))
        return np.linalg.norm(_log(values), axis=-1)

    def view(self, Y: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Return the same distances, and a function that sums the logarithms divided by them."""
        values, vectors = np.linalg.eigh(_between(_power(Y, -0.5)[:, None], Z[None]))
        logs = _log(values)
        distances = np.linalg.norm(logs, axis=-1)

        def pull(coefficients: np.ndarray) -> np.ndarray:
            far = distances > NEAR
            shares = np.where(far, coefficients, 0.0) / np.where(far, distances, 1.0)
            scaled = vectors * (shares[..., None] * logs)[..., None, :]
            return np.asarray(np.einsum("mnij,mnkj->mik", scaled, vectors))

        return distances, pull

    def exp(self, Y: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the end points of geodesics."""
        return _between(_power(Y, 0.5), _of(V, np.exp))

    def guess(self, weights: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the log-Euclidean mean, with weights that sum to one.

        Weights with a small sum are replaced by their absolute values: the mean would be far away or overflow.
        """
        sizes = np.abs(weights)
        sums, most = (np.sum(terms, axis=1, keepdims=True) for terms in (weights, sizes))
        weights = np.where(sums > most / 2, weights, sizes)
        sums = np.where(sums > most / 2, sums, most)
        weights = weights / np.where(sums > 0, sums, 1.0)
        return _of(np.tensordot(weights, _of(Z, _log), axes=1), np.exp)

    def region(self, Z: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return the projection on the smallest ball around the mean of Z that contains Z.

        If the weights have a negative sum, the weighted sum of squared distances is unbounded below.
        """
        centre = self._mean(Z)
        radius = np.max(self.distance(centre, Z))

        def project(Y: np.ndarray) -> np.ndarray:
            outside = np.flatnonzero(self.distance(centre, Y) > radius)
            if len(outside) == 0:
                return Y
            moved = Y.copy()
            logs = _of(_between(_power(centre, -0.5), Y[outside]), _log)
            logs *= (radius / np.linalg.norm(logs, axis=(1, 2)))[:, None, None]
            moved[outside] = self.exp(centre, logs)
            return moved

        return project

    def _mean(self, Z: np.ndarray) -> np.ndarray:
        """Return the Karcher mean as a single point; unlike a mean of logarithms, it is equivariant to congruences."""
        centre = self.guess(np.ones((1, len(Z))), Z)
        for _ in range(_MEAN_STEPS):
            distances, pull = self.view(centre, Z)
            move = pull(distances / len(Z))
            centre = self.exp(centre, move / max(1.0, np.max(distances)))  # curvature grows with the distance
            if np.linalg.norm(move) <= _MEAN_TOL * np.max(distances):
                break
        return centre


def _of(A: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply a function to the eigenvalues of symmetric matrices."""
    values, vectors = np.linalg.eigh(A)
    return (vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _power(A: np.ndarray, power: float) -> np.ndarray:
    return _of(A, lambda values: np.exp(power * _log(values)))


def _between(root: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return root A root, symmetric to the last digit."""
    product = root @ A @ root
    return (product + np.swapaxes(product, -1, -2)) / 2


def _log(values: np.ndarray) -> np.ndarray:
    """Return logarithms of eigenvalues, which are positive up to round-off."""
    return np.log(np.maximum(values, np.finfo(np.float64).eps * values[..., -1:]))


class AffineInvariant(PowerLoss):
    r"""Affine-invariant loss of positive definite matrices, :math:`\|\log(y^{-1/2} z y^{-1/2})\|_F^p`.

    The distance does not change if the matrices become :math:`A y A^\top` and :math:`A z A^\top`, as covariances do
    under a change of coordinates.

    Parameters
    ----------
    power : float, default=2.0
        The exponent p, from 1 to 2: 2 predicts a weighted Karcher mean, 1 a median, which is robust to outliers.

    Notes
    -----
    Predictions are restricted to the smallest ball around the mean of the training outputs that contains all of them.

    References
    ----------
    [Pennec2006]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import AffineInvariant
    >>> AffineInvariant()([np.eye(2)], [np.diag([np.e, 1.0])])
    array([1.])
    """

    manifold = PositiveDefinite()

    def __init__(self, power: float = 2.0) -> None:
        self.power = power

    def output_kernel(self) -> ScalarKernel:
        """Return a Gaussian kernel of the log-Euclidean distance."""
        return as_scalar_kernel(_log_gaussian)


class LogEuclidean(SquaredDistance):
    r"""Log-Euclidean loss of positive definite matrices, :math:`\|\log y - \log z\|_F^2`.

    Parameters
    ----------
    rule : {"weighted_loss", "nearest"}, default="weighted_loss"
        ``"weighted_loss"`` predicts the matrix with the smallest weighted loss among those whose eigenvalues lie
        between the extreme ones of the training outputs: :math:`\exp(\sum_i \alpha_i(x) \log z_i / s)` with the sum
        :math:`s` of the weights, eigenvalues clipped. ``"nearest"`` predicts :math:`\exp \sum_i \alpha_i(x) \log z_i`:
        kernel ridge regression of the logarithms.

    References
    ----------
    [Arsigny2006]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import LogEuclidean
    >>> LogEuclidean()([np.eye(2)], [np.diag([np.e, 1.0])])
    array([1.])
    """

    def __init__(self, rule: str = "weighted_loss") -> None:
        self.rule = rule

    def check(self, Z: Outputs) -> Outputs:
        """Check that outputs are symmetric positive definite matrices."""
        return PositiveDefinite().check(Z, "LogEuclidean")

    def products(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the inner products of the logarithms."""
        return _log_products(np.asarray(Y, dtype=np.float64), np.asarray(Z, dtype=np.float64))

    def norms(self, Y: Outputs) -> np.ndarray:
        """Return the squared norms of the logarithms."""
        return np.asarray(np.sum(_log(np.linalg.eigvalsh(np.asarray(Y, dtype=np.float64))) ** 2, axis=1))

    def decoder(self) -> Decoder:
        """Return the closed form."""
        return WeightedMean()

    def combine(self, weights: np.ndarray, Z: Outputs, seen: Outputs) -> np.ndarray:
        """Return the optimal predictions; those of smallest weighted loss have eigenvalues like the outputs seen."""
        logs = _of(Z, _log)
        if self.rule == "nearest":
            return _of(np.tensordot(weights, logs, axes=1), np.exp)
        values = _log(np.linalg.eigvalsh(np.asarray(seen, dtype=np.float64)))
        low, high = float(np.min(values)), float(np.max(values))
        middle, total = (low + high) / 2, np.sum(weights, axis=1)[:, None]
        pull = np.tensordot(weights, logs - middle * np.eye(logs.shape[-1]), axes=1)
        return _of(pull, lambda pulls: np.exp(middle + least_in_interval(total, pulls, (high - low) / 2)))

    def output_kernel(self) -> ScalarKernel:
        """Return the kernel of the inner products of the logarithms."""
        return as_scalar_kernel(_log_products)


def _log_products(Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    logs = [_of(points, _log).reshape(len(points), -1) for points in (Y, Z)]
    return np.asarray(logs[0] @ logs[1].T)


def _log_gaussian(Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return exp(-squared log-Euclidean distance / number of free entries)."""
    return np.exp(-LogEuclidean().matrix(Y, Z) * 2 / (Y.shape[1] * (Y.shape[1] + 1)))
