"""
Fits without tuning
===================

How to fit a table in any units, with some wrong outputs, without setting a single parameter.

A kernel, a loss and a penalty all have a scale, and a table comes in whatever units it was written in. The classes with
cross-validation find these scales from the data. Here the columns of a table are given in five random choices of units,
and a tenth of its outputs are wrong.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.exceptions import ScaleWarning

X, y = load_diabetes(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
train, test = order[:300], order[300:]
dirty = y.copy()
wrong = train[:30]
dirty[wrong] += 10 * np.std(y)

# %%
# Units
# -----
#
# A fit with the default bandwidth depends on the units, and warns if they make it useless. The automatic search does
# not depend on the units.

named, found = [], []
for _ in range(5):
    units = 10 ** rng.uniform(-3, 3, X.shape[1])
    model = OperatorKernelRegressorCV().fit(X[train] * units, dirty[train])
    found.append(model.score(X[test] * units, y[test]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ScaleWarning)
        plain = OperatorKernelRegressor(center=True).fit(X[train] * units, dirty[train])
    named.append(plain.score(X[test] * units, y[test]))
    print(f"test R²: searched {found[-1]:.3f}, Gaussian kernel with default bandwidth {named[-1]:.3f}")

# %%
# Chosen model
# ------------

print(model.best_loss_, f"lam {model.best_lam_:.2g}")
print(model.best_kernel_.kernel)
clipped = np.flatnonzero(model.outlier_score_ == 1)
print(f"{np.isin(np.arange(30), clipped).sum()} of the 30 wrong outputs are clipped")

# %%
# Compared kernels
# ----------------
#
# ``search_`` has the leave-one-out errors of all kernels: three families, several bandwidths, and a linear part with
# four weights. Part of the sample is enough to compare them.

trials = {name: np.array(values) for name, values in model.search_.items()}
first = trials["robust"] & (trials["n_samples"] == trials["n_samples"].min())
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
places = np.arange(5)
left.bar(places - 0.2, found, 0.4, label="OperatorKernelRegressorCV()")
left.bar(places + 0.2, named, 0.4, label="default bandwidth")
left.axhline(0, color="0.3", linewidth=0.8)
left.set(xlabel="choice of units", ylabel="R² of correct test outputs", title="Five choices of units", xticks=places)
left.legend()
for family, marker in zip(np.unique(trials["family"]), "osD", strict=True):
    at = first & (trials["family"] == family)
    right.scatter(
        trials["width"][at], trials["error"][at], s=15 + 15 * trials["linear"][at], marker=marker, label=family
    )
right.set(xscale="log", xlabel="bandwidth, in median distances", ylabel="leave-one-out error")
widths = np.unique(trials["width"].round(2))
right.set_xticks(widths, [f"{width:g}" for width in widths], rotation=45)
right.xaxis.minorticks_off()
right.set_title("Kernels tried (large: with a linear part)")
_ = right.legend()
