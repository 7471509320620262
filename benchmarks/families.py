"""Problems of every kind that the solvers must be good at: the benchmark families."""

import os
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Loss
from fenchel.operators import Dense, kronecker
from fenchel.problem import DualProblem
from fenchel.solvers import DouglasRachford

FULL = os.environ.get("FENCHEL_BENCH", "") == "full"

LAMS = (1e-2, 1e-4, 1e-6, 1e-8)
FUNCTIONAL_LAMS = (1e-3, 1e-6, 1e-8, 1e-10)
SHARES = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Spec:
    """What a family member is made of; ``share`` is the share of rows (or entries) active or saturated."""

    kind: str  # "vector", "functional", "edge"
    loss: str
    n: int
    r: int
    lam: float
    share: float
    variant: str = ""

    def __str__(self) -> str:
        name = f"{self.kind}-{self.loss}-n{self.n}-r{self.r}-lam{self.lam:.0e}-{self.share:.0%}"
        return f"{name}-{self.variant}" if self.variant else name


@dataclass(frozen=True)
class Member:
    """A problem with its data; ``problem`` builds it afresh, with nothing cached."""

    name: str
    K: np.ndarray
    operator: np.ndarray | None
    Y: np.ndarray
    loss: Loss
    lam: float

    def problem(self) -> DualProblem:
        return DualProblem.build(kronecker(Dense(self.K), self.operator), self.Y, self.loss, self.lam)


def specs() -> list[Spec]:
    """Return the members to run: small ones by default, all with FENCHEL_BENCH=full.

    As many outputs as samples takes minutes for each problem from n = 1000 on: these are few even then.
    """
    found = []
    for n in (200, 500, 1000, 2000) if FULL else (200, 500):
        for r in (1, 14, 100, n):
            is_dear = r == n and n >= 1000
            small = n == 200 or (FULL and not is_dear)
            lams = LAMS if small else (1e-2, 1e-6, 1e-8) if r < n else (1e-4,)
            for lam in lams:
                for share in SHARES if small or r < n else (0.5,):
                    found += [Spec("vector", loss, n, r, lam, share) for loss in ("eps-ridge", "huber")]
    found += [
        Spec("vector", "eps-svr", n, r, lam, share)
        for n in ((200, 500, 1000) if FULL else (200, 500))
        for r in (1, 14)
        for lam in ((1e-3, 1e-5, 1e-7) if FULL or n == 200 else (1e-3, 1e-5))
        for share in (SHARES if FULL or n == 200 else (0.5,))
    ]
    for n, m in ((100, 100), (250, 300), (400, 600)) if FULL else ((100, 100), (250, 300)):
        found += [
            Spec("functional", loss, n, m, lam, 0.3)
            for loss in ("huber", "huber-1", "eps-ridge", "eps-ridge-inf")
            for lam in (FUNCTIONAL_LAMS if FULL or n == 100 else (1e-6, 1e-8))
        ]
    for loss in ("eps-ridge", "huber"):
        found += [
            Spec("edge", loss, 200, 14, 1e-10, 0.5),
            Spec("edge", loss, 200, 14, 1e-6, 0.5, "rank-deficient"),
            Spec("edge", loss, 200, 14, 1e-6, 0.5, "duplicated"),
            Spec("edge", loss, 100, 300, 1e-6, 0.5),
            Spec("edge", loss, 200, 14, 1e-6, 0.0, "null" if loss == "eps-ridge" else "square"),
            Spec("edge", loss, 200, 14, 1e-6, 1.0, "dense" if loss == "eps-ridge" else "saturated"),
        ]
    return found


def build(spec: Spec) -> Member:
    """Return the member, its loss calibrated so that the wanted share of the rows is active or saturated."""
    K, operator, Y = _data(spec.kind, spec.n, spec.r, spec.variant, spec.loss in ("huber-1", "eps-ridge-inf"))
    base = _base(spec.kind, spec.n, spec.r, spec.variant, spec.loss in ("huber-1", "eps-ridge-inf"))
    norms = np.linalg.norm(Y, axis=1)
    if spec.variant == "null":
        loss: Loss = EpsilonRidge(1.01 * norms.max())
    elif spec.variant == "square":
        loss = Huber(1.01 * norms.max())
    elif spec.variant == "dense":
        loss = EpsilonRidge(1e-6 * norms.max())
    elif spec.variant == "saturated":
        loss = Huber(1e-6 * norms.max())
    else:
        loss = _calibrated(base, spec)
    return Member(str(spec), K, operator, Y, loss, spec.lam)


def make_loss(kind: str, size: float) -> Loss:
    losses = {
        "huber": lambda: Huber(size),
        "huber-1": lambda: Huber(size, p=1),
        "eps-ridge": lambda: EpsilonRidge(size),
        "eps-ridge-inf": lambda: EpsilonRidge(size, p=np.inf),
        "eps-svr": lambda: EpsilonSVR(size),
    }
    return losses[kind]()


def active_share(member: Member, predictions: np.ndarray) -> float:
    """Return the share of rows (entries of a pointwise loss) whose residual is beyond the loss's threshold."""
    loss = member.loss
    size = loss.kappa if isinstance(loss, Huber) else loss.epsilon
    return float(np.mean(_sizes(loss, member.Y - predictions) > size * (1 - 1e-4)))


def _sizes(loss: Loss, residuals: np.ndarray) -> np.ndarray:
    pointwise = (isinstance(loss, Huber) and loss.p == 1) or (isinstance(loss, EpsilonRidge) and loss.p == np.inf)
    return np.abs(residuals) if pointwise else np.linalg.norm(residuals, axis=1)


def _calibrated(base: DualProblem, spec: Spec) -> Loss:
    """Bisect for the threshold, from the quantile of the ridge residuals; solves are short and share one eigenbasis."""
    scale = 1 / (spec.lam * base.total)
    ridge = base.shared.factorize().function(lambda values: 1 / (1 + scale * values))(base.targets)
    probe = make_loss(spec.loss, 1.0)
    size = float(np.quantile(_sizes(probe, ridge), 1 - spec.share)) + 1e-300
    top = 0.98 * float(_sizes(probe, base.targets).max())  # beyond, an insensitive zone leaves nothing active
    factor, last = 4.0, 0
    for _ in range(12 if spec.n <= 500 else 4):
        size = min(size, top)
        loss = make_loss(spec.loss, size).bind(base.targets, None)
        solver = DouglasRachford(max_iter=300)
        fitted = solver.solve(base.with_(loss=loss, lam=spec.lam), tol=1e-3).predictions
        share = np.mean(_sizes(loss, base.targets - fitted) > size * (1 - 1e-4))
        if abs(share - spec.share) < 0.04:
            break
        direction = 1 if share > spec.share else -1
        factor = factor**0.5 if direction == -last else factor
        size, last = size * factor**direction, direction
    return make_loss(spec.loss, size)


@lru_cache(maxsize=2)
def _base(kind: str, n: int, r: int, variant: str, pointwise: bool) -> DualProblem:
    K, operator, Y = _data(kind, n, r, variant, pointwise)
    return DualProblem.build(kronecker(Dense(K), operator), Y, Huber(1.0), 1.0)


@lru_cache(maxsize=2)
def _data(kind: str, n: int, r: int, variant: str, pointwise: bool) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    rng = np.random.default_rng([n, r])
    if kind == "functional":
        return _curves(rng, n, r, pointwise)
    return _vectors(rng, n, r, variant)


def _vectors(rng: np.random.Generator, n: int, r: int, variant: str) -> tuple[np.ndarray, None, np.ndarray]:
    """Smooth functions of five inputs with noise and outliers; r = n are the features of an output kernel."""
    X = rng.standard_normal((n, 5))
    if variant == "duplicated":
        X[n // 2 :] = X[: n - n // 2]
    if variant == "rank-deficient":
        X = X[:, :3]
        K = X @ X.T
    else:
        K = np.exp(-0.1 * _distances(X))
    hidden = np.tanh(X @ rng.standard_normal((X.shape[1], 10)))
    if r == n:
        Z = hidden @ rng.standard_normal((10, 4)) / 3 + 0.3 * rng.standard_normal((n, 4))
        return K, None, np.linalg.cholesky(np.exp(-0.5 * _distances(Z)) + 1e-8 * np.eye(n))
    Y = hidden @ rng.standard_normal((10, r)) / 3 + 0.3 * rng.standard_normal((n, r))
    outliers = rng.random(n) < 0.1
    Y[outliers] += 3 * rng.standard_normal((int(outliers.sum()), r))
    return K, None, Y / np.sqrt(r)


def _curves(rng: np.random.Generator, n: int, m: int, pointwise: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Curves on a uniform grid, in orthonormal coordinates, with outliers; the Laplace output operator."""
    grid = np.linspace(0, 1, m)
    X = rng.standard_normal((n, 20))
    K = np.exp(-0.01 * _distances(X))
    waves = np.array([np.sin(np.pi * (k + 1) * grid) / (k + 1) for k in range(10)])
    values = np.tanh(X @ rng.standard_normal((20, 10)) / 4) @ waves + 0.1 * rng.standard_normal((n, m))
    if pointwise:
        spikes = rng.random((n, m)) < 0.1
        values[spikes] += 3 * rng.standard_normal(int(spikes.sum()))
    else:
        rows = rng.random(n) < 0.1
        values[rows] += 3 * np.sin(2 * np.pi * grid)
    operator = np.exp(-10 * np.abs(grid[:, None] - grid)) / m
    return K, operator, values / np.sqrt(m)


def _distances(X: np.ndarray) -> np.ndarray:
    squares = np.sum(X**2, axis=1)
    return np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0)
