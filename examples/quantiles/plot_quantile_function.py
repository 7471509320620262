"""
All quantiles in one fit
========================

How to learn all quantiles of an output in one fit.

``QuantileFunctionRegressor`` treats a quantile as a function of its level. The fit is certified, and quantiles can be
predicted at any level.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import QuantileFunctionRegressor
from fenchel.kernels import Gaussian
from fenchel.metrics import coverage, crossing_rate, crps

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-1, 1, (300, 1)), axis=0)
y = np.sin(3 * X[:, 0]) + (0.1 + 0.4 * np.abs(X[:, 0])) * rng.standard_normal(300)

model = QuantileFunctionRegressor(Gaussian(3.0), lam=1e-3, levels=15).fit(X, y)
print(f"relative gap {model.duality_gap_:.0e}, crossings in the sample {model.crossing_rate_:.1%}")

# %%
# Quantiles, intervals and samples
# --------------------------------

grid = np.linspace(-1, 1, 200)[:, None]
levels = [0.05, 0.25, 0.5, 0.75, 0.95]
bands = model.predict(grid, levels)
low, high = model.predict_interval(X, 0.8).T
draws = model.sample(grid, 1, random_state=0)
print(f"share of the sample inside the 80 % intervals: {coverage(y, low, high):.2f}")
print(f"mean CRPS: {crps(y, model.predict(X, model.levels_), model.levels_, model.level_weights_).mean():.3f}")

fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
axes[0].plot(X, y, ".", color="0.7")
axes[0].plot(grid, bands, color="C0")
axes[0].set(title="Quantiles 5, 25, 50, 75 and 95 %", xlabel="input", ylabel="output")
axes[1].plot(X, y, ".", color="0.7", label="data")
axes[1].plot(grid, draws, ".", color="C1", label="drawn from the model")
axes[1].set(title="Draws from the quantile function", xlabel="input", ylabel="output")
axes[1].legend()
plt.show()

# %%
# Crossings
# ---------
#
# The quantiles of a flexible model may cross. Crossings are counted, and ``non_crossing=True`` removes them at all
# levels and for every input.

flexible = QuantileFunctionRegressor(Gaussian(30.0), Gaussian(30.0), lam=1e-5, levels=15).fit(X, y)
many = np.arange(1, 100) / 100
before = crossing_rate(flexible.predict(grid, many))
after = crossing_rate(flexible.set_params(non_crossing=True).predict(grid, many))
print(f"neighbouring levels that cross: {before:.1%} before, {after:.1%} in order")
