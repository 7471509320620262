"""This library."""

from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion


class Solver(BaseSolver):
    """The dual, to a certified gap."""

    name = "fenchel"
    requirements = ["pip::fenchel"]
    stopping_criterion = SufficientProgressCriterion(eps=1e-13, patience=8, strategy="tolerance")

    def get_next(self, tol):
        return min(tol, 1.0) / 100

    def set_objective(self, K, Y, lam, kappa):
        from fenchel import OperatorKernelRegressor
        from fenchel.losses import Huber, Square

        loss = Huber(kappa) if kappa < float("inf") else Square()
        self.K, self.Y, self.model = K, Y, OperatorKernelRegressor("precomputed", loss=loss, lam=lam)

    def run(self, tol):
        self.model.set_params(tol=min(max(tol, 1e-14), 1e-1)).fit(self.K, self.Y)

    def get_result(self):
        return {"coef": self.model.dual_coef_.reshape(self.Y.shape) / (self.model.lam * len(self.Y))}
