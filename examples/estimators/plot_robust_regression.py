"""
Outliers: Huber loss and square loss
====================================

How the Huber loss resists wrong outputs, and how its dual variables point to them.

One output vector in seven is grossly wrong. The square loss follows the wrong ones; the Huber loss bounds the influence
of each sample, and its dual variables show which samples were clipped.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import OperatorKernelRegressor
from fenchel.kernels import Gaussian
from fenchel.losses import Huber

rng = np.random.default_rng(0)


def truth(x):
    return np.hstack([np.sin(2 * x), np.cos(x)])


X = np.sort(rng.uniform(0, 5, (140, 1)), axis=0)
Y = truth(X) + 0.1 * rng.standard_normal((140, 2))
is_outlier = np.zeros(140, dtype=bool)
is_outlier[rng.permutation(140)[:20]] = True
Y[is_outlier] += rng.uniform(2, 6, (20, 2))

# %%
# Two fits
# --------
#
# Both fits have the same kernel and ``lam``. The test error is the mean squared distance to the noise-free outputs.

X_test = np.linspace(0, 5, 300)[:, None]
models = {}
for loss in ("square", Huber(0.3)):
    model = OperatorKernelRegressor(Gaussian(1.0), loss=loss, lam=1e-3).fit(X, Y)
    error = np.mean(np.sum((model.predict(X_test) - truth(X_test)) ** 2, axis=1))
    print(f"{loss!r:20} test error {error:.4f}, relative gap {abs(model.duality_gap_):.0e}")
    models[str(loss)] = model

fig, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for k, ax in enumerate(axes):
    ax.plot(X[~is_outlier], Y[~is_outlier, k], ".", color="0.6", label="samples")
    ax.plot(X[is_outlier], Y[is_outlier, k], ".", color="C3", label="outliers")
    ax.plot(X_test, truth(X_test)[:, k], "k--", lw=1, label="truth")
    for name, model in models.items():
        ax.plot(X_test, model.predict(X_test)[:, k], label=name)
    ax.set(title=f"output {k}", xlabel="input", ylabel="output")
axes[1].legend(fontsize="small")

# %%
# Clipped samples
# ---------------
#
# ``outlier_score_`` is the norm of each dual variable divided by its bound: 1 for a sample whose residual is longer
# than ``kappa``. All outliers are among these; the few others have a long residual for other reasons.

scores = models["Huber(kappa=0.3)"].outlier_score_
is_clipped = scores > 1 - 1e-6
print(f"clipped: {np.sum(is_clipped & is_outlier)} of {is_outlier.sum()} outliers")
print(f"clipped: {np.sum(is_clipped & ~is_outlier)} of {np.sum(~is_outlier)} other samples")

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(X[~is_outlier], scores[~is_outlier], ".", color="0.6", label="samples")
ax.plot(X[is_outlier], scores[is_outlier], ".", color="C3", label="outliers")
ax.set(title="Outlier scores", xlabel="input", ylabel="outlier_score_")
ax.legend(loc="lower right", frameon=True)
plt.show()
