"""
Curves paired with the wrong input
==================================

How to find curves that look normal but belong to another input.

A tenth of the output curves are swapped: each is an ordinary curve, paired with the input of another. Detectors that
look only at the curves cannot find them. A model of the other samples can, because it predicts what each curve should
be.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import FunctionalRegressor, OutlierReport, RobustRefit
from fenchel.datasets import make_functional
from fenchel.losses import Huber

data = make_functional(150, 60, noise=0.1, random_state=0)
wrong = np.random.RandomState(0).permutation(150)[:15]
Y = data.Y.copy()
Y[wrong] = data.Y[np.roll(wrong, 1)]

# %%
# Outlier report
# --------------
#
# ``OutlierReport.of`` compares each curve with the prediction of a model that was not fitted to it. You set the rate of
# false discoveries among the flagged curves.

model = FunctionalRegressor(loss=Huber("auto"), lam=1e-4, center="median").fit(data.X, Y)
report = OutlierReport.of(model, data.X, Y)
print(report)
flagged = report.flagged(fdr=0.05)
print(f"{flagged[wrong].sum()} of 15 wrong curves are flagged, and {flagged.sum() - flagged[wrong].sum()} others")

# %%
# Flagged curves and their predictions
# ------------------------------------

fig, axes = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
for ax, curves, title in ((axes[0], Y, "the curves"), (axes[1], report.residuals, "less their held-out predictions")):
    ax.plot(data.t, np.delete(curves, wrong, axis=0).T, color="0.8", lw=0.6)
    ax.plot(data.t, curves[wrong].T, color="C3", lw=1)
    ax.set_title(f"{title} (red: wrong)")
    ax.set_xlabel("t")
report.plot(axes[2], fdr=0.05)

# %%
# Curves alone
# ------------
#
# ``OutlierReport.of_curves`` needs no inputs. It finds curves of unusual size, shape or roughness, or with single wrong
# points, but not swapped curves.

alone = OutlierReport.of_curves(Y, data.t)
print(f"by the curves alone: {alone.flagged(0.05)[wrong].sum()} of 15")

# %%
# Robust refit
# ------------
#
# ``RobustRefit`` fits, flags, fits again without the flagged curves, and keeps the fit with the better held-out
# predictions. All fits are certified.

test = make_functional(200, 60, random_state=1)
refit = RobustRefit(model).fit(data.X, Y)
for name, fit in (("all samples", refit.first_estimator_), (refit.kept_fit_, refit)):
    print(f"{name}: mean squared error {np.mean((fit.predict(test.X) - test.truth) ** 2):.5f}")
