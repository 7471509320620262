"""Made data with a known truth."""

import numpy as np
from sklearn.utils import Bunch, check_random_state

__all__ = ["make_multioutput"]


def make_multioutput(
    n_samples: int = 200, n_outputs: int = 5, noise: float = 0.1, outliers: float = 0.0, random_state: int | None = None
) -> Bunch:
    """Make a smooth nonlinear regression with correlated outputs, some of them grossly wrong.

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
