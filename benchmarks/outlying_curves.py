"""Curves with outliers: the nineteen models on which detectors of functional outliers are compared."""

import math
from collections.abc import Callable

import numpy as np
from scipy.interpolate import BSpline
from sklearn.utils import Bunch, check_random_state

__all__ = ["make_functional_outliers"]


def make_functional_outliers(
    model: int = 1,
    n_samples: int = 200,
    n_points: int = 100,
    *,
    share: float = 0.1,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    r"""Make curves with a share of outliers from one of nineteen models.

    Below, :math:`e` is a Gaussian process with mean zero and covariance :math:`\alpha e^{-\beta |s - t|^\nu}`, with
    :math:`\alpha = \beta = \nu = 1` unless a triple :math:`(\alpha, \beta, \nu)` is given; k is a random sign; other
    letters are drawn for each curve.

    ===== ================================== ==================================================================
    model correct curves                     outliers
    ===== ================================== ==================================================================
    1     4t + e                             4t + 8k + e: shifted
    2     4t + e                             4t + 8k 1(T ≤ t ≤ T + .05) + e, T ~ U(.1, .9): a short peak
    3     4t + e                             4t + 6k 1(T ≤ t) + e, T ~ U(.1, .9): shifted from T on
    4     30 t (1 - t)^1.5 + e(.3, 1/.3, 1)  30 (1 - t) t^1.5 + e(.3, 1/.3, 1): reversed
    5     4t + e                             4t + e(5, 2, .5): rougher
    6     4t + e                             4t + k (1.8 - exp(-50 (t - v)^2) / √(.02π)) + e, v ~ U(.25, .75)
    7     4t + e                             4t + 2 sin(4π(t + θ)) + e, θ ~ U(.25, .75): periodic
    8     2 sin(15πt) + e                    2 sin(15πt + 2) + e: another phase
    9     a sin(2πt) + a' cos(2πt) + e,      the same with both from U(1.5, 2.5), or both from U(9, 10.5)
          a, a' ~ U(3, 8)
    10    4t + e                             those of models 1, 2, 5 or 7, at random
    11    N(5, 2²) + .05 mt + sin(πt²)       N(5, 3) + .05 mt + cos(20πt), both with noise U(-.01, .01)
    12    e                                  e(6, 1, .1): much rougher
    13    2 sin(15πt) + e                    2 sin(15πt + 4) + e
    14    .1 + atan t + e                    atan t + e(.1, 1/4, .1): smaller and rougher
    15    30 t (1 - t)^1.5 + e               30 t (1 - t)^1.5 + e(.1, 1/4, .1)
    16    e                                  .1 sin(40π(t + u(t))) + e(.1, 1/4, .1), u(t) ~ U(.25, .5)
    17    N(0, 2²) + Exp(1) atan t + e',     1 - 2 atan t + e': the slope has the wrong sign
          e' = e(.2, 1/.3, 1)
    18    as model 17                        log(2) atan t + .5 - 1(t > .5) + e': a jump
    19    a circle in a random plane of      a circle in another plane; noise of a twentieth of the variance
          eight cubic B-splines
    ===== ================================== ==================================================================

    Parameters
    ----------
    model : int, default=1
        Number of the model, 1 to 19.
    n_samples : int, default=200
        Number of curves.
    n_points : int, default=100
        Number of equally spaced points on [0, 1], the m of model 11.
    share : float, default=0.1
        Share of outliers, in [0, 1).
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``Y`` (n, m), in random order; ``t`` (m,); ``is_outlier`` (n,).

    Notes
    -----
    Models 17 and 18 follow their formulas. In the public code of [Pulido2025] the mean of their outliers, a vector
    over the points, is added to a matrix of curves by columns, so that it runs along the samples: these outliers jump
    at every point, and are easy to find.

    References
    ----------
    [Ojo2023] for models 1 to 9, with the defaults of the package, and 10; [Pulido2025] collected all nineteen.
    """
    rng, t = check_random_state(random_state), np.linspace(0, 1, n_points)
    n_outliers = math.floor(share * n_samples + 0.5)
    Y = np.concatenate(_MODELS[model](t, n_samples - n_outliers, n_outliers, rng))
    order = rng.permutation(n_samples)
    return Bunch(Y=Y[order], t=t, is_outlier=order >= n_samples - n_outliers)


_Rng = np.random.RandomState
_Pair = tuple[np.ndarray, np.ndarray]  # correct curves and outliers


def _processes(t: np.ndarray, n: int, rng: _Rng, alpha: float = 1.0, beta: float = 1.0, nu: float = 1.0) -> np.ndarray:
    """Return n draws of e(alpha, beta, nu), (n, m)."""
    covariance = alpha * np.exp(-beta * np.abs(t[:, None] - t) ** nu)
    return rng.standard_normal((n, len(t))) @ np.linalg.cholesky(covariance).T


def _signs(n: int, rng: _Rng) -> np.ndarray:
    return rng.choice([-1.0, 1.0], (n, 1))


def _shifted(t: np.ndarray, n: int, rng: _Rng) -> np.ndarray:
    return 4 * t + 8 * _signs(n, rng) + _processes(t, n, rng)


def _peaked(t: np.ndarray, n: int, rng: _Rng) -> np.ndarray:
    start = rng.uniform(0.1, 0.9, (n, 1))
    return 4 * t + 8 * _signs(n, rng) * ((t >= start) & (t <= start + 0.05)) + _processes(t, n, rng)


def _stepped(t: np.ndarray, n: int, rng: _Rng) -> np.ndarray:
    return 4 * t + 6 * _signs(n, rng) * (t >= rng.uniform(0.1, 0.9, (n, 1))) + _processes(t, n, rng)


def _rougher(t: np.ndarray, n: int, rng: _Rng) -> np.ndarray:
    return 4 * t + _processes(t, n, rng, 5.0, 2.0, 0.5)


def _bumped(t: np.ndarray, n: int, rng: _Rng) -> np.ndarray:
    bump = np.exp(-50 * (t - rng.uniform(0.25, 0.75, (n, 1))) ** 2) / math.sqrt(0.02 * math.pi)
    return 4 * t + _signs(n, rng) * (1.8 - bump) + _processes(t, n, rng)


def _periodic(t: np.ndarray, n: int, rng: _Rng) -> np.ndarray:
    return 4 * t + 2 * np.sin(4 * np.pi * (t + rng.uniform(0.25, 0.75, (n, 1)))) + _processes(t, n, rng)


def _mixed(t: np.ndarray, n: int, rng: _Rng) -> np.ndarray:
    kinds = [_shifted, _peaked, _rougher, _periodic]
    curves = [kinds[rng.randint(4)](t, 1, rng) for _ in range(n)]
    return np.concatenate([*curves, np.empty((0, len(t)))])


def _beside_line(outliers: Callable[[np.ndarray, int, _Rng], np.ndarray]) -> Callable[..., _Pair]:
    """Return the model whose correct curves are 4t + e."""

    def pair(t: np.ndarray, n: int, n_outliers: int, rng: _Rng) -> _Pair:
        return 4 * t + _processes(t, n, rng), outliers(t, n_outliers, rng)

    return pair


def _reversed(t: np.ndarray, n: int, n_outliers: int, rng: _Rng) -> _Pair:
    noise = 0.3, 1 / 0.3
    correct = 30 * t * (1 - t) ** 1.5 + _processes(t, n, rng, *noise)
    return correct, 30 * (1 - t) * t**1.5 + _processes(t, n_outliers, rng, *noise)


def _phases(shift: float) -> Callable[..., _Pair]:
    def pair(t: np.ndarray, n: int, n_outliers: int, rng: _Rng) -> _Pair:
        means = (2 * np.sin(15 * np.pi * t + v) for v in (0.0, shift))
        return next(means) + _processes(t, n, rng), next(means) + _processes(t, n_outliers, rng)

    return pair


def _amplitudes(t: np.ndarray, n: int, n_outliers: int, rng: _Rng) -> _Pair:
    waves = np.stack([np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)])
    is_large = rng.uniform(size=(n_outliers, 1)) < 0.5
    small, large = rng.uniform(1.5, 2.5, (n_outliers, 2)), rng.uniform(9, 10.5, (n_outliers, 2))
    correct = rng.uniform(3, 8, (n, 2)) @ waves + _processes(t, n, rng)
    return correct, np.where(is_large, large, small) @ waves + _processes(t, n_outliers, rng)


def _fast_waves(t: np.ndarray, n: int, n_outliers: int, rng: _Rng) -> _Pair:
    line = 0.05 * len(t) * t
    correct = rng.normal(5, 2, (n, 1)) + line + np.sin(np.pi * t**2)
    outliers = rng.normal(5, math.sqrt(3), (n_outliers, 1)) + line + np.cos(20 * np.pi * t)
    return correct + rng.uniform(-0.01, 0.01, correct.shape), outliers + rng.uniform(-0.01, 0.01, outliers.shape)


def _much_rougher(t: np.ndarray, n: int, n_outliers: int, rng: _Rng) -> _Pair:
    return _processes(t, n, rng), _processes(t, n_outliers, rng, 6.0, 1.0, 0.1)


def _small_and_rough(mean: Callable[[np.ndarray], np.ndarray], offset: float) -> Callable[..., _Pair]:
    def pair(t: np.ndarray, n: int, n_outliers: int, rng: _Rng) -> _Pair:
        outliers = mean(t) + _processes(t, n_outliers, rng, 0.1, 0.25, 0.1)
        return offset + mean(t) + _processes(t, n, rng), outliers

    return pair


def _noisy(t: np.ndarray, n: int, n_outliers: int, rng: _Rng) -> _Pair:
    wave = 0.1 * np.sin(40 * np.pi * (t + rng.uniform(0.25, 0.5, len(t))))  # shared by all outliers
    return _processes(t, n, rng), wave + _processes(t, n_outliers, rng, 0.1, 0.25, 0.1)


def _slopes(outlying_mean: Callable[[np.ndarray], np.ndarray]) -> Callable[..., _Pair]:
    def pair(t: np.ndarray, n: int, n_outliers: int, rng: _Rng) -> _Pair:
        noise = 0.2, 1 / 0.3
        trend = rng.normal(0, 2, (n, 1)) + rng.exponential(size=(n, 1)) * np.arctan(t)
        outliers = outlying_mean(t) + _processes(t, n_outliers, rng, *noise)
        return trend + _processes(t, n, rng, *noise), outliers

    return pair


def _circles(t: np.ndarray, n: int, n_outliers: int, rng: _Rng) -> _Pair:
    knots = np.concatenate([np.zeros(4), np.linspace(0, 1, 6)[1:-1], np.ones(4)])
    basis = BSpline.design_matrix(t, knots, 3).toarray().T
    plane, turn = (np.linalg.qr(rng.uniform(size=(8, 8)))[0] for _ in range(2))
    angles = rng.standard_normal((n + n_outliers, 2))
    angles /= np.linalg.norm(angles, axis=1, keepdims=True)
    Y = np.concatenate([angles[:n] @ plane[:2], angles[n:] @ (plane @ turn)[:2]]) @ basis
    Y = Y + np.std(Y) / math.sqrt(20) * rng.standard_normal(Y.shape)
    return Y[:n], Y[n:]


_MODELS: dict[int, Callable[[np.ndarray, int, int, _Rng], _Pair]] = {
    1: _beside_line(_shifted),
    2: _beside_line(_peaked),
    3: _beside_line(_stepped),
    4: _reversed,
    5: _beside_line(_rougher),
    6: _beside_line(_bumped),
    7: _beside_line(_periodic),
    8: _phases(2.0),
    9: _amplitudes,
    10: _beside_line(_mixed),
    11: _fast_waves,
    12: _much_rougher,
    13: _phases(4.0),
    14: _small_and_rough(np.arctan, 0.1),
    15: _small_and_rough(lambda t: 30 * t * (1 - t) ** 1.5, 0.0),
    16: _noisy,
    17: _slopes(lambda t: 1 - 2 * np.arctan(t)),
    18: _slopes(lambda t: math.log(2) * np.arctan(t) + 0.5 - (t > 0.5)),
    19: _circles,
}
