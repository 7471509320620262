"""
Prediction bands of samples in the order of time
================================================

How to keep the coverage of bands while noise or inputs change, without fitting again.

A band is calibrated on past samples. If the noise grows, the same band covers less and less. ``update`` takes the
outputs of each new block: their scores join those of the calibration, of which the oldest count less and less, and the
next bands are wider if the last ones missed too much.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import ConformalRegressor, OperatorKernelRegressor

rng = np.random.default_rng(0)
n, start, block = 1200, 300, 30
time = np.arange(n)
X = rng.uniform(-2, 2, (n, 1))
size = 0.1 * np.exp(np.maximum(time - start, 0) / 500)
y = np.sin(2 * X[:, 0]) + size * rng.standard_normal(n)

# %%
# Two bands
# ---------
#
# Both are fitted to the first 300 samples, with ``order=`` their times: the last quarter of these calibrates. One is
# left as it is, the other one sees the outputs of each block after it has predicted them.

machine = OperatorKernelRegressor(lam=1e-3)
fixed, moving = (ConformalRegressor(machine).fit(X[:start], y[:start], order=time[:start]) for _ in range(2))
print(f"p-value that the calibration scores are exchangeable: {moving.exchangeability_p_value_:.2f}")

shares, widths = [], []
for begin in range(start, n, block):
    part = slice(begin, begin + block)
    bands = [model.predict_interval(X[part]) for model in (fixed, moving)]
    shares.append([band.contains(y[part]).mean() for band in bands])
    widths.append([band.width.mean() for band in bands])
    moving.update(X[part], y[part])

print("covered, as fitted and with updates:", np.mean(shares, axis=0).round(2))

# %%
# Coverage and width of the blocks
# --------------------------------

blocks = np.arange(start, n, block)
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, values, name in zip(axes, (shares, widths), ("coverage", "width"), strict=True):
    for column, label in zip(np.transpose(values), ("as fitted", "with updates"), strict=True):
        ax.plot(blocks, column, label=label)
    ax.set_xlabel("first sample of the block")
    ax.set_title(name)
axes[0].axhline(0.9, color="0.6", lw=0.8)
axes[1].plot(blocks, 2 * 1.645 * size[blocks], "k--", lw=0.8, label="of the true noise")
axes[1].legend()

# %%
# A test of the past
# ------------------
#
# Fitted to all of these samples, a band comes with a warning that its calibration scores change with time.

late = ConformalRegressor(machine, calibration_size=0.7)
late.fit(X, y, order=time)
print(f"p-value that the calibration scores are exchangeable: {late.exchangeability_p_value_:.1e}")
