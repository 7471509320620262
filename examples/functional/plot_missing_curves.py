"""
Sparsely observed curves
========================

How to fit curves that were each observed at only a few points, without interpolating them.

Four points in five of the training outputs are removed at random, which leaves some twelve points per curve, at
different places. ``FunctionalRegressor`` takes them as they are. A curve has dual variables only where it was observed,
and nothing is interpolated.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import FunctionalRegressor
from fenchel.datasets import make_functional
from fenchel.losses import Huber
from fenchel.metrics import curve_errors
from fenchel.report.figures import plot_curves, title_above

rng = np.random.default_rng(0)
train = make_functional(150, 60, noise=0.05, random_state=0)
test = make_functional(300, 60, random_state=1)
t = train.t
middle = 2 + np.sin(3 * t)  # a mean that is far from zero
Y, truth = train.Y + middle, test.truth + middle

seen = rng.uniform(size=Y.shape) < 0.2
sparse = np.where(seen, Y, np.nan)
print(
    f"observed: {seen.mean():.0%} of the points, from {seen.sum(axis=1).min()} to {seen.sum(axis=1).max()} in a curve"
)

# %%
# Arrays with NaN and lists of pairs
# ----------------------------------
#
# NaN means not observed. A list of pairs ``(points, values)`` is equivalent, and each curve may have its own points;
# the grid is their union.

ragged = [(t[at], row[at]) for row, at in zip(Y, seen, strict=True)]
settings = {"loss": Huber(0.2), "lam": 1e-5}
from_nan = FunctionalRegressor(**settings).fit(train.X, sparse, grid=t)
from_pairs = FunctionalRegressor(**settings).fit(train.X, ragged)
difference = np.max(np.abs(from_nan.predict(test.X) - from_pairs.predict(test.X, grid=t)))
print(f"the first curve has the points {np.round(ragged[0][0], 2)}")
print(f"the two fits differ by {difference:.0e}, relative gap {from_nan.duality_gap_:.0e}")

# %%
# Comparison with interpolation
# -----------------------------
#
# The same model is fitted to the complete curves, to the observed points, and to curves completed by linear
# interpolation (constant beyond the observed points), as a method that needs complete curves would require.

filled = np.array([np.interp(t, points, values) for points, values in ragged])
fits = {
    "all points": FunctionalRegressor(**settings).fit(train.X, Y),
    "observed points": from_nan,
    "interpolated first": FunctionalRegressor(**settings).fit(train.X, filled),
}
for name, model in fits.items():
    print(f"{name:18} test error {np.mean(curve_errors(truth, model.predict(test.X))):.4f}")

# %%
# Four training curves with their observed points and the predictions, and two test curves with those of two models.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot_curves(sparse[:4], left, predicted=from_nan.predict(train.X[:4]), grid=t)
curves = from_nan.predict(test.X[:2])
plot_curves(truth[:2], right, predicted=curves, grid=t, label="true", predicted_label="observed points")
right.plot(t, fits["interpolated first"].predict(test.X[:2]).T, ":", color="0.4", label="interpolated first")
handles, labels = right.get_legend_handles_labels()
right.legend(handles[:3], labels[:3])
title_above(left, "Four training curves")
right.set_title("Two test curves")
plt.show()

# %%
# Centring
# --------
#
# The mean curve is subtracted from the outputs and added to the predictions (``center=True``). With missing points, the
# mean at each point is taken over the curves observed there, then smoothed. Without centring the model has to learn the
# mean too. Use ``center="median"`` if curves may be wrong.

for center in (True, "median", False):
    model = FunctionalRegressor(**settings, center=center).fit(train.X, sparse, grid=t)
    print(f"center={center!r:8} test error {np.mean(curve_errors(truth, model.predict(test.X))):.4f}")

raw = np.nanmean(sparse, axis=0)
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(t, raw, "o", markersize=3, color="0.6", label="mean of what was seen at each point")
ax.plot(t, from_nan.center_(t)[:, 0], label="centre of the model")
ax.plot(t, Y.mean(axis=0), "k--", lw=1, label="mean of the complete curves")
ax.set(title="Estimates of the mean curve", xlabel="t", ylabel="y(t)")
ax.legend()
plt.show()
