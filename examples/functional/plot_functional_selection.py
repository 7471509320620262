"""
Model selection for curves
==========================

How to choose loss and penalty for curves when held-out curves may be wrong too.

``FunctionalRegressorCV`` cross-validates a grid of losses and ``lam`` on one factorisation. With outliers, use the
median of the held-out errors instead of their mean.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

import fenchel
from fenchel import FunctionalRegressor, FunctionalRegressorCV
from fenchel.datasets import contaminate, make_functional
from fenchel.exceptions import ScaleWarning
from fenchel.kernels import FunctionalGaussian, Laplacian
from fenchel.losses import Huber
from fenchel.metrics import curve_errors, curve_scorer
from fenchel.report.figures import plot_surface, title_above

warnings.simplefilter("ignore", ScaleWarning)  # the grid is small, and its ends are chosen

train = make_functional(80, 40, "nonlinear", noise=0.05, random_state=0)
test = make_functional(300, 40, "nonlinear", random_state=1)
wrong = contaminate(train.Y, "global", 0.1, intensity=20.0, random_state=0)
X, Y = train.X, wrong.Y

lams = np.logspace(-6, -2, 5)
losses = [Huber(kappa) for kappa in (0.05, 0.1, 0.3, 1.0)]

# %%
# Mean and median errors
# ----------------------
#
# One training curve in ten is of another kind, with large values. No model predicts those curves, so they dominate the
# mean of the held-out errors. The median measures how well an ordinary curve is predicted. The curves can also be
# centred by their mean or their median.

models = {}
for center in (True, "median"):
    for aggregate in ("mean", "median"):
        model = FunctionalRegressorCV(None, lams=lams, losses=losses, center=center, aggregate=aggregate).fit(X, Y)
        error = np.mean(curve_errors(test.truth, model.predict(test.X)))
        chosen = f"{model.best_loss_!r:17} and lam {model.best_lam_:.0e}"
        print(f"center={center!r:8} aggregate={aggregate!r:8} chooses {chosen}: test error {error:.4f}")
        models[center, aggregate] = model

# %%
# The wrong curves shift the mean curve. With that as the centre, the mean error selects the largest ``lam`` of the
# grid, and so a useless model. The median error selects a good model with either centre.
#
# Errors over the grid
# --------------------
#
# The cross-validation errors of the first two models over the grid, and the test errors of every pair.

tested = models[True, "median"]
predictions = fenchel.path(FunctionalRegressor(), X, Y, lams, losses).predict(test.X)
errors = np.array([[np.mean(curve_errors(test.truth, one)) for one in row] for row in predictions])
print(f"least test error of the grid: {errors.min():.4f}; largest gap of the folds: {tested.cv_gaps_.max():.0e}")

fig, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
plot_surface(models[True, "mean"], axes[0], label="mean held-out error")
plot_surface(tested, axes[1], label="median held-out error")
plot_surface(tested, axes[2], values=errors, label="test error")
for ax, name in zip(axes, ("Mean of the folds", "Median of the folds", "New curves"), strict=True):
    title_above(ax, name)
plt.show()

# %%
# Parameters of the kernels
# -------------------------
#
# For other parameters use scikit-learn's searches, with a scorer for curves that also takes the median.

search = GridSearchCV(
    FunctionalRegressor(FunctionalGaussian(), Laplacian(), Huber(0.1), lam=1e-5, center="median"),
    {"kernel__gamma": [0.3, 1.0, 3.0], "output_kernel__gamma": [3.0, 10.0, 30.0]},
    scoring=curve_scorer("median"),
).fit(X, Y)
error = np.mean(curve_errors(test.truth, search.predict(test.X)))
chosen = ", ".join(f"{name} {value:g}" for name, value in search.best_params_.items())
print(f"{chosen}: test error {error:.4f}")
