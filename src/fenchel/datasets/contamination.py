"""Contamination of clean curves with outliers."""

import math
from collections.abc import Sequence

import numpy as np
from sklearn.utils import Bunch, check_random_state

from fenchel._array import Array, Outputs, as_like, host
from fenchel._check import Interval, Options, check_parameter
from fenchel.data.functional import as_curves
from fenchel.datasets.synthetic import gaussian_processes

__all__ = ["contaminate"]

_SHARE = Interval(0, 1, "both")  # of the samples or points, from none to all


def contaminate(
    Y: Outputs,
    kind: str,
    share: float,
    *,
    intensity: float = 1.0,
    point_share: float = 0.1,
    length_scales: Sequence[float] = (0.01, 0.05, 1.0, 4.0),
    is_added: bool = False,
    grid: Array | None = None,
    basis_state: int | np.random.RandomState | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    r"""Turn some output curves into outliers of one of three types.

    A set I of :math:`\lfloor \tau n \rfloor` curves is drawn. With intensity :math:`\zeta`, for i in I,

    - ``"label"`` (type 1) replaces :math:`y_i` by :math:`-\zeta \, y_{\omega(i)}`, where :math:`\omega` is the cyclic
      shift of I: the curve of another sample, upside down;
    - ``"global"`` (type 2) replaces :math:`y_i` by :math:`\sum_c a_{ic} g_c`, with Gaussian processes :math:`g_c`
      drawn once and :math:`a_{ic} \sim \mathcal{U}([-\zeta / 2, \zeta / 2])`: a different kind of curve;
    - ``"local"`` (type 3) replaces a share :math:`\xi` of the observed values of :math:`y_i`, chosen at random, by
      draws from :math:`\mathcal{U}([-\zeta b, \zeta b])`, :math:`b = \max_{ij} |y_i(\theta_j)|`.

    Parameters
    ----------
    Y : array of shape (n, m) or (n, m, c), or any other input of ``as_curves``
        Clean curves, with NaN where they are not observed. They are not modified.
    kind : {"label", "global", "local"}
        Type of the outliers.
    share : float
        Share :math:`\tau` of the curves to contaminate, in [0, 1].
    intensity : float, default=1.0
        Size :math:`\zeta` of the outliers; types 1 and 3 of the paper use 1.
    point_share : float, default=0.1
        Share :math:`\xi` of the observed values of a curve that become local outliers, in [0, 1].
    length_scales : sequence of float, default=(0.01, 0.05, 1.0, 4.0)
        Length scales of the processes of global outliers, as shares of the length of the grid.
    is_added : bool, default=False
        Whether global outliers are added to the curves instead of replacing them.
    grid : array of shape (m,) or None, default=None
        Points of the curves, as in ``as_curves``.
    basis_state : int, RandomState or None, default=None
        Seed of the processes of global outliers; ``None`` draws them with ``random_state``.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``Y``, with the shape and dtype of the curves; ``is_outlier`` (n,); ``is_outlier_point``, with the shape of
        ``Y``, the mask of replaced values.

    Notes
    -----
    Unobserved values remain unobserved; with ``"label"`` they move with their curve.

    The paper contradicts itself and its code. Type 1 is the cyclic shift of Sec. 5, whereas the public code reverses
    the order of I. Global outliers replace the curve in Sec. 5; in App. B.2.1 and in the public code they are added to
    it (``is_added=True``), and the code draws coefficients twice as large: its intensity is half of this one.

    References
    ----------
    [Lambert2022]_, Sec. 5 and App. B.2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.datasets import contaminate
    >>> contaminate(np.array([[1.0, 2.0], [3.0, 4.0]]), "label", 1.0, random_state=0).Y
    array([[-3., -4.],
           [-1., -2.]])
    """
    check_parameter("contaminate", "kind", kind, Options(("label", "global", "local")))
    check_parameter("contaminate", "share", share, _SHARE)
    check_parameter("contaminate", "point_share", point_share, _SHARE)
    check_parameter("contaminate", "intensity", intensity, Interval(0, math.inf))
    curves, rng = as_curves(Y, grid), check_random_state(random_state)
    clean = host(curves.values)
    rows = rng.permutation(len(curves))[: _count(share, len(curves))]
    values, is_point = clean.copy(), np.zeros(clean.shape, dtype=bool)
    if kind == "label":
        values[rows] = -intensity * clean[np.roll(rows, -1)]
        is_point[rows] = ~np.isnan(values[rows])
    elif kind == "global":
        processes = _processes(curves.grid, length_scales, rng if basis_state is None else basis_state)
        drawn = _mixtures(processes, intensity, clean[rows].shape, rng)
        is_point[rows] = ~np.isnan(clean[rows])
        values[rows] = np.where(is_point[rows], drawn + clean[rows] if is_added else drawn, np.nan)
    else:
        bound = intensity * float(np.nanmax(np.abs(clean)))
        for row in rows:
            places = np.flatnonzero(~np.isnan(clean[row]))
            chosen = rng.choice(places, _count(point_share, len(places)), replace=False)
            values[row].flat[chosen] = rng.uniform(-bound, bound, len(chosen))
            is_point[row].flat[chosen] = True
    is_outlier = is_point.reshape(len(curves), -1).any(axis=1)
    return Bunch(Y=as_like(values, curves.values), is_outlier=is_outlier, is_outlier_point=is_point)


def _count(share: float, n: int) -> int:
    """Return the floor of a share of n despite round-off: 0.29 of 100 is 29, although 0.29 * 100 is a little less."""
    return math.floor(share * n + 1e-9)


def _processes(grid: np.ndarray, length_scales: Sequence[float], state: int | np.random.RandomState) -> np.ndarray:
    """Return Gaussian processes at the points of a grid, rescaled to unit length."""
    length = float(np.ptp(grid)) or 1.0
    return gaussian_processes((grid - grid[0]) / length, length_scales, state)


def _mixtures(
    processes: np.ndarray, intensity: float, shape: tuple[int, ...], rng: np.random.RandomState
) -> np.ndarray:
    """Return random mixtures of processes, of shape (k, m) or (k, m, c)."""
    k, *channels = shape[:1] + shape[2:]
    weights = rng.uniform(-intensity / 2, intensity / 2, (k, *channels, len(processes)))
    drawn = weights @ processes
    return np.moveaxis(drawn, -1, 1)
