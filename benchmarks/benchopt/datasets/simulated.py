"""Smooth functions of ten inputs, a tenth of the outputs far off."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """A Gaussian Gram matrix of standard normal inputs."""

    name = "simulated"
    parameters = {"n_samples, n_outputs": [(200, 3), (1000, 5)]}

    def get_data(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((self.n_samples, 10))
        squares = np.sum(X**2, axis=1)
        K = np.exp(-np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0) / 20)
        Y = np.sin(X @ rng.standard_normal((10, self.n_outputs))) + 0.1 * rng.standard_normal((len(X), self.n_outputs))
        Y[rng.random(len(X)) < 0.1] += 10
        return {"K": K, "Y": Y}
