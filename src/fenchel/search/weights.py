"""Multiple kernel learning by minimising the leave-one-out error: draws from the simplex, then gradient descent."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from fenchel._array import Array, Inputs, as_index, as_like, host, namespace
from fenchel._check import check_array
from fenchel.data.content import contents, shuffled
from fenchel.kernels import MultipleKernel, Precomputed, ScalarKernel
from fenchel.kernels.multiple import observed_scale
from fenchel.resample.left_out import LEAST_RIDGE, LeftOutResiduals, is_plausible
from fenchel.search.race import FLAT, Ridge

__all__ = ["KernelWeights", "LeftOutError", "learn_kernel_weights"]

_DRAWN_ON = 250  # number of samples on which draws are compared
_STEP = math.log(10) / 3  # step of the log ridge, as in the kernel search
_LEAST = 1e-3  # smallest share of a group at the start of the descent, whose logarithm must be finite


@dataclass(frozen=True)
class KernelWeights:
    """Result of ``learn_kernel_weights``.

    Attributes
    ----------
    kernel : MultipleKernel or Precomputed
        The kernel with its weights; ``Precomputed`` if Gram matrices were given: fit on ``combine`` of them.
    lam : float
        The corresponding lam, for ``loss="square"``.
    error : float
        Mean squared leave-one-out error on the samples of the search.
    weights_ : array of shape (M,)
        Weights of the groups, which sum to 1, for kernels scaled to mean diagonal 1.
    names : list of str
        Names of the groups.
    scales : array of shape (M,)
        Mean diagonals of the kernels, by which they are divided.
    errors : dict of str to float
        Leave-one-out error with each group alone, and with equal weights (``"equal"``), on the samples of the draws.
    index : array
        The samples of the search, excluding those taken for outliers.
    history : list of float
        The error after each evaluation of the descent.
    """

    kernel: ScalarKernel
    lam: float
    error: float
    weights_: np.ndarray
    names: list[str]
    scales: np.ndarray = field(repr=False)
    errors: dict[str, float] = field(repr=False)
    index: np.ndarray = field(repr=False)
    history: list[float] = field(repr=False)

    def combine(self, grams: Mapping[str, Array]) -> Array:
        """Return the weighted sum of the matrices of the groups, between training samples or from new ones to these."""
        _check_names(grams, self.names)
        factors = self.weights_ / self.scales
        return sum(float(factor) * grams[name] for name, factor in zip(self.names, factors, strict=True))


@dataclass(frozen=True)
class LeftOutError:
    """Mean squared leave-one-out error of a weighted sum of kernels, as a function of logarithms.

    ``theta`` holds one logarithm per group, with weights given by the softmax, and the logarithm of the ridge.
    """

    grams: list[Array]  # (n, n), zero where a group is missing
    observed: np.ndarray  # (n, M)
    targets: Array  # (n, p)
    normalize: bool = False  # as in MultipleKernel

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the logarithm of the error, and its gradient."""
        shares, ridge = _shares_of(theta[:-1]), math.exp(theta[-1])
        kernel, scale = self.matrix(shares)
        xp, left_out = namespace(kernel), self._left_out(kernel, ridge)
        total = float(xp.sum(left_out.residuals**2))
        pull = left_out.pulled_back(2 * left_out.residuals / total)
        scaled = pull * (scale[:, None] * scale[None, :])
        by_share = np.array([float(xp.sum(scaled * gram)) for gram in self.grams])
        if self.normalize:
            by_share = by_share - self._by_scale(pull * kernel, scale)
        by_ridge = float(xp.sum(xp.linalg.diagonal(pull))) * ridge
        slopes = shares * (by_share - shares @ by_share)
        return math.log(total / len(self.observed)), np.append(slopes, by_ridge)

    def _by_scale(self, products: Array, scale: Array) -> np.ndarray:
        """Return minus the derivatives in the weights through the scales of incomplete samples."""
        xp = namespace(products)
        ends = host((xp.sum(products, axis=0) + xp.sum(products, axis=1)) * scale**2)
        slopes: np.ndarray = ends @ self.observed / 2
        return slopes

    def errors(self, theta: np.ndarray) -> np.ndarray:
        """Return the squared leave-one-out error of each sample."""
        kernel, _ = self.matrix(_shares_of(theta[:-1]))
        residuals = self._left_out(kernel, math.exp(theta[-1])).residuals
        return host(namespace(residuals).sum(residuals**2, axis=1))

    def matrix(self, shares: np.ndarray) -> tuple[Array, Array]:
        """Return the matrix of the weighted sum, and the scales that multiply samples with missing groups."""
        sizes = observed_scale(self.observed, shares) if self.normalize else np.ones(len(self.observed))
        scale = as_like(sizes, self.targets)
        total = sum(float(share) * gram for share, gram in zip(shares, self.grams, strict=True))
        return total * (scale[:, None] * scale[None, :]), scale

    def part(self, rows: np.ndarray) -> "LeftOutError":
        """Return the error restricted to some of the samples."""
        xp, places = namespace(self.targets), as_index(rows, self.targets)
        grams = [xp.take(xp.take(gram, places, axis=0), places, axis=1) for gram in self.grams]
        return LeftOutError(grams, self.observed[rows], xp.take(self.targets, places, axis=0), self.normalize)

    def _left_out(self, kernel: Array, ridge: float) -> LeftOutResiduals:
        identity = as_like(np.eye(len(self.observed)), self.targets)
        return LeftOutResiduals.of(kernel + ridge * identity, self.targets)


def _without_names(table: Any) -> Any:
    """Return a data frame or a list as an array; arrays are unchanged."""
    is_table = hasattr(table, "iloc") or isinstance(table, list | tuple)
    return np.asarray(table, dtype=float) if is_table else table


def learn_kernel_weights(
    kernel: MultipleKernel | str,
    X: Array | Mapping[str, Array],
    Y: Array,
    n_draws: int = 50,
    max_iter: int = 60,
    max_samples: int = 500,
    center: bool = True,
    outliers: bool = False,
    random_state: int = 0,
) -> KernelWeights:
    """Learn the weights of several kernels that minimise the leave-one-out error of kernel ridge regression.

    The error has a closed form and an exact gradient. Draws from the simplex, each group alone and equal weights are
    compared first, each at its best lam; L-BFGS continues from the best of them, in the weights and lam jointly.

    Parameters
    ----------
    kernel : MultipleKernel or "precomputed"
        The kernels, one for each group of columns; its weights are ignored.
    X : array or data frame of shape (n, d), or mapping of str to array of shape (n, n)
        Inputs, NaN where a group is missing; with ``"precomputed"``, the Gram matrix of each group.
    Y : array or data frame of shape (n,) or (n, p)
        Outputs, or their coordinates in a representation, such as ``KernelOutputs(kernel).fit(Y).targets_``.
    n_draws : int, default=50
        Number of draws from the simplex; 0 starts from the best single group or equal weights.
    max_iter : int, default=60
        Maximum number of L-BFGS iterations; 0 keeps the best draw.
    max_samples : int, default=500
        Number of samples used in the descent; an evaluation costs their number cubed. Draws are compared on 250 of
        them.
    center : bool, default=True
        Whether to subtract the mean of the outputs, as an estimator with ``center=True`` does.
    outliers : bool, default=False
        Whether some outputs may be wrong: after a first search, samples with errors far above the median are excluded
        from a second one. Fit with a robust loss in this case.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    found : KernelWeights
        Result with ``kernel`` and ``lam`` for any estimator, and ``weights_`` with the ``names`` of the groups.

    Notes
    -----
    Weights depend on the outputs: learn them on training samples only. They are few, so the leave-one-out error stays
    close to the error on new samples.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor, learn_kernel_weights
    >>> from fenchel.kernels import Gaussian, MultipleKernel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (120, 6))
    >>> y = np.sin(3 * X[:, 2]) * X[:, 3] + 0.1 * rng.standard_normal(120)
    >>> groups = [("one", slice(0, 2)), ("two", slice(2, 4)), ("three", slice(4, 6))]
    >>> kernel = MultipleKernel([(name, Gaussian("median"), columns) for name, columns in groups])
    >>> found = learn_kernel_weights(kernel, X, y)
    >>> found.names[np.argmax(found.weights_)], bool(found.weights_[1] > 0.9)
    ('two', True)
    >>> model = OperatorKernelRegressor(found.kernel, loss="huber", lam=found.lam).fit(X, y)
    """
    if isinstance(kernel, MultipleKernel):
        kernel = kernel.named(list(X.columns)) if hasattr(X, "columns") else kernel
        X = _without_names(X)
    Y = check_array(_without_names(Y), "Y", ndim=(1, 2))
    rng = np.random.default_rng(random_state)
    groups = _Groups.of(kernel, X, Y.shape[0])
    ranks = contents(Y, grams=list(X.values())) if isinstance(X, Mapping) else contents(Y, X)
    index = shuffled(ranks, rng)[:max_samples]
    targets = Y[:, None] if Y.ndim == 1 else Y
    targets = targets - namespace(Y).mean(targets, axis=0, keepdims=True) if center else targets
    whole = groups.error(index, targets)
    return _learned(groups, whole, index, n_draws, max_iter, outliers, rng)


def _learned(
    groups: "_Groups",
    whole: LeftOutError,
    index: np.ndarray,
    n_draws: int,
    max_iter: int,
    outliers: bool,
    rng: np.random.Generator,
) -> KernelWeights:
    """Return the weights that minimise the error of the samples of ``index``, from the best of the draws."""
    starts = _starts(len(groups.names), n_draws, rng)
    few = np.sort(rng.permutation(len(index))[:_DRAWN_ON])
    history, errors = list[float](), np.zeros(0)
    for is_last in (False, True) if outliers else (True,):
        theta, errors = _best_draw(whole.part(few), starts)
        theta = _descended(whole, theta, max_iter, history)
        if not is_last:
            kept = np.flatnonzero(is_plausible(whole.errors(theta)))
            index, whole, few = index[kept], whole.part(kept), np.flatnonzero(np.isin(kept, few))
    shares, ridge = _shares_of(theta[:-1]), math.exp(_raised(whole, theta)[-1])
    titles = [*groups.names, "equal"]
    return KernelWeights(
        kernel=groups.weighted(shares),
        lam=ridge / max(1, len(index) - 1),
        error=float(np.mean(whole.errors(theta))),
        weights_=shares,
        names=groups.names,
        scales=groups.scales,
        errors=dict(zip(titles, errors[: len(titles)].tolist(), strict=True)),
        index=np.sort(index),
        history=history,
    )


@dataclass(frozen=True)
class _Groups:
    """Kernels on a sample, or their Gram matrices."""

    names: list[str]
    scales: np.ndarray
    kernel: MultipleKernel | None
    X: Inputs  # inputs, or a mapping of names to matrices

    @classmethod
    def of(cls, kernel: MultipleKernel | str, X: Inputs, n: int) -> "_Groups":
        if isinstance(kernel, MultipleKernel):
            if X.shape[0] != n:
                raise ValueError(f"X and Y must have the same number of samples. Got {X.shape[0]} and {n}.")
            known = kernel.with_(kernel.groups, None, kernel.scales).resolve(X)
            return cls(known.names, np.asarray(known.scales), known, X)
        if kernel != "precomputed" or not isinstance(X, Mapping):
            raise TypeError(
                "The 'kernel' argument must be a MultipleKernel, or 'precomputed' with a mapping of names to Gram "
                f"matrices. Got {kernel!r} and {type(X).__name__}."
            )
        shapes = {name: tuple(gram.shape) for name, gram in X.items()}
        if not shapes or any(shape != (n, n) for shape in shapes.values()):
            raise ValueError(f"X must hold Gram matrices of shape {(n, n)}. Got {shapes}.")
        diagonals = [float(namespace(gram).linalg.trace(gram)) / n for gram in X.values()]
        return cls(list(X), np.array(diagonals), None, X)

    def error(self, index: np.ndarray, targets: Array) -> LeftOutError:
        """Return the leave-one-out error of the selected samples."""
        xp, rows = namespace(targets), as_index(index, targets)
        targets = _compressed(xp.take(targets, rows, axis=0))
        if self.kernel is not None:
            terms, observed = self.kernel.terms(xp.take(self.X, rows, axis=0))
            return LeftOutError(terms, observed, targets, self.kernel.normalize)
        grams = [
            xp.take(xp.take(self.X[name], rows, axis=0), rows, axis=1) / float(scale)
            for name, scale in zip(self.names, self.scales, strict=True)
        ]
        return LeftOutError(grams, np.ones((len(index), len(grams)), dtype=bool), targets)

    def weighted(self, shares: np.ndarray) -> ScalarKernel:
        """Return the kernel with the given weights."""
        if self.kernel is None:
            return Precomputed()
        return self.kernel.with_(self.kernel.groups, shares.tolist(), self.scales.tolist())


def _starts(count: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return initial weights: each group alone, equal weights, and draws from the simplex."""
    return np.concatenate([np.eye(count), np.full((1, count), 1 / count), rng.dirichlet(np.ones(count), n_draws)])


def _best_draw(error: LeftOutError, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithms of the best weights and of their ridge, and the errors of all weights."""
    targets, counts = host(error.targets).astype(np.float64), np.ones(len(error.observed))
    ridges, errors = np.zeros(len(starts)), np.zeros(len(starts))
    for k, shares in enumerate(starts):
        regressions = Ridge.of(host(error.matrix(shares)[0]).astype(np.float64), counts)
        lam, errors[k] = regressions.best_lam(targets)
        ridges[k] = lam * regressions.scale * max(1, len(counts) - 1)
    best = int(np.argmin(errors))
    return np.append(np.log(starts[best] + _LEAST), math.log(max(ridges[best], LEAST_RIDGE))), errors


def _descended(error: LeftOutError, start: np.ndarray, steps: int, history: list[float]) -> np.ndarray:
    """Return the logarithms after L-BFGS."""

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        found = error(theta)
        history.append(math.exp(found[0]))
        return found

    if steps == 0:
        return start
    bounds = [(None, None)] * (len(start) - 1) + [(math.log(LEAST_RIDGE), None)]
    result = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
    theta: np.ndarray = result.x
    return theta


def _raised(error: LeftOutError, theta: np.ndarray) -> np.ndarray:
    """Return the logarithms with the largest ridge whose error is nearly the smallest: it is solved more accurately."""
    step, most = np.append(np.zeros(len(theta) - 1), _STEP), (1 + FLAT) * float(np.mean(error.errors(theta)))
    while float(np.mean(error.errors(theta + step))) <= most and theta[-1] < 0:
        theta = theta + step
    return theta


def _shares_of(logarithms: np.ndarray) -> np.ndarray:
    """Return the softmax of logarithms."""
    sizes = np.exp(logarithms - np.max(logarithms))
    shares: np.ndarray = sizes / np.sum(sizes)
    return shares


def _compressed(targets: Array) -> Array:
    """Return targets with the same inner products in at most n coordinates."""
    n, p = targets.shape
    xp = namespace(targets)
    return targets if p <= n else xp.matrix_transpose(xp.linalg.qr(xp.matrix_transpose(targets), mode="reduced")[1])


def _check_names(grams: Mapping[str, Array], names: list[str]) -> None:
    if set(grams) != set(names):
        raise ValueError(f"The matrices must be those of the groups {names}. Got {list(grams)}.")
