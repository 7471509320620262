"""A conic solver: the primal in the coordinates of a factor of the Gram matrix."""

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Clarabel, an interior point method."""

    name = "cvxpy"
    requirements = ["pip::cvxpy", "pip::clarabel"]
    sampling_strategy = "run_once"

    def skip(self, K, Y, lam, kappa):
        return Y.size > 2000, "an interior point method takes minutes"

    def set_objective(self, K, Y, lam, kappa):
        import cvxpy as cp

        values, vectors = np.linalg.eigh(K)
        self.root, self.inverse = np.sqrt(np.maximum(values, 0)), vectors
        self.weights = cp.Variable(Y.shape)
        residuals = Y - (vectors * self.root) @ self.weights
        norms = cp.norm(residuals, 2, axis=1)
        loss = cp.sum_squares(residuals) / 2 if np.isinf(kappa) else cp.sum(cp.huber(norms, kappa)) / 2
        self.problem = cp.Problem(cp.Minimize(loss / len(Y) + lam / 2 * cp.sum_squares(self.weights)))

    def run(self, _):
        self.problem.solve(solver="CLARABEL")

    def get_result(self):
        scale = np.where(self.root > 1e-7 * self.root.max(), self.root, np.inf)
        return {"coef": self.inverse @ (self.weights.value / scale[:, None])}
