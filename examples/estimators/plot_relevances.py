"""
Relevance of input columns
==========================

How to find out which columns of a table matter.

By default a kernel gives every column of a table the same weight. ``LearnedMetricRegressor`` learns the weights from
the gradients of its fits. Here a table has ten columns in ten different units, two outputs depend on three of them, and
a tenth of the outputs are wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import LearnedMetricRegressor, OperatorKernelRegressorCV
from fenchel.report.figures import plot_relevances

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (400, 10))
Y = np.stack([np.sin(4 * X[:, 2]) + X[:, 5], 50 * X[:, 5] * X[:, 7]], axis=1)
units = 10.0 ** rng.uniform(-3, 3, 10)
X = X * units
train, test = np.arange(200), np.arange(200, 400)
dirty = Y.copy()
dirty[:20] += 8 * np.std(Y, axis=0)

# %%
# Learned metric
# --------------
#
# Each round fits a model, averages the outer products of its gradients over the sample, and chooses the next kernel
# with that metric. The number of rounds minimises the error on held-out samples.

plain = OperatorKernelRegressorCV().fit(X[train], dirty[train])
model = LearnedMetricRegressor().fit(X[train], dirty[train])
print(f"test R²: plain metric {plain.score(X[test], Y[test]):.3f}, learned {model.score(X[test], Y[test]):.3f}")
print("held-out errors of the rounds:", np.round(model.history_, 3), "kept:", model.best_round_)

# %%
# Relevances
# ----------
#
# A relevance is the share of a column in the squared gradients of the predictions. It does not depend on the units.

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
_ = plot_relevances(model, ax).set_title("Relevance of each column")

# %%
# Gradients
# ---------
#
# ``gradient`` returns the derivative of every prediction with respect to every column, in their units. The figure
# compares the derivative of the first output with respect to the third column with the true one.

found = model.gradient(X[test], almost_everywhere=True)
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(X[test, 2], 4 * np.cos(4 * X[test, 2] / units[2]) / units[2], ".", label="true")
ax.plot(X[test, 2], found[:, 0, 2], ".", label="of the fit")
ax.set(title="Derivative by the third column", xlabel="third column", ylabel="derivative of the first output")
_ = ax.legend()
