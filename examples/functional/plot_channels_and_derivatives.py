"""
Several channels and derivatives of curves
==========================================

How to predict curves with several channels, and their derivatives, at any points.

An output may have several channels, such as the coordinates of a moving point. A matrix between the channels couples
them. Curves can be predicted at any points, and with a smooth output kernel their derivatives too.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import FunctionalRegressor
from fenchel.kernels import Gaussian
from fenchel.metrics import curve_errors
from fenchel.report.figures import plot_curves, title_above

# %%
# Data
# ----
#
# Inputs are two numbers, a frequency and a phase. The second channel of the output is close to the first one. It is
# costly to measure, so it is known for only one training curve in ten. Shapes are (curves, points, channels).

t, t_fine = np.linspace(0, 1, 30), np.linspace(0, 1, 201)


def outputs(X, t):
    """Return the curves and their derivatives, (n, points, 2)."""
    rate, phase = 2 * np.pi * X[:, :1], X[:, 1:]
    first, slope = np.sin(rate * t + phase), rate * np.cos(rate * t + phase)
    return np.stack([first, first + 0.3 * X[:, :1] * t], axis=2), np.stack([slope, slope + 0.3 * X[:, :1]], axis=2)


rng = np.random.default_rng(0)
X, X_test = (rng.uniform([0.5, 0.0], [1.5, 2.0], (n, 2)) for n in (80, 200))
Y = outputs(X, t)[0] + 0.05 * rng.standard_normal((80, 30, 2))
Y[8:, :, 1] = np.nan
truth, slopes = outputs(X_test, t_fine)
print(f"outputs {Y.shape}, of the second channel {np.sum(~np.isnan(Y[:, :, 1]).all(axis=1))} curves")

# %%
# Coupled channels
# ----------------
#
# ``channels`` is a positive semidefinite matrix; the default, the identity, does not couple the channels. The output
# kernel is Gaussian, and predictions are made on a finer grid than that of the training curves. The outputs are not
# centred: the curves oscillate around zero, and the mean of the second channel would be estimated from only eight
# curves.

settings = {"kernel": Gaussian(1.0), "output_kernel": Gaussian(20.0), "lam": 1e-5, "center": False}
matrices = {"apart": None, "coupled": np.array([[1.0, 0.9], [0.9, 1.0]])}
models = {}
for name, matrix in matrices.items():
    models[name] = FunctionalRegressor(**settings, channels=matrix).fit(X, Y, grid=t)
    predicted = models[name].predict(X_test, grid=t_fine)
    errors = [np.mean(curve_errors(truth[:, :, c], predicted[:, :, c])) for c in (0, 1)]
    print(f"{name:8} prediction {predicted.shape}, test error {errors[0]:.4f} and {errors[1]:.4f}")

# %%
# The first channel is learned well in both cases. The second gains much from the first, which has ten times as many
# curves.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    found = model.predict(X_test[:3], grid=t_fine)[:, :, 1]
    plot_curves(truth[:3, :, 1], ax, predicted=found, grid=t_fine, label="true", predicted_label="predicted")
    title_above(ax, f"Second channel, channels {name}")
plt.show()

# %%
# Derivatives
# -----------
#
# A prediction is a sum of output kernels, so its derivative is the sum of their derivatives. No finite differences are
# needed.

found = models["coupled"].predict(X_test, grid=t_fine, derivative=True)
by_differences = np.gradient(models["coupled"].predict(X_test, grid=t_fine), t_fine, axis=1)
size = np.mean(curve_errors(slopes[:, :, 0], np.zeros_like(slopes[:, :, 0])))
print(f"mean squared slope of the first channel: {size:.2f}")
print(f"error of the predicted slope: {np.mean(curve_errors(slopes[:, :, 0], found[:, :, 0])):.3f}")
print(f"distance to the differences of the prediction: {np.max(np.abs(found - by_differences)[:, 1:-1]):.1e}")

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
plot_curves(slopes[:3, :, 0], ax, predicted=found[:3, :, 0], grid=t_fine, label="true derivative")
ax.set_ylabel("y'(t)")
title_above(ax, "Derivative of the first channel")
plt.show()
