"""
Comparison of kernel approximations
===================================

How many features each kernel approximation needs for the same error.

Every approximation replaces the kernel by one with D features. The robust fits below use the same 4000 samples, a tenth
of which have a wrong output. Features that depend on the sample need a smaller D than random frequencies for the same
error; among themselves they differ little.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom, PSparsified, RandomFeatures
from fenchel.kernels import Gaussian
from fenchel.losses import Huber

# %%
# Inputs in clusters of very different sizes, a smooth function of them, and wrong outputs.

rng = np.random.default_rng(0)
centres = rng.uniform(-2, 2, (20, 3))
shares = 0.7 ** np.arange(20)
cluster = rng.choice(20, 5000, p=shares / shares.sum())
X = centres[cluster] + 0.5 * rng.standard_normal((5000, 3))
truth = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.5 * X[:, 2]
y = truth + 0.1 * rng.standard_normal(5000)
y[::10] += 5
X, X_new, y, truth_new = X[:4000], X[4000:], y[:4000], truth[4000:]

# %%
# Test error and fitting time against the number of features.

kinds = {
    "Nystrom, rpcholesky": lambda D: Nystrom(D),
    "Nystrom, uniform": lambda D: Nystrom(D, "uniform"),
    "Nystrom, kmeans++": lambda D: Nystrom(D, "kmeans++"),
    "Nystrom, leverage": lambda D: Nystrom(D, "leverage"),
    "PSparsified": lambda D: PSparsified(D),
    "RandomFeatures": lambda D: RandomFeatures(D),
}
sizes = [16, 32, 64, 128, 256]


def fitted(approximation):
    """Return the model, its test error and its fitting time in seconds."""
    start = perf_counter()
    model = OperatorKernelRegressor(Gaussian(0.5), loss=Huber(0.2), lam=1e-5, approximation=approximation).fit(X, y)
    seconds = perf_counter() - start
    return model, np.sqrt(np.mean((model.predict(X_new) - truth_new) ** 2)), seconds


runs = {name: [fitted(kind(D)) for D in sizes] for name, kind in kinds.items()}

# %%
# ``"auto"`` chooses the number of features from the part of the trace that they leave unexplained.

model, error, seconds = fitted(Nystrom("auto"))
D = model.approximation_.n_components

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, fits in runs.items():
    left.loglog(sizes, [error for _, error, _ in fits], "o-", label=name)
    right.loglog(sizes, [seconds for _, _, seconds in fits], "o-", label=name)
left.loglog(D, error, "k*", markersize=14, label=f"Nystrom('auto'): D = {D}")
right.loglog(D, seconds, "k*", markersize=14)
left.set(title="Test error", xlabel="features D", ylabel="RMSE against the truth")
right.set(title="Time of a fit", xlabel="features D", ylabel="seconds")
for ax in (left, right):
    ax.set_xticks([*sizes, 512], [*sizes, 512])
    ax.minorticks_off()
left.legend(fontsize="small")
plt.show()
