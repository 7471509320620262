"""Which frequencies of periodic signals matter: weights that minimise the leave-one-out error, by its gradient."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from fenchel._array import Array, as_index, as_like, host, namespace
from fenchel._check import check_array
from fenchel.kernels import Equivariant, Filtered, Linear, RationalQuadratic

__all__ = ["FrequencySearch", "LeftOut", "learn_frequencies"]

_LEAST_RIDGE = 1e-13  # of a kernel whose values are at most one: below it is round-off


@dataclass(frozen=True)
class FrequencySearch:
    """Result of ``learn_frequencies``.

    Attributes
    ----------
    kernel : Equivariant
        The kernel, with the weights of the frequencies of inputs and outputs.
    lam : float
        The lam that belongs to it, for a fit on all samples that were given.
    error : float
        Mean relative leave-one-out error of the samples of the search.
    weights : array of shape (m // 2 + 1,)
        Weights of the frequencies of the inputs.
    index : array
        The samples of the search, without those that were taken for wrong.
    history : list of float
        The error after each evaluation.
    """

    kernel: Equivariant
    lam: float
    error: float
    weights: np.ndarray = field(repr=False)
    index: np.ndarray = field(repr=False)
    history: list[float] = field(repr=False)


@dataclass(frozen=True)
class LeftOut:
    """The mean relative leave-one-out error of an equivariant model as a function of logarithms of its weights.

    The kernel of frequency f is that of ``RationalQuadratic`` on filtered signals plus a linear part; a ridge for each
    frequency is added. ``theta`` has the logarithms of the weights of the inputs, of the linear parts, and of the
    ridges.
    """

    spectra: Array  # (n, F) of the inputs, orthonormal
    targets: Array  # (q, n), the first frequencies of the outputs
    sizes: Array  # (n,), squared norms of the outputs
    rest: Array  # (n,), squared norms of what the first frequencies leave
    n_points: int

    @classmethod
    def of(cls, X: Array, Y: Array, n_frequencies: int) -> "LeftOut":
        """Return the error of a sample."""
        xp = namespace(X)
        spectra, targets = xp.fft.rfft(X, norm="ortho"), xp.fft.rfft(Y, norm="ortho")[:, :n_frequencies].T
        sizes = xp.sum(Y**2, axis=1)
        seen = xp.sum(_counts(Y.shape[1], n_frequencies, sizes)[:, None] * xp.abs(targets) ** 2, axis=0)
        return cls(spectra, targets, sizes, xp.clip(sizes - seen, min=0.0), X.shape[1])

    def errors(self, theta: np.ndarray) -> np.ndarray:
        """Return the relative leave-one-out error of each sample."""
        return self._looked_at(theta)[2]

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the logarithm of the mean error, and its gradient."""
        return self._looked_at(theta)[:2]

    def _looked_at(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        xp, x, m = namespace(self.spectra), self.spectra, self.n_points
        (n, F), q = x.shape, self.targets.shape[0]
        weights, linear, ridge = (as_like(part, self.sizes) for part in np.split(np.exp(theta), [F, F + q]))
        counts = _counts(m, F, self.sizes)
        profile, slopes = self._values(weights, counts)
        some = x[:, :q].T  # (q, n)
        products = some[:, :, None] * xp.conj(some)[:, None, :]
        kernel = xp.permute_dims(xp.fft.rfft(profile)[:, :, :q] / m, (2, 0, 1)) + linear[:, None, None] * products
        inverse = xp.linalg.inv(kernel + ridge[:, None, None] * as_like(np.eye(n), self.sizes)[None, :, :])
        duals = xp.matmul(inverse, self.targets[:, :, None])[:, :, 0]
        diagonal = xp.real(xp.linalg.diagonal(inverse))
        residuals = duals / diagonal
        own = counts[:q][:, None]
        errors = xp.sqrt((xp.sum(own * xp.abs(residuals) ** 2, axis=0) + self.rest) / self.sizes)
        total = float(xp.sum(errors))
        # the derivative in the matrices: Re sum_ij M_ij dA_ij
        share = own / (2 * xp.clip(errors, min=1e-300) * self.sizes * total)[None, :]
        left = 2 * share * xp.conj(residuals) / diagonal
        middle = -2 * share * xp.abs(residuals) ** 2 / diagonal
        M = -duals[:, :, None] * xp.matmul(left[:, None, :], inverse) - inverse @ (middle[:, :, None] * inverse)
        M = xp.permute_dims(M, (0, 2, 1))
        by_ridge = xp.sum(xp.real(xp.linalg.diagonal(M)), axis=1) * ridge
        by_linear = xp.real(xp.sum(M * products, axis=(1, 2))) * linear
        by_weight = self._by_weight(M, slopes, weights, counts)
        gradient = np.concatenate([host(part) for part in (by_weight, by_linear, by_ridge)])
        return math.log(total / n), gradient, host(errors)

    def _values(self, weights: Array, counts: Array) -> tuple[Array, Array]:
        """Return k at all shifts, (n, n, m), and its derivative in the squared distance."""
        xp, rows = namespace(self.spectra), self.spectra * weights
        sizes = xp.sum(counts * xp.abs(rows) ** 2, axis=1)
        products = xp.fft.irfft(rows[:, None, :] * xp.conj(rows)[None, :, :], n=self.n_points, norm="forward")
        values = 1 / (1 + xp.clip(sizes[:, None, None] + sizes[None, :, None] - 2 * products, min=0.0) / 2)
        return values, values**2 / -2

    def _by_weight(self, M: Array, slopes: Array, weights: Array, counts: Array) -> Array:
        """Return the derivative in the logarithms of the weights of the inputs."""
        xp, x, q = namespace(M), self.spectra, M.shape[0]
        turned = xp.permute_dims(xp.conj(M) / counts[:q][:, None, None], (1, 2, 0))
        pull = xp.fft.irfft(turned, n=self.n_points, norm="forward") / self.n_points * slopes
        ends = xp.sum(pull, axis=(1, 2)) + xp.sum(pull, axis=(0, 2))
        squares = xp.sum(ends[:, None] * xp.abs(x) ** 2, axis=0)
        across = xp.conj(xp.fft.rfft(pull)) * x[:, None, :] * xp.conj(x)[None, :, :]
        return 2 * counts * weights**2 * (squares - 2 * xp.real(xp.sum(across, axis=(0, 1))))


def learn_frequencies(
    X: Array,
    Y: Array,
    n_frequencies: int | None = None,
    max_samples: int = 250,
    max_iter: int = 60,
    outliers: bool = False,
    random_state: int = 0,
) -> FrequencySearch:
    """Learn which frequencies matter in an operator between functions on the same periodic grid.

    An equivariant kernel (``RationalQuadratic`` on filtered inputs and a linear part) gets a weight for each frequency
    of the inputs, of the linear part, and of the outputs: those with the least leave-one-out error of kernel ridge
    regression, which has a closed form and an exact gradient.

    Parameters
    ----------
    X, Y : array of shape (n, m)
        Functions on the same periodic grid of m points, before and after the operator; NumPy, torch or CuPy.
    n_frequencies : int or None, default=None
        Frequencies of the outputs that are predicted; ``None`` takes all m // 2 + 1.
    max_samples : int, default=250
        Samples that the search looks at; an evaluation costs their number cubed, times the frequencies.
    max_iter : int, default=60
        Iterations of L-BFGS.
    outliers : bool, default=False
        Whether some pairs may be wrong: after a first search those whose errors are far above the median are left out.
        Fit with a robust loss then.
    random_state : int, default=0
        Seed of the draw of the samples.

    Returns
    -------
    found : FrequencySearch
        ``kernel`` and ``lam`` for ``OperatorKernelRegressor``.

    Examples
    --------
    >>> from fenchel import OperatorKernelRegressor, learn_frequencies
    >>> from fenchel.datasets import make_burgers
    >>> data = make_burgers(80, n_points=32)
    >>> found = learn_frequencies(data.X[:60], data.Y[:60], max_iter=20)
    >>> model = OperatorKernelRegressor(found.kernel, loss="square", lam=found.lam).fit(data.X[:60], data.Y[:60])
    >>> model.predict(data.X[60:]).shape
    (20, 32)
    """
    X, Y = check_array(X, "X"), check_array(Y, "Y")
    if X.shape != Y.shape:
        raise ValueError(f"X and Y must have the same shape. Got {tuple(X.shape)} and {tuple(Y.shape)}.")
    m, xp = X.shape[1], namespace(X)
    F = m // 2 + 1
    q = F if n_frequencies is None else min(n_frequencies, F)
    index = np.sort(np.random.default_rng(random_state).permutation(X.shape[0])[:max_samples])
    unit = float(xp.sqrt(xp.mean(xp.sum(X**2, axis=1)))) or 1.0
    history: list[float] = []

    def searched(theta: np.ndarray | None, steps: int) -> tuple[LeftOut, np.ndarray]:
        some = as_index(index, X)
        left_out = LeftOut.of(xp.take(X, some, axis=0) / unit, xp.take(Y, some, axis=0), q)
        return left_out, _minimised(left_out, _start(left_out, q) if theta is None else theta, steps, history)

    left_out, theta = searched(None, max_iter // 2 if outliers else max_iter)
    if outliers:
        sizes = np.log(left_out.errors(theta))
        middle = np.median(sizes)
        index = index[sizes <= middle + 3 * 1.4826 * np.median(np.abs(sizes - middle))]
        left_out, theta = searched(theta, max_iter)
    weights, linear, ridges = np.split(np.exp(theta), [F, F + q])
    slow = np.zeros(F)
    slow[:q] = np.sqrt(linear)
    ridge = float(np.exp(np.mean(np.log(ridges))))
    kernel = Filtered(RationalQuadratic(), weights / unit) + Filtered(Linear(), slow / unit)
    error = float(np.mean(left_out.errors(theta)))
    return FrequencySearch(
        Equivariant(kernel, q, ridge / ridges), ridge / X.shape[0], error, weights / unit, index, history
    )


def _start(left_out: LeftOut, q: int) -> np.ndarray:
    """Return weights that fall as the frequency, a wide kernel and a small ridge."""
    spectra = host(left_out.spectra)
    filters = 1 / (1.0 + np.arange(spectra.shape[1]))
    distances = np.sum(np.abs((spectra[1:] - spectra[:-1]) * filters) ** 2, axis=1)
    width = math.sqrt(6 * np.median(distances)) or 1.0
    return np.concatenate([np.log(filters / width), np.full(q, -5.0), np.full(q, -20.0)])


def _minimised(left_out: LeftOut, start: np.ndarray, steps: int, history: list[float]) -> np.ndarray:
    q = left_out.targets.shape[0]

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        found = left_out(theta)
        history.append(math.exp(found[0]))
        return found

    bounds = [(None, None)] * (len(start) - q) + [(math.log(_LEAST_RIDGE), None)] * q
    result = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
    theta: np.ndarray = result.x
    return theta


def _counts(m: int, count: int, like: Array) -> Array:
    """Return how often a frequency of real signals counts: twice, but for the constant and the fastest."""
    counts = np.full(m // 2 + 1, 2.0)
    counts[0] = 1.0
    if m % 2 == 0:
        counts[-1] = 1.0
    return as_like(counts[:count], like)
