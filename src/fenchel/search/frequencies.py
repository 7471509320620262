"""Learning the weights of the frequencies of periodic signals by gradient descent on the leave-one-out error."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from fenchel._array import Array, as_index, as_like, host, namespace
from fenchel._check import Options, check_array, check_parameter
from fenchel.data.content import contents, shuffled
from fenchel.kernels import Equivariant, Filtered, Linear, RationalQuadratic
from fenchel.kernels.equivariant import GROUPS
from fenchel.operators.cyclic import Mirrored, Turn
from fenchel.resample.left_out import LEAST_RIDGE, LeftOutResiduals, is_plausible

__all__ = ["FrequencySearch", "LeftOut", "learn_frequencies"]

_LEAST_SHARE = 1e-12  # smallest ridge for a fit, as a share of its kernel; there may be more samples than in the search


@dataclass(frozen=True)
class FrequencySearch:
    """Result of ``learn_frequencies``.

    Attributes
    ----------
    kernel : Equivariant
        The kernel, with the learned weights of the frequencies of inputs and outputs.
    lam : float
        The corresponding lam, for a fit on all samples that were given.
    error : float
        Mean relative leave-one-out error on the samples of the search.
    weights : array of shape (m // 2 + 1,)
        Weights of the frequencies of the inputs.
    index : array
        The samples of the search, excluding those taken for outliers.
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
    """Mean relative leave-one-out error of an equivariant model as a function of the logarithms of its weights.

    The kernel of frequency f is ``RationalQuadratic`` on filtered signals plus a linear part, and each frequency has
    its own ridge. ``theta`` holds the logarithms of the weights of the inputs, of the linear parts, and of the ridges.
    """

    spectra: Array  # (n, F) of the inputs, orthonormal
    targets: Array  # (q, c n, 1), the first frequencies of the outputs
    sizes: Array  # (n,), squared norms of the outputs
    rest: Array  # (n,), squared norms of the part outside the first frequencies
    turn: Turn

    @classmethod
    def of(cls, X: Array, Y: Array, n_frequencies: int, group: str = "shifts") -> "LeftOut":
        """Return the error function of a sample."""
        xp, m, sign = namespace(X), X.shape[1], GROUPS[group]
        turn = Mirrored(m, sign) if sign else Turn(m)
        targets, sizes = turn.forward(Y, n_frequencies), xp.sum(Y**2, axis=1)
        rest = xp.clip(sizes - _energy(targets, turn), min=0.0)
        return cls(xp.fft.rfft(X, norm="ortho"), targets, sizes, rest, turn)

    def errors(self, theta: np.ndarray) -> np.ndarray:
        """Return the relative leave-one-out error of each sample."""
        return self._looked_at(theta)[2]

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the logarithm of the mean error, and its gradient."""
        return self._looked_at(theta)[:2]

    def is_usable(self, theta: np.ndarray) -> bool:
        """Whether every ridge is above the round-off of its kernel, whose linear part is not bounded by one."""
        F, q = self.spectra.shape[1], self.targets.shape[0]
        _, linear, ridge = np.split(np.exp(theta), [F, F + q])
        sizes = host(namespace(self.spectra).abs(self.spectra[:, :q]) ** 2).max(axis=0)
        return bool(np.all(np.isfinite(theta)) and np.all(ridge >= _LEAST_SHARE * (1 + linear * sizes)))

    def _looked_at(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        xp, (n, F), q = namespace(self.spectra), self.spectra.shape, self.targets.shape[0]
        weights, linear, ridge = (as_like(part, self.sizes) for part in np.split(np.exp(theta), [F, F + q]))
        pairs = [Pair.of(self.spectra, other, weights, q, self.turn.n_outputs) for other in self._partners()]
        kernel, copies = self._joined([pair.kernel(linear) for pair in pairs]), self.turn.copies
        eye = as_like(np.eye(copies * n), self.sizes)
        left_out = LeftOutResiduals.of(kernel + ridge[:, None, None] * eye[None, :, :], self.targets, copies)
        errors = xp.sqrt((_energy(left_out.residuals, self.turn) + self.rest) / self.sizes)
        total = float(xp.sum(errors))
        share = 1 / (xp.clip(errors, min=1e-300) * self.sizes * total)
        share = xp.concat([share] * copies) * _counts(self.turn.n_outputs, q, self.sizes)[:, None]
        M = left_out.pulled_back(xp.conj(left_out.residuals) * share[:, :, None])
        by_ridge = xp.sum(xp.real(xp.linalg.diagonal(M)), axis=1) * ridge
        slopes = self.turn.slopes(M) if isinstance(self.turn, Mirrored) else (M,)
        by_linear = sum(pair.by_linear(each) for pair, each in zip(pairs, slopes, strict=True)) * linear
        by_weight = sum(pair.by_weight(each, weights) for pair, each in zip(pairs, slopes, strict=True))
        gradient = np.concatenate([host(part) for part in (by_weight, by_linear, by_ridge)])
        return math.log(total / n), gradient, host(errors)

    def _partners(self) -> list[Array]:
        """Return the spectra of the second arguments of the kernel: the inputs, and their mirror images."""
        x = self.spectra
        return [x, self.turn.sign * namespace(x).conj(x)] if isinstance(self.turn, Mirrored) else [x]

    def _joined(self, kernels: list[Array]) -> Array:
        return self.turn.matrix(*kernels) if isinstance(self.turn, Mirrored) else kernels[0]


@dataclass(frozen=True)
class Pair:
    """Kernel between signals and all shifts of others, frequency by frequency, with its derivatives."""

    spectra: Array  # (n, F)
    others: Array  # (n, F), of signals with the same norms
    transforms: Array  # (q, n, n)
    slopes: Array  # (n, n, m): the derivative of the profile with respect to the squared distance
    n_points: int

    @classmethod
    def of(cls, spectra: Array, others: Array, weights: Array, q: int, m: int) -> "Pair":
        """Return the kernel for given weights of the frequencies."""
        xp, counts = namespace(spectra), _counts(m, spectra.shape[1], weights)
        rows, columns = spectra * weights, others * weights
        sizes = xp.sum(counts * xp.abs(rows) ** 2, axis=1)
        products = xp.fft.irfft(rows[:, None, :] * xp.conj(columns)[None, :, :], n=m, norm="forward")
        values = 1 / (1 + xp.clip(sizes[:, None, None] + sizes[None, :, None] - 2 * products, min=0.0) / 2)
        transforms = xp.permute_dims(xp.fft.rfft(values)[:, :, :q] / m, (2, 0, 1))
        return cls(spectra, others, transforms, values**2 / -2, m)

    def kernel(self, linear: Array) -> Array:
        """Return the matrices (q, n, n), including the linear part."""
        return self.transforms + linear[:, None, None] * self._products()

    def by_linear(self, M: Array) -> Array:
        """Return the derivative in the weights of the linear part, where M is the derivative in the matrices."""
        xp = namespace(M)
        return xp.real(xp.sum(M * self._products(), axis=(1, 2)))

    def by_weight(self, M: Array, weights: Array) -> Array:
        """Return the derivative in the logarithms of the weights of the inputs."""
        xp, x, q, m = namespace(M), self.spectra, M.shape[0], self.n_points
        counts = _counts(m, x.shape[1], weights)
        turned = xp.permute_dims(xp.conj(M) / counts[:q][:, None, None], (1, 2, 0))
        pull = xp.fft.irfft(turned, n=m, norm="forward") / m * self.slopes
        ends = xp.sum(pull, axis=(1, 2)) + xp.sum(pull, axis=(0, 2))
        squares = xp.sum(ends[:, None] * xp.abs(x) ** 2, axis=0)
        across = xp.conj(xp.fft.rfft(pull)) * x[:, None, :] * xp.conj(self.others)[None, :, :]
        return 2 * counts * weights**2 * (squares - 2 * xp.real(xp.sum(across, axis=(0, 1))))

    def _products(self) -> Array:
        xp, q = namespace(self.spectra), self.transforms.shape[0]
        return self.spectra[:, :q].T[:, :, None] * xp.conj(self.others[:, :q].T)[:, None, :]


def learn_frequencies(
    X: Array,
    Y: Array,
    n_frequencies: int | None = None,
    max_samples: int = 250,
    max_iter: int = 60,
    outliers: bool = False,
    random_state: int = 0,
    group: str = "shifts",
) -> FrequencySearch:
    """Learn which frequencies matter in an operator between functions on the same periodic grid.

    An equivariant kernel (``RationalQuadratic`` on filtered inputs plus a linear part) gets a weight for each frequency
    of the inputs, of the linear part, and of the outputs. The weights minimise the leave-one-out error of kernel ridge
    regression, which has a closed form and an exact gradient.

    Parameters
    ----------
    X, Y : array of shape (n, m)
        Functions on the same periodic grid of m points, before and after the operator; NumPy, torch or CuPy arrays.
    n_frequencies : int or None, default=None
        Number of predicted output frequencies; ``None`` means all m // 2 + 1.
    max_samples : int, default=250
        Number of samples used by the search; an evaluation costs their number cubed, times the frequencies.
    max_iter : int, default=60
        Maximum number of L-BFGS iterations.
    outliers : bool, default=False
        Whether some pairs may be wrong: after a first search, samples with errors far above the median are excluded.
        Fit with a robust loss in this case.
    random_state : int, default=0
        Seed of the random choice of samples.
    group : {"shifts", "reflections", "odd reflections"}, default="shifts"
        The symmetry of the kernel, see :class:`~fenchel.kernels.Equivariant`. If the equation has this symmetry,
        reflections are worth twice the samples; if not, ``error`` shows it.

    Returns
    -------
    found : FrequencySearch
        Result with ``kernel`` and ``lam`` for ``OperatorKernelRegressor``.

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
    check_parameter("", "group", group, Options(tuple(GROUPS)))
    if X.shape != Y.shape:
        raise ValueError(f"X and Y must have the same shape. Got {tuple(X.shape)} and {tuple(Y.shape)}.")
    m, xp = X.shape[1], namespace(X)
    F = m // 2 + 1
    q = F if n_frequencies is None else min(n_frequencies, F)
    index = shuffled(contents(X, Y), random_state)[:max_samples]
    unit = float(xp.sqrt(xp.mean(xp.sum(X**2, axis=1)))) or 1.0
    history: list[float] = []

    def searched(theta: np.ndarray | None, steps: int) -> tuple[LeftOut, np.ndarray]:
        some = as_index(index, X)
        left_out = LeftOut.of(xp.take(X, some, axis=0) / unit, xp.take(Y, some, axis=0), q, group)
        return left_out, _minimised(left_out, _start(left_out, q) if theta is None else theta, steps, history)

    left_out, theta = searched(None, max_iter // 2 if outliers else max_iter)
    if outliers:
        index = index[is_plausible(left_out.errors(theta))]
        left_out, theta = searched(theta, max_iter)
    weights, linear, ridges = np.split(np.exp(theta), [F, F + q])
    slow = np.zeros(F)
    slow[:q] = np.sqrt(linear)
    ridge = float(np.exp(np.mean(np.log(ridges))))
    kernel = Filtered(RationalQuadratic(), weights / unit) + Filtered(Linear(), slow / unit)
    error = float(np.mean(left_out.errors(theta)))
    found = Equivariant(kernel, q, ridge / ridges, group)
    return FrequencySearch(found, ridge / X.shape[0], error, weights / unit, np.sort(index), history)


def _start(left_out: LeftOut, q: int) -> np.ndarray:
    """Return initial weights that decay with the frequency, a wide kernel and a small ridge."""
    spectra = host(left_out.spectra)
    filters = 1 / (1.0 + np.arange(spectra.shape[1]))
    distances = np.sum(np.abs((spectra[1:] - spectra[:-1]) * filters) ** 2, axis=1)
    width = math.sqrt(6 * np.median(distances)) or 1.0
    return np.concatenate([np.log(filters / width), np.full(q, -5.0), np.full(q, -20.0)])


def _minimised(left_out: LeftOut, start: np.ndarray, steps: int, history: list[float]) -> np.ndarray:
    """Return the minimum, or the last point before a ridge fell below round-off, where errors are noise."""
    q, last = left_out.targets.shape[0], start

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        found = left_out(theta)
        history.append(math.exp(found[0]))
        return found

    def keep_usable(theta: np.ndarray) -> None:
        nonlocal last
        if not left_out.is_usable(theta):
            raise StopIteration
        last = theta.copy()

    bounds = [(None, None)] * (len(start) - q) + [(math.log(LEAST_RIDGE), None)] * q
    options = {"maxiter": steps}
    minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=keep_usable)
    return last


def _energy(turned: Array, turn: Turn) -> Array:
    """Return the squared norm of the signal of each sample from transformed rows (q, c n, 1)."""
    xp, (q, rows, _) = namespace(turned), turned.shape
    squares = xp.reshape(xp.abs(turned) ** 2, (q, turn.copies, rows // turn.copies))
    counts = _counts(turn.n_outputs, q, squares)
    return xp.sum(counts[:, None] * xp.sum(squares, axis=1), axis=0)


def _counts(m: int, count: int, like: Array) -> Array:
    """Return the multiplicity of each frequency of real signals: two, except for the constant and the fastest."""
    counts = np.full(m // 2 + 1, 2.0)
    counts[0] = 1.0
    if m % 2 == 0:
        counts[-1] = 1.0
    return as_like(counts[:count], like)
