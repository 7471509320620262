"""Inner layers of an autoencoder: codes, their derivatives, and the objective that they minimise."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from fenchel._array import Array, as_like, cholesky_solver, device, eps, host, namespace, row_norms
from fenchel._check import Interval, check_parameter
from fenchel._progress import here
from fenchel.kernels import ScalarKernel
from fenchel.kernels.derivatives import weighted_gradient
from fenchel.losses import Loss
from fenchel.operators import Dense
from fenchel.problem import DualProblem
from fenchel.problem.dual_problem import arithmetic
from fenchel.solvers import ClosedForm, RowNewton, Solution, Solver, Status

__all__ = ["INTERRUPTED", "Layers", "Network", "Reduced", "descend", "first_layers", "layer_sizes"]

_NEAR = 12  # Newton steps from the duals of nearby codes, before falling back to the solver
_ENDS = {
    0: "converged: the last iteration gained less than inner_tol",
    1: "not converged: stopped at max_inner_iter",
    2: "stopped: no step along the gradient decreases the objective, to the accuracy of the outer solves",
}
INTERRUPTED = "not converged: interrupted, these are the best layers so far"
_TOO_LONG = 1e3  # objective, relative to the initial one, assigned to codes for which the outer layer cannot be solved
_LEAST, _MOST = 1e-6, 1e6  # range of the multipliers of a start; a zero dual has the largest
_SHIFT = 1e-6  # ridge of the fit that initialises deeper layers


@dataclass(frozen=True)
class Layers:
    r"""Inner layers: the first is linear in the feature space of the data, others have a kernel on codes.

    .. math:: Z_1 = V C_1, \qquad Z_{l+1} = G_l C_{l+1}, \qquad (G_l)_{ij} = k_l(z_i, z_j),

    with coordinates V of the data, so that all functions in the RKHS of the data's kernel are covered.
    """

    coefs: tuple[Array, ...]  # (p, d_1), then (n, d_l)
    kernels: tuple[ScalarKernel, ...]  # of the codes of each layer; the last is the kernel of the outer layer
    root: Array | None = None  # (n, 1), square roots of the sample weights

    def codes(self, V: Array) -> list[Array]:
        """Return the codes of the training data in each layer."""
        codes = [V @ self.coefs[0]]
        for kernel, coef in zip(self.kernels, self.coefs[1:], strict=False):
            codes.append(kernel(codes[-1]) @ coef)
        return codes

    def penalty(self, codes: list[Array]) -> Array:
        """Return half the squared norms of the layers."""
        xp = namespace(codes[0])
        total = xp.sum(self.coefs[0] ** 2) / 2
        for coef, values in zip(self.coefs[1:], codes[1:], strict=True):
            total = total + xp.sum(coef * values) / 2
        return total

    def gradients(self, V: Array, codes: list[Array], of_last: Array, lam: float) -> tuple[Array, ...]:
        """Return the gradients, in the coefficients, of a function of the last codes plus lam times the penalty.

        ``of_last`` is the gradient of the function with respect to the last codes.
        """
        gradients, back = [], of_last
        for k in range(len(self.coefs) - 1, 0, -1):
            kernel, below, coef = self.kernels[k - 1], codes[k - 1], self.coefs[k]
            gradients.append(kernel(below) @ back + lam * codes[k])
            weights = (back + lam / 2 * coef) @ coef.T
            back = weighted_gradient(kernel, below, below, weights + weights.T)
        gradients.append(V.T @ back + lam * self.coefs[0])
        return tuple(reversed(gradients))

    def flat(self, gradients: tuple[Array, ...] | None = None) -> np.ndarray:
        """Return the coefficients, or derivatives by them, as one vector on the host.

        Coefficients of samples are divided by the root of their weights, so that a descent moves a sample of weight 2
        like two equal ones.
        """
        if gradients is None:
            parts = (coef / root for coef, root in zip(self.coefs, self._roots(), strict=True))
        else:
            parts = (slope * root for slope, root in zip(gradients, self._roots(), strict=True))
        return np.concatenate([host(part).ravel() for part in parts])

    def moved(self, point: np.ndarray) -> "Layers":
        """Return the layers with coefficients from a vector."""
        parts = np.split(point, np.cumsum([int(np.prod(coef.shape)) for coef in self.coefs])[:-1])
        rows = zip(parts, self.coefs, self._roots(), strict=True)
        return replace(self, coefs=tuple(as_like(part.reshape(coef.shape), coef) * root for part, coef, root in rows))

    def _roots(self) -> list[Array | float]:
        """Return what divides the coefficients of each layer; the first has none of samples."""
        deeper = len(self.coefs) - 1
        return [1.0, *[1.0 if self.root is None else self.root] * deeper]


@dataclass(frozen=True)
class Network:
    """Fitted layers, which map new points to codes and codes to the feature space."""

    layers: Layers
    anchors: list[Array]  # codes of the training data in each layer
    support: Array  # samples with a non-zero dual
    outer: Array  # their duals divided by lam n

    @property
    def narrow(self) -> int:
        """Index of the narrowest layer, the last one in case of a tie."""
        sizes = [codes.shape[1] for codes in self.anchors]
        return len(sizes) - 1 - int(np.argmin(sizes[::-1]))

    def codes(self, V: Array) -> Array:
        """Return the codes of data with these coordinates."""
        return self._through(V @ self.layers.coefs[0], 0, self.narrow)

    def decoded(self, codes: Array) -> Array:
        """Return the reconstructions of codes, in coordinates."""
        last = self._through(codes, self.narrow, len(self.anchors) - 1)
        xp = namespace(last)
        if self.outer.shape[0] == 0:
            return xp.zeros((last.shape[0], self.outer.shape[1]), dtype=last.dtype, device=device(last))
        anchors = xp.take(self.anchors[-1], self.support, axis=0)
        return self.layers.kernels[-1](last, anchors) @ self.outer

    def restarted(
        self, V: Array, sizes: tuple[int, ...], kernel: ScalarKernel, weights: Array | None = None
    ) -> Layers | None:
        """Return the layers as a start for another fit with these coordinates and sizes, ``None`` if shapes differ."""
        shapes = [(V.shape[1], sizes[0]), *((V.shape[0], size) for size in sizes[1:])]
        if [tuple(coef.shape) for coef in self.layers.coefs] != shapes:
            return None
        coefs = tuple(as_like(coef, V) for coef in self.layers.coefs)
        kernels = tuple(kernel.resolve(as_like(codes, V), weights) for codes in self.anchors)
        return Layers(coefs, kernels, None if weights is None else namespace(V).sqrt(weights)[:, None])

    def _through(self, codes: Array, first: int, last: int) -> Array:
        for k in range(first, last):
            codes = self.layers.kernels[k](codes, self.anchors[k]) @ self.layers.coefs[k + 1]
        return codes


def layer_sizes(name: str, n_components: int | Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the hidden layers of an estimator; raise if they are invalid."""
    sizes = n_components if isinstance(n_components, tuple | list) else (n_components,)
    if not sizes:
        raise ValueError(f"The 'n_components' parameter of {name} must hold at least one size. Got none.")
    for size in sizes:
        check_parameter(name, "n_components", size, Interval(1, math.inf, "left", integer=True))
    return tuple(int(size) for size in sizes)


def first_layers(
    V: Array,
    sizes: tuple[int, ...],
    kernel: ScalarKernel,
    init: str,
    random: np.random.RandomState,
    weights: Array | None = None,
) -> Layers:
    """Return initial layers whose codes are principal components or random projections with unit variance."""
    xp = namespace(V)
    counts = xp.ones_like(V[:, 0]) if weights is None else weights
    coefs: list[Array] = []
    kernels: list[ScalarKernel] = []
    codes = V
    for size in sizes:
        directions = _directions(V, counts, size, init, random)
        if not coefs:
            coef = directions
            codes = V @ coef
        else:
            K = kernels[-1](codes)
            shift = _SHIFT * max(float(xp.max(xp.linalg.diagonal(K))), eps(K)) * float(xp.sum(counts))
            eye = xp.eye(K.shape[0], dtype=K.dtype, device=device(K))
            coef = cholesky_solver(K + shift * eye / counts)(V @ directions)
            codes = K @ coef
        coefs.append(coef)
        kernels.append(kernel.resolve(codes, weights))
    return Layers(tuple(coefs), tuple(kernels), None if weights is None else xp.sqrt(counts)[:, None])


def _directions(V: Array, counts: Array, size: int, init: str, random: np.random.RandomState) -> Array:
    """Return directions (p, size) along which the data have mean variance one."""
    xp, p = namespace(V), V.shape[1]
    shares = (counts / xp.sum(counts))[:, None]
    drawn = as_like(random.standard_normal((p, size)), V)
    if init == "pca":
        centred = V - xp.sum(shares * V, axis=0, keepdims=True)
        values, vectors = xp.linalg.eigh(centred.T @ (shares * centred))
        is_there = values > p * eps(V) * max(float(values[-1]), eps(V))
        rank = min(size, int(xp.sum(xp.astype(is_there, xp.int64))))
        leading = xp.flip(vectors[:, p - rank :], axis=1)
        # the eigenvectors' own signs are arbitrary; the longer tail is positive, in any order of the samples
        signs = xp.sign(xp.sum(shares * (centred @ leading) ** 3, axis=0, keepdims=True))
        leading = leading * xp.where(signs == 0, xp.ones_like(signs), signs)
        # no more components: the remaining columns start from a mixture of the available ones
        drawn = xp.concat([leading, leading @ drawn[:rank, rank:]], axis=1) if rank > 0 else drawn
    projections = V @ drawn
    projections = projections - xp.sum(shares * projections, axis=0, keepdims=True)
    variance = float(xp.mean(xp.sum(shares * projections**2, axis=0)))
    least = (64 * eps(V)) ** 2 * float(xp.mean(xp.sum(drawn**2, axis=0)) * xp.mean(xp.sum(V**2, axis=1)))
    return drawn / variance**0.5 if variance > max(least, eps(V) ** 2) else 0 * drawn  # round-off is no direction


@dataclass
class Reduced:
    r"""The objective as a function of the inner layers, with the outer layer at its optimum.

    .. math:: J(C) = \min_h \frac1n \sum_i \ell(\phi(x_i) - h(z_i(C))) + \frac\lambda2 \|h\|^2
        + \frac\mu2 \sum_l \|f_l\|^2, \qquad
        \frac{\partial J}{\partial G} = - \frac{1}{2 \lambda n^2} A A^\top

    with the outer duals A and the Gram matrix G of the last codes, by the envelope theorem: the dual is a maximum over
    A of functions that are linear in G.
    """

    V: Array
    loss: Loss
    lam: float
    inner_lam: float
    solver: Solver
    tol: float
    weights: Array | None = None  # (n,) of the samples, positive
    last: Array | None = None  # multipliers of the last solve, from which the next one starts

    def problem(self, kernel: ScalarKernel, codes: Array) -> DualProblem:
        """Return the dual problem of the outer layer."""
        return DualProblem.build(Dense(kernel(codes)), self.V, self.loss, self.lam, self.weights)

    def start(self, problem: DualProblem) -> Array | None:
        """Return duals to start from, computed from the multipliers of the last solve."""
        if self.last is None or problem.loss.profile is None:
            return None
        return problem.gram.solver(problem.scale, self.last)(problem.targets)

    def solve(self, problem: DualProblem) -> Solution:
        """Solve the outer problem, from a nearby start if there is one."""
        with arithmetic(problem):
            solution = self._solve(problem)
        self.last = _multipliers(solution.duals, problem.targets - solution.predictions)
        return solution

    def _solve(self, problem: DualProblem) -> Solution:
        if ClosedForm().why_not(problem) is None:
            return self.solver.solve(problem, self.tol)
        start = self.start(problem)
        if start is None or not self.solver.chooses or RowNewton().why_not(problem) is not None:
            return self.solver.solve(problem, self.tol, start)
        near = RowNewton(max_iter=_NEAR).solve(problem, self.tol, start)
        is_over = near.status in (Status.CONVERGED, Status.INTERRUPTED)
        return near if is_over else self.solver.solve(problem, self.tol, near.duals)

    def __call__(self, layers: Layers) -> tuple[float, tuple[Array, ...]]:
        """Return the objective and its gradient with respect to the coefficients of the layers."""
        codes, kernel = layers.codes(self.V), layers.kernels[-1]
        problem = self.problem(kernel, codes[-1])
        solution = self.solve(problem)
        value = solution.certificate.primal + self.inner_lam * float(layers.penalty(codes))
        duals = solution.duals if problem.root is None else solution.duals * problem.root
        factor = -problem.scale / problem.total  # each pair of codes occurs twice
        of_codes = weighted_gradient(kernel, codes[-1], codes[-1], (duals @ duals.T) * factor)
        return value, layers.gradients(self.V, codes, of_codes, self.inner_lam)


def _multipliers(duals: Array, residuals: Array) -> Array:
    """Return the multipliers m with r_i = m_i a_i of losses of the norm; they vary less with the codes than duals."""
    xp, sizes = namespace(duals), row_norms(duals)[:, 0]
    least = xp.clip(sizes, min=1e-300)
    return xp.where(sizes > 0, xp.clip(row_norms(residuals)[:, 0] / least, min=_LEAST, max=_MOST), _MOST + 0 * sizes)


def descend(
    objective: Callable[[Layers], tuple[float, tuple[Array, ...]]], layers: Layers, max_iter: int, tol: float
) -> tuple[Layers, list[float], str]:
    """Minimise by L-BFGS; return the layers, the objective after each iteration, and the status."""
    (first, slopes), work = objective(layers), here()
    history, best, begin = [first], (first, layers), layers.flat()
    if max_iter == 0 or not first > 0:
        return layers, history, _ENDS[0 if first <= 0 else 1]

    def scaled(point: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        if np.array_equal(point, begin):  # known already
            return 1.0, layers.flat(slopes) / first
        trial = layers.moved(point)
        try:
            value, gradients = objective(trial)
        except np.linalg.LinAlgError:  # codes too large to factorise the outer system: the step was too long
            return _TOO_LONG, np.zeros_like(point)
        if value < best[0]:
            best = (value, trial)
        return value / first, layers.flat(gradients) / first

    def note(intermediate_result: OptimizeResult) -> None:
        history.append(first * float(intermediate_result.fun))
        work.reach((len(history) - 1) / max_iter)
        if work.is_stopped:
            work.go_on()
            raise KeyboardInterrupt

    options = {"maxiter": max_iter, "ftol": tol, "gtol": 1e-12, "maxcor": 20}
    try:
        result = minimize(scaled, begin, jac=True, method="L-BFGS-B", callback=note, options=options)
    except KeyboardInterrupt:
        return best[1], history, INTERRUPTED
    return best[1], history, _ENDS.get(result.status, _ENDS[2])
