"""
Codes as features, and outlying samples
=======================================

How to use the codes of an autoencoder as features of a classifier, and how to find samples that do not belong to the
rest.

``KernelAutoencoder`` is a scikit-learn transformer, so its codes can be features in a pipeline. The Huber loss bounds
the influence of unusual samples on the codes, and ``outlier_score_`` points them out.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from fenchel import KernelAutoencoder
from fenchel.kernels import Gaussian
from fenchel.losses import Huber

# %%
# Two codes per image
# -------------------
#
# 400 images of digits are encoded by two numbers each, which is not much for ten classes. ``KernelPCA`` uses the same
# kernel and number of codes.

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.data))[:400]
X, y = digits.data[order] / 16, digits.target[order]
gamma = 0.05
coders = {
    "KernelAutoencoder": KernelAutoencoder(2, Gaussian(gamma), lam=1e-3, inner_lam=1e-4),
    "KernelPCA": KernelPCA(2, kernel="rbf", gamma=gamma),
}
scores = {}
for name, coder in coders.items():
    line = make_pipeline(coder, KNeighborsClassifier(10))
    scores[name] = cross_val_score(line, X, y, cv=4).mean()
    print(f"{name}: {scores[name]:.2f} of held-out images right")

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (name, coder) in zip(axes, coders.items(), strict=True):
    codes = coder.fit_transform(X)
    ax.scatter(*codes.T, c=y, cmap="tab10", s=12)
    ax.set_title(f"{name}, {scores[name]:.0%} right")
    ax.set_xlabel("first code")
    ax.set_ylabel("second code")
plt.show()

# %%
# Outliers
# --------
#
# The pixels of forty images are shuffled. These images do not look like digits and are reconstructed badly. The Huber
# loss bounds their duals, and the score of a sample whose dual is at the bound is 1.

rng = np.random.default_rng(1)
dirty = X.copy()
is_wrong = np.zeros(len(X), dtype=bool)
is_wrong[rng.permutation(len(X))[:40]] = True
dirty[is_wrong] = rng.permuted(X[is_wrong], axis=1)
model = KernelAutoencoder(2, Gaussian(gamma), loss=Huber(0.65), lam=1e-3, inner_lam=1e-4).fit(dirty)
is_clipped = model.outlier_score_ > 0.999
print(f"clipped: {is_clipped[is_wrong].sum()} of 40 shuffled images, {is_clipped[~is_wrong].sum()} of 360 others")
