"""
Curves that are not aligned
===========================

How to predict from curves whose features come earlier in some samples and later in others.

A kernel compares curves point by point: two curves with the same peaks at different times are far from each other. A
registration moves them to common times first. Those of scikit-fda are transformers, so that a pipeline learns the
registration from the training curves of each fold.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from skfda import FDataGrid
from skfda.preprocessing.registration import FisherRaoElasticRegistration
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from fenchel import OperatorKernelRegressorCV
from fenchel.report.figures import plot_curves

warnings.filterwarnings("ignore", module="skfda")

# %%
# Data
# ----
#
# Each curve has two peaks, whose heights matter, on a clock of its own. The output is the difference of the heights.

rng = np.random.default_rng(0)
t, n = np.linspace(0, 1, 81), 90
heights, rates = rng.uniform(0.5, 1.5, (n, 2)), rng.normal(size=(n, 1))
clocks = np.expm1(rates * t) / np.expm1(rates)
values = sum(heights[:, [k]] * np.exp(-(((clocks - at) / 0.06) ** 2)) for k, at in enumerate((0.35, 0.65)))
X = FDataGrid(values + 0.02 * rng.standard_normal((n, len(t))), t)
y = heights[:, 0] - heights[:, 1] + 0.05 * rng.standard_normal(n)

# %%
# With and without a registration
# -------------------------------
#
# The pipeline is an estimator like any other. New curves are aligned with the template of the training curves.

plain = OperatorKernelRegressorCV(losses=["square"])
registered = make_pipeline(FisherRaoElasticRegistration(), plain)
for name, model in {"as they are": plain, "registered": registered}.items():
    scores = cross_val_score(model, X, y, cv=3)
    print(f"{name:12} R2 {np.mean(scores):.3f}, in the folds {np.round(scores, 3)}")

# %%
# What the registration has done
# ------------------------------

aligned = FisherRaoElasticRegistration().fit_transform(X[:30])
fig, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for ax, curves, title in zip(axes, (X[:30], aligned), ("as they are", "registered"), strict=True):
    plot_curves(curves, ax)
    ax.set_title(title)
plt.show()
