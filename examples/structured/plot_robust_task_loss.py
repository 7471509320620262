"""
Non-convex robust task losses
=============================

How to predict with a robust loss that is not convex.

One output in six is wrong, and all wrong ones are on one side, which biases a convex loss. The Cauchy loss is not
convex. The loss trick can still use it, since the loss is minimised only at prediction time, over one number.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from fenchel import LossTrickPredictor
from fenchel.exceptions import ScaleWarning
from fenchel.kernels import Gaussian
from fenchel.task_losses import Absolute, Cauchy, LeastSquares

warnings.simplefilter("ignore", ScaleWarning)  # the smallest lam of the grid is chosen

# %%
# Data
# ----

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-1, 1, 300))
truth = np.sin(6 * x)
y = truth + 0.15 * rng.standard_normal(300)
wrong = rng.permutation(300)[:50]
y[wrong] = rng.uniform(1.5, 3.5, 50)

# %%
# Three losses
# ------------
#
# ``lam`` is chosen from ``lams`` by cross-validation on each loss. Least squares is kernel ridge regression.

grid = np.linspace(-1, 1, 300)
models = {}
for loss in (LeastSquares("nearest"), Absolute(), Cauchy(0.1)):
    model = LossTrickPredictor(Gaussian(10.0), loss, lams=np.logspace(-5, -1, 9)).fit(x[:, None], y)
    models[repr(loss)] = model
    error = np.sqrt(np.mean((model.predict(grid[:, None]) - np.sin(6 * grid)) ** 2))
    print(f"{loss!r:18} lam {model.lam_:.0e}, distance to the curve {error:.3f}")

# %%
# Weighted loss of one input
# --------------------------
#
# The figure shows the weighted loss of one input as a function of the prediction. The Cauchy loss decreases again near
# the outliers, and would have another minimum there if there were more of them. The search is global and finds the
# lowest minimum.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.scatter(x, y, s=8, color="0.7")
left.plot(grid, np.sin(6 * grid), color="black", linewidth=1, label="the curve")
for name, model in models.items():
    left.plot(grid, model.predict(grid[:, None]), label=name)
left.set(xlabel="x", ylabel="y", title="predictions")
left.legend(fontsize="small")

answers = np.linspace(-2, 4, 400)
at = np.array([[-0.25]])
for k, (name, model) in enumerate(models.items()):
    weights = model.weights(at)
    values = model.task_loss_.matrix(answers, y) @ weights[0]
    right.plot(answers, (values - values.min()) / np.ptp(values), color=f"C{k}", label=name)
    right.axvline(model.predict(at)[0], color=f"C{k}", linestyle=":")
right.axvline(np.sin(6 * at[0, 0]), color="black", linewidth=1)
right.set(xlabel="answer", ylabel="weighted loss, scaled to [0, 1]", title=f"at x = {at[0, 0]}")
right.legend(fontsize="small")
plt.show()
