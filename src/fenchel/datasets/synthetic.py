"""Synthetic data with a known ground truth."""

import math
from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np
from scipy.special import gammaln, xlogy
from sklearn.utils import Bunch, check_random_state

from fenchel._check import Interval, Options, check_parameter

__all__ = ["gaussian_processes", "make_functional", "make_multioutput"]

_LENGTH = Interval(0.005, math.inf, "left")  # below this, gaussian_processes would need more than 11 000 terms
_COUNT = Interval(1, math.inf, "left", integer=True)


def make_multioutput(
    n_samples: int = 200, n_outputs: int = 5, noise: float = 0.1, outliers: float = 0.0, random_state: int | None = None
) -> Bunch:
    """Make a smooth nonlinear regression problem with correlated outputs and optional outliers.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    n_outputs : int, default=5
        Number of outputs; they are mixtures of three smooth functions of two inputs.
    noise : float, default=0.1
        Standard deviation of the noise on each output.
    outliers : float, default=0.0
        Share of samples whose whole output vector is replaced by a large one that does not depend on the input.
    random_state : int or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``X`` (n, 2), ``Y`` (n, p), ``truth`` (n, p) without noise or outliers, ``is_outlier`` (n,).

    Examples
    --------
    >>> from fenchel.datasets import make_multioutput
    >>> data = make_multioutput(50, n_outputs=3, outliers=0.1, random_state=0)
    >>> data.X.shape[0], data.Y.shape
    (50, (50, 3))
    """
    rng = check_random_state(random_state)
    X = rng.uniform(-2, 2, (n_samples, 2))
    mixture = rng.standard_normal((3, n_outputs))
    functions = [np.sin(2 * X[:, 0]), np.cos(X[:, 0] * X[:, 1]), X[:, 1] * np.exp(-(X[:, 1] ** 2))]
    truth = np.stack(functions, axis=1) @ mixture
    Y = truth + noise * rng.standard_normal(truth.shape)
    is_outlier = np.zeros(n_samples, dtype=bool)
    is_outlier[rng.permutation(n_samples)[: round(outliers * n_samples)]] = True
    Y[is_outlier] = 10 + 5 * rng.standard_normal((is_outlier.sum(), n_outputs))
    return Bunch(X=X, Y=Y, truth=truth, is_outlier=is_outlier)


def make_functional(
    n_samples: int = 100,
    n_points: int = 100,
    link: str = "linear",
    n_components: int = 4,
    *,
    length_scales: Sequence[float] = (0.05, 0.1, 0.5, 0.7),
    noise: float = 0.0,
    basis_state: int | np.random.RandomState | None = 0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    r"""Make functional data, curves that depend on curves through random coefficients on fixed Gaussian processes.

    .. math:: x_i = \sum_c u_{ic} \, g_c^{\text{in}}, \qquad y_i = \sum_c v_{ic} \, g_c^{\text{out}}, \qquad
        u_{ic} \sim \mathcal{U}([-0.5, 0.5]).

    With the linear link, v = u. With the nonlinear one, :math:`v_{ic} = \sin(\pi u_{ic}) \, u_{i,c+1}` (c + 1 modulo
    the number of components), which is uncorrelated with every linear function of u.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_points : int, default=100
        Number of equally spaced points on [0, 1] at which inputs and outputs are known.
    link : {"linear", "nonlinear"}, default="linear"
        How the coefficients of an output depend on those of its input.
    n_components : int, default=4
        Number of processes of the inputs, and of the outputs.
    length_scales : sequence of float, default=(0.05, 0.1, 0.5, 0.7)
        Length scales of the processes, at least 0.005, reused cyclically if there are more processes.
    noise : float, default=0.0
        Standard deviation of the noise on each value of the outputs.
    basis_state : int, RandomState or None, default=0
        Seed of the processes. Samples with the same seed belong to the same problem, for any ``random_state`` and
        ``n_points``.
    random_state : int, RandomState or None, default=None
        Seed of the coefficients and of the noise.

    Returns
    -------
    data : Bunch
        ``X`` (n, m), ``Y`` (n, m), ``truth`` (n, m) without noise, ``t`` (m,), ``coefficients`` (n, r) of the inputs.

    References
    ----------
    [Lambert2022]_, App. B.2.1, for the linear link.

    Examples
    --------
    >>> from fenchel.datasets import make_functional
    >>> train, test = (make_functional(50, random_state=seed) for seed in (0, 1))
    >>> train.X.shape, test.Y.shape
    ((50, 100), (50, 100))
    """
    for name, value in {"n_samples": n_samples, "n_points": n_points, "n_components": n_components}.items():
        check_parameter("make_functional", name, value, _COUNT)
    check_parameter("make_functional", "link", link, Options(("linear", "nonlinear")))
    check_parameter("make_functional", "noise", noise, Interval(0, math.inf, "left"))
    t = np.linspace(0, 1, n_points)
    basis_rng, rng = check_random_state(basis_state), check_random_state(random_state)
    scales = list(islice(cycle(length_scales), n_components))
    inputs, outputs = gaussian_processes(t, scales, basis_rng), gaussian_processes(t, scales, basis_rng)
    U = rng.uniform(-0.5, 0.5, (n_samples, n_components))
    V = U if link == "linear" else np.sin(np.pi * U) * np.roll(U, -1, axis=1)
    truth = V @ outputs
    Y = truth + noise * rng.standard_normal(truth.shape)
    return Bunch(X=U @ inputs, Y=Y, truth=truth, t=t, coefficients=U)


def gaussian_processes(
    t: np.ndarray, length_scales: Sequence[float], random_state: int | np.random.RandomState | None = None
) -> np.ndarray:
    r"""Draw Gaussian processes with Gaussian covariance, one for each length scale.

    .. math:: g(t) = e^{-s^2 / 2} \sum_k \xi_k \frac{s^k}{\sqrt{k!}}, \quad s = \frac{t - 1/2}{\sigma}, \quad
        \xi_k \sim \mathcal{N}(0, 1), \qquad \operatorname{cov}(g(t), g(t')) = e^{-(t - t')^2 / 2 \sigma^2}.

    Parameters
    ----------
    t : array of shape (m,)
        Points in [0, 1].
    length_scales : sequence of float
        Length scales, sigma in the formula, at least 0.005.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    processes : ndarray of shape (r, m)
        One process per row.

    Notes
    -----
    The number of terms depends only on the length scale, so a seed gives the same functions at any points. The variance
    lost by truncation is below the precision of float64.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.datasets import gaussian_processes
    >>> gaussian_processes(np.linspace(0, 1, 20), [0.1, 0.3], random_state=0).shape
    (2, 20)
    """
    rng, t = check_random_state(random_state), np.asarray(t, dtype=np.float64)
    if t.ndim != 1 or not np.all((t >= 0) & (t <= 1)):
        raise ValueError("t must be a one-dimensional array of points in [0, 1]. Rescale the points to that interval.")
    if len(length_scales) == 0:
        raise ValueError("length_scales must hold at least one length scale. Got none.")
    processes = np.empty((len(length_scales), len(t)))
    for process, scale in zip(processes, length_scales, strict=True):
        check_parameter("gaussian_processes", "length_scales", scale, _LENGTH)
        s = (t[:, None] - 0.5) / scale
        mean = (0.5 / scale) ** 2  # the squared weights are Poisson probabilities with at most this mean
        k = np.arange(math.ceil(mean + 10 * math.sqrt(mean) + 50))
        size = np.exp(xlogy(k, np.abs(s)) - s**2 / 2 - gammaln(k + 1) / 2)
        process[:] = (size * np.where(k % 2, np.sign(s), 1.0)) @ rng.standard_normal(len(k))
    return processes
