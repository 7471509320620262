"""
Histograms as outputs
=====================

How to predict histograms with a loss designed for them.

The lower half of a digit is predicted from its upper half. An image is treated as a histogram of ink, and the loss is
the squared Hellinger distance: its decoder has a closed form, and returns images that are not in the training sample.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from fenchel import LossTrickPredictor
from fenchel.kernels import Gaussian
from fenchel.task_losses import ChiSquare, Hellinger, KernelInduced

# %%
# Data
# ----

images = load_digits().images / 16.0
upper, lower = images[:, :4].reshape(-1, 32), images[:, 4:].reshape(-1, 32)
lower = lower / lower.sum(axis=1, keepdims=True)
X, X_test, Y, Y_test = train_test_split(upper, lower, train_size=600, test_size=300, random_state=0)

# %%
# Three losses
# ------------
#
# The loss of a Gaussian kernel is decoded among the training images, the two losses for histograms over the whole
# simplex.

models = {}
for name, loss in {
    "Gaussian": KernelInduced(Gaussian(20.0)),
    "Hellinger": Hellinger(),
    "chi-square": ChiSquare(),
}.items():
    models[name] = LossTrickPredictor(Gaussian(0.3), loss, lam=1e-4).fit(X, Y)

print(f"{'decoded by':12} {'Gaussian':>9} {'Hellinger':>9} {'chi-square':>10}")
found = {name: model.predict(X_test) for name, model in models.items()}
for name, guess in found.items():
    row = [np.mean(other.task_loss_(Y_test, guess)) for other in models.values()]
    print(f"{name:12} {row[0]:9.3f} {row[1]:9.3f} {row[2]:10.3f}")

# %%
# Test images
# -----------

fig, axes = plt.subplots(4, 10, figsize=(9, 4), layout="constrained")
for k, column in enumerate(axes.T):
    for ax, half in zip(column, (Y_test, *found.values()), strict=True):
        ink = half[k] / half[k].max()
        ax.imshow(np.vstack([X_test[k].reshape(4, 8), ink.reshape(4, 8)]), cmap="gray_r", vmin=0, vmax=1)
        ax.axhline(3.5, color="tab:red", linewidth=0.8)
        ax.set_xticks([])
        ax.set_yticks([])
for ax, name in zip(axes[:, 0], ("truth", *found), strict=True):
    ax.set_ylabel(name, fontsize="small")
plt.show()
