"""Kernel ridge regression of scikit-learn: the square loss alone, in one step."""

from benchopt import BaseSolver


class Solver(BaseSolver):
    """A Cholesky factorisation."""

    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]
    sampling_strategy = "run_once"

    def skip(self, K, Y, lam, kappa):
        return kappa < float("inf"), "KernelRidge has the square loss only"

    def set_objective(self, K, Y, lam, kappa):
        from sklearn.kernel_ridge import KernelRidge

        self.K, self.Y, self.model = K, Y, KernelRidge(alpha=lam * len(Y), kernel="precomputed")

    def run(self, _):
        self.model.fit(self.K, self.Y)

    def get_result(self):
        return {"coef": self.model.dual_coef_}
