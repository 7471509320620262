"""Robust multi-output kernel regression: the primal objective, and the gap to the dual, in plain NumPy."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Mean loss of ``Y - K C`` plus ``lam / 2`` times the trace of ``C' K C``."""

    name = "Robust multi-output kernel regression"
    min_benchopt_version = "1.8"
    parameters = {"loss": ["huber", "square"], "lam": [1e-2, 1e-4]}

    def set_data(self, K, Y):
        self.K, self.Y = K, Y
        norms = np.linalg.norm(Y, axis=1)
        self.kappa = 0.5 * float(np.median(norms)) if self.loss == "huber" else np.inf

    def evaluate_result(self, coef):
        n, lam, kappa = len(self.Y), self.lam, self.kappa
        images = self.K @ coef
        norms = np.linalg.norm(self.Y - images, axis=1)
        inner = np.minimum(norms, kappa)
        primal = np.mean(inner * norms - inner**2 / 2) + lam / 2 * np.sum(coef * images)
        duals = lam * n * coef  # scaled to be feasible
        duals = duals * np.minimum(1.0, kappa / np.maximum(np.linalg.norm(duals, axis=1, keepdims=True), 1e-300))
        quadratic = np.sum(duals * (self.K @ duals)) / (2 * lam * n**2)
        dual = np.mean(np.sum(duals * self.Y - duals**2 / 2, axis=1)) - quadratic
        return {"value": float(primal), "relative_gap": float((primal - dual) / abs(primal))}

    def get_one_result(self):
        return {"coef": np.zeros_like(self.Y)}

    def get_objective(self):
        return {"K": self.K, "Y": self.Y, "lam": self.lam, "kappa": self.kappa}
