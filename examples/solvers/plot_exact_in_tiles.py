"""
Exact fits without a factorisation
==================================

How to solve the exact problem when the Gram matrix is too large to be factorised.

``solver="krylov"`` solves the exact problem by conjugate gradients, as ``solver="auto"`` does from about 4000 samples
on. It starts from the features of a few landmarks, and continues with passes over the kernel, which is stored in
float32 where it fits and computed in tiles where not. All certificates below are those of the exact problem.
"""

import logging
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom
from fenchel.kernels import Laplacian
from fenchel.losses import Huber

# %%
# The function has detail at one end only, and one output in ten is wrong.

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 1, 2000))
truth = np.sin(40 * x**3)
y = truth + 0.1 * rng.standard_normal(2000)
y[rng.random(2000) < 0.1] += 2
X = x[:, None]

# %%
# With 12 landmarks the approximate problem can be solved to any gap, but this does not solve the exact problem; only
# the exact certificate shows it. ``fit`` then warns, and ``status_`` says what is wrong.

settings = {"loss": Huber(0.2), "lam": 3e-5, "tol": 1e-5}
thin = OperatorKernelRegressor(Laplacian(10.0), approximation=Nystrom(12), certificate="exact", **settings)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    thin.fit(X, y)
print(f"12 landmarks: gap {thin.history_[-1][1]:.1e} with its own kernel, {thin.duality_gap_:.1e} with the exact one")
print(thin.status_)

# %%
# The exact fit starts from 6 √n landmarks of its own. At level INFO it logs the number of passes and the remaining
# time.

logging.getLogger("fenchel").setLevel(logging.INFO)
logging.getLogger("fenchel").addHandler(logging.StreamHandler())
exact = OperatorKernelRegressor(Laplacian(10.0), solver="krylov", **settings).fit(X, y)
logging.getLogger("fenchel").setLevel(logging.WARNING)
print(f"krylov: {exact.status_}, {exact.certificate_} gap {exact.duality_gap_:.1e}")

# %%
# Left: the models. Right: the exact gap of the second model at every certificate, compared with that of the first.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(x, y, ".", color="0.8", markersize=2, label="samples, a tenth wrong")
left.plot(x, thin.predict(X), color="C1", label="12 landmarks")
left.plot(x, exact.predict(X), color="C0", label="exact")
left.set(title="What 12 landmarks miss", xlabel="input", ylabel="output", ylim=(-1.8, 3.4))
left.legend(loc="upper left", frameon=False)
steps, gaps = np.array([entry[:2] for entry in exact.history_]).T
right.semilogy(steps, gaps, "o-", color="C0", label="exact fit")
right.axhline(thin.duality_gap_, color="C1", label="12 landmarks")
right.axhline(exact.tol, color="0.6", linestyle=":", label="tol")
right.set(title="The exact duality gap", xlabel="steps of the splitting", ylabel="relative gap")
right.legend(frameon=False, loc="lower left")
plt.show()
