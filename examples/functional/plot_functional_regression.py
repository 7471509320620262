"""
Regression of curves on curves with outliers
============================================

How to predict curves from curves when some points of the training curves are wrong.

Inputs and outputs are curves. Three in ten of the training outputs are wrong at a tenth of their points. The square
loss follows the wrong points; the Huber loss with p = 1 bounds the influence of each point, and its dual variables show
which points were clipped.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

from fenchel import FunctionalRegressor
from fenchel.datasets import contaminate, make_functional
from fenchel.losses import Huber
from fenchel.metrics import curve_errors
from fenchel.report.figures import plot_curves, plot_outlier_scores, plot_point_scores, title_above

train = make_functional(100, 50, "nonlinear", noise=0.05, random_state=0)
test = make_functional(300, 50, "nonlinear", random_state=1)
wrong = contaminate(train.Y, "local", 0.3, point_share=0.1, random_state=0)
print(f"inputs {train.X.shape}, outputs {wrong.Y.shape}, wrong points {wrong.is_outlier_point.sum()}")

# %%
# Two losses
# ----------
#
# The defaults are a Gaussian kernel on input curves, with the median distance as its width, and a Laplacian kernel on
# the domain of the outputs. ``test.truth`` has the true curves without noise, one per row. The error of a curve is the
# mean of the squared difference over the domain.

models = {}
for name, loss in {"square": "square", "Huber, p = 1": Huber(0.1, p=1)}.items():
    models[name] = FunctionalRegressor(loss=loss, lam=1e-6).fit(train.X, wrong.Y, grid=train.t)
    clean = FunctionalRegressor(loss=loss, lam=1e-6).fit(train.X, train.Y, grid=train.t)
    errors = [np.mean(curve_errors(test.truth, model.predict(test.X))) for model in (clean, models[name])]
    gap = abs(models[name].duality_gap_)
    print(
        f"{name:12} test error {errors[0]:.4f} if no point is wrong, {errors[1]:.4f} as it is, relative gap {gap:.0e}"
    )

# %%
# Two training curves with wrong points, and the predictions of both models.

rows = np.flatnonzero(wrong.is_outlier)[[0, 2]]
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    curves = model.predict(train.X[rows])
    plot_curves(wrong.Y[rows], ax, predicted=curves, grid=train.t, label="given", predicted_label="predicted")
    title_above(ax, name)
plt.show()

# %%
# Clipped points
# --------------
#
# ``point_outlier_score_`` is the size of the dual variable of each point divided by its bound: 1 where the residual is
# larger than ``kappa``. It is available for losses with p = 1.

robust = models["Huber, p = 1"]
is_clipped = robust.point_outlier_score_ > 1 - 1e-6
print(f"clipped: {np.sum(is_clipped & wrong.is_outlier_point)} of {wrong.is_outlier_point.sum()} wrong points")
print(f"clipped: {np.sum(is_clipped & ~wrong.is_outlier_point)} of {np.sum(~wrong.is_outlier_point)} other points")
sizes = np.abs(wrong.Y - train.Y)
missed = wrong.is_outlier_point & ~is_clipped
print(f"largest shift of a wrong point: {sizes[missed].max():.2f} where not clipped, {sizes.max():.2f} where clipped")

fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
plot_point_scores(robust.point_outlier_score_[:40], ax, is_outlier=wrong.is_outlier_point[:40], grid=train.t)
title_above(ax, "Outlier scores of the points")
plt.show()

# %%
# Most of the wrong points are found. The others happen to lie close to the value that they replaced.
#
# Outlying curves
# ---------------
#
# With p = 2 the loss bounds the influence of a whole curve, and ``outlier_score_`` has one number per curve. Here one
# training curve in ten was replaced by a curve of another kind.

strange = contaminate(train.Y, "global", 0.1, intensity=4.0, random_state=0)
model = FunctionalRegressor(loss=Huber(0.1), lam=1e-6).fit(train.X, strange.Y)
square = FunctionalRegressor(lam=1e-6).fit(train.X, strange.Y)
for name, fitted in {"square": square, "Huber, p = 2": model}.items():
    print(f"{name:12} test error {np.mean(curve_errors(test.truth, fitted.predict(test.X))):.4f}")

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
plot_outlier_scores(model, ax, is_outlier=strange.is_outlier)
title_above(ax, "Outlier scores of the curves")
plt.show()
