"""Representation of outputs known only by their Gram matrix."""

import math
from typing import ClassVar

from fenchel._array import Array, Index, Outputs, eps, namespace
from fenchel._check import Interval, Options, check_array, check_psd
from fenchel.kernels.scalar_kernel import OutputOperator
from fenchel.representations.coordinates import Coordinates
from fenchel.representations.representation import Representation

__all__ = ["GramFactor"]


class GramFactor(Representation):
    r"""Outputs known by their Gram matrix :math:`K_Y`, represented by a factor :math:`V V^\top = K_Y`.

    ``fit`` takes :math:`K_Y` itself. The factor has as many columns as :math:`K_Y` has eigenvalues above ``rtol`` times
    the largest, so rank-deficient and near-singular matrices are valid input and nothing is ever inverted.

    Parameters
    ----------
    rtol : float or None, default=None
        Eigenvalues below ``rtol`` times the largest are round-off; ``None`` means n times the precision of the dtype.

    Attributes
    ----------
    targets_ : array of shape (n, p)
        The factor V.
    n_components_ : int
        The rank p.

    Notes
    -----
    ``decode`` returns the inner products of a prediction with the n training outputs, which is all that is known about
    an element of this space.

    References
    ----------
    [Laforgue2020]_, Thm 4 (double representer theorem) and Thm 6.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.representations import GramFactor
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> outputs = Gaussian(1.0)(np.sin(X))  # all that is known of the outputs
    >>> model = OperatorKernelRegressor(representation=GramFactor(), lam=1e-3).fit(X, outputs)
    >>> bool(model.duality_gap_ <= 1e-6)
    True
    """

    is_pairwise = True
    _limits: ClassVar[dict[str, Interval | Options]] = {"rtol": Interval(0, 1, "left", also=(None,))}

    def __init__(self, rtol: float | None = None) -> None:
        self.rtol = rtol

    def learn(self, Y: Outputs, weights: Array | None = None, operator: OutputOperator | None = None) -> Coordinates:
        """Factor the Gram matrix of the outputs."""
        K = check_psd(check_array(Y, "The output Gram matrix"), "The output Gram matrix", self.rtol or 0.0)
        xp = namespace(K)
        values, vectors = xp.linalg.eigh(K)
        rtol = K.shape[0] * eps(K) if self.rtol is None else self.rtol
        top = float(values[-1])
        first = int(xp.sum(xp.astype(values <= max(rtol * top, 0.0), xp.int64)))
        first = min(first, K.shape[0] - 1)  # keep one column even if every output is zero
        values = xp.clip(xp.flip(values[first:]), min=0.0)
        self.targets_ = xp.flip(vectors[:, first:], axis=1) * xp.sqrt(values)
        self.n_components_ = int(self.targets_.shape[1])
        self._inverse_values = xp.where(values > 0, 1 / xp.where(values > 0, values, math.inf), 0 * values)
        return Coordinates(self.targets_)

    def take(self, Y: Outputs, index: Index) -> Outputs:
        """Return the Gram matrix of the selected samples."""
        xp = namespace(Y)
        return xp.take(xp.take(Y, index, axis=0), index, axis=1)

    def encode(self, Y: Outputs) -> Coordinates:
        """Return the coordinates of outputs given by their inner products with the training outputs, shape (m, n)."""
        return Coordinates((Y @ self.targets_) * self._inverse_values)

    def weights(self, coordinates: Array) -> Array:
        """Return the weights (m, n) of the training outputs in elements with these coordinates."""
        return (coordinates * self._inverse_values) @ self.targets_.T

    def decode(self, coordinates: Array) -> Array:
        """Return the inner products with the training outputs, shape (m, n)."""
        return coordinates @ self.targets_.T
