"""A quasi-Newton method on the primal, with gradients by hand."""

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion


class Solver(BaseSolver):
    """L-BFGS of SciPy, in the coordinates of a factor of the Gram matrix."""

    name = "L-BFGS"
    requirements = ["pip::scipy"]
    stopping_criterion = SufficientProgressCriterion(eps=1e-13, patience=4, strategy="iteration")

    def set_objective(self, K, Y, lam, kappa):
        self.Y, self.lam, self.kappa, self.K = Y, lam, kappa, K

    def run(self, n_iter):
        from scipy.linalg import eigh
        from scipy.optimize import minimize

        n, shape = len(self.Y), self.Y.shape
        values, vectors = eigh(self.K)
        root = np.sqrt(np.maximum(values, 0))
        factor = vectors * root

        def objective(flat):
            weights = flat.reshape(shape)
            residuals = self.Y - factor @ weights
            norms = np.linalg.norm(residuals, axis=1)
            inner = np.minimum(norms, self.kappa)
            value = np.mean(inner * norms - inner**2 / 2) + self.lam / 2 * np.sum(flat**2)
            slopes = residuals * (inner / np.maximum(norms, 1e-300))[:, None]
            return value, (self.lam * weights - factor.T @ slopes / n).ravel()

        options = {"maxiter": n_iter, "maxcor": 20, "ftol": 0.0, "gtol": 0.0}
        found = minimize(objective, np.zeros(self.Y.size), jac=True, method="L-BFGS-B", options=options)
        scale = np.where(root > 1e-7 * root.max(), root, np.inf)
        self.coef = vectors @ (found.x.reshape(shape) / scale[:, None])

    def get_result(self):
        return {"coef": self.coef}
