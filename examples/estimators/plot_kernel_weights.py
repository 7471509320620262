"""
Weights of several data sources
===============================

How to weight several data sources when some samples lack some of them.

Grain is described by six sources: a near-infrared spectrum, an image, weather records and three sensors that only
record noise. Two outputs, protein and moisture, depend on the first three. A tenth of the samples have no spectrum, and
another tenth no image. Each source has its own kernel, and ``learn_kernel_weights`` learns the weights of the kernels.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV, learn_kernel_weights
from fenchel.kernels import Gaussian, MultipleKernel, Standardized
from fenchel.losses import Huber
from fenchel.report.figures import COLOURS, plot_kernel_weights

rng = np.random.default_rng(0)
n, wavelengths = 500, np.linspace(0, 1, 60)
chemistry, texture, weather = rng.uniform(-1, 1, (3, n, 2))


def surface(hidden):
    """Return a smooth function of two hidden variables."""
    return np.sin(2 * hidden[:, 0]) + np.cos(3 * hidden[:, 0] * hidden[:, 1])


peaks = np.stack([np.exp(-(((wavelengths - place) / 0.08) ** 2)) for place in (0.3, 0.6)])
spectra = chemistry @ peaks + 0.05 * rng.standard_normal((n, 60))
images = texture @ rng.standard_normal((2, 25)) + 0.3 * rng.standard_normal((n, 25))
X = np.hstack([spectra, images, weather, rng.standard_normal((n, 30))])
protein = surface(chemistry) + 0.3 * surface(weather)
moisture = surface(texture) + 0.3 * surface(weather)
Y = np.stack([protein, moisture], axis=1) + 0.1 * rng.standard_normal((n, 2))

# %%
# Missing sources
# ---------------
#
# A missing source is NaN in all of its columns. The kernel compares two samples by the sources that both have, and
# stays positive semidefinite.

sources = {"spectrum": slice(0, 60), "image": slice(60, 85), "weather": slice(85, 87)}
sources |= {f"sensor {k + 1}": slice(87 + 10 * k, 97 + 10 * k) for k in range(3)}
missing = {"spectrum": rng.random(n) < 1 / 10, "image": rng.random(n) < 1 / 10, "sensor 2": rng.random(n) < 1 / 2}
for name, rows in missing.items():
    X[rows, sources[name]] = np.nan
kernel = MultipleKernel([(name, Standardized(Gaussian("median")), columns) for name, columns in sources.items()])

# %%
# Learned weights
# ---------------
#
# The weights minimise the leave-one-out error of kernel ridge regression, which has a closed form and an exact
# gradient. The kernel can then be used with any loss, and every fit is certified.

train, test = np.arange(n) < 250, np.arange(n) >= 250
found = learn_kernel_weights(kernel, X[train], Y[train])
print({name: round(float(weight), 3) for name, weight in zip(found.names, found.weights_, strict=True)})
robust = OperatorKernelRegressor(found.kernel, loss=Huber(0.2), lam=found.lam, center=True).fit(X[train], Y[train])
print(f"Huber's loss: relative gap {robust.duality_gap_:.0e}, test R² {robust.score(X[test], Y[test]):.3f}")

# %%
# For comparison, each useful source alone and equal weights, each with the lam that minimises its leave-one-out error.


def unexplained(weights):
    """Return the share of the variance of new outputs that a model with these weights does not explain."""
    chosen, lams = MultipleKernel(kernel.groups, weights), np.logspace(-5, 1, 19)
    model = OperatorKernelRegressorCV(chosen, losses=["square"], lams=lams, cv="loo", center=True)
    return 1 - model.fit(X[train], Y[train]).score(X[test], Y[test])


errors = {f"{name} alone": unexplained(np.eye(6)[m]) for m, name in enumerate(list(sources)[:3])}
errors["equal weights"], errors["learned weights"] = unexplained(None), unexplained(found.weights_)
print({name: round(float(error), 3) for name, error in errors.items()})

# %%
# Results
# -------
#
# Left: the sources of each sample. Middle: the weights. Right: errors on new samples, which lack sources as often as
# the training samples do.

fig, axes = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained", width_ratios=[1, 1, 1.2])
observed = np.stack([~np.isnan(X[train][:, columns.start]) for columns in sources.values()])
order = np.lexsort(observed)
axes[0].imshow(observed[:, order], aspect="auto", cmap="Blues", vmin=-0.2, vmax=1.4, interpolation="nearest")
axes[0].set_yticks(range(6), sources)
axes[0].set_xlabel("training samples, sorted")
axes[0].set_title("what was observed")
plot_kernel_weights(found, ax=axes[1])
axes[1].set_title("learned weights")
axes[2].barh(range(5), list(errors.values()), color=[COLOURS[4]] * 3 + [COLOURS[1], COLOURS[2]])
axes[2].set_yticks(range(5), list(errors))
axes[2].invert_yaxis()
axes[2].set_xlabel("variance that is not explained (share)")
_ = axes[2].set_title("new samples")
