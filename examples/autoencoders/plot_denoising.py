"""
Denoising and inpainting of digits
==================================

How to remove noise from images, and how to fill in missing halves, with an autoencoder trained on clean images.

An autoencoder trained on clean images reconstructs a noisy image as a clean one: the pre-image of its reconstruction.
An image with a missing part is filled in iteratively: a first guess is encoded and decoded, the missing pixels are
taken from the result, and so on.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA

from fenchel import KernelAutoencoder
from fenchel.kernels import Gaussian

# %%
# Data
# ----
#
# Images of 8 × 8 pixels from scikit-learn: 400 for training and 100 for testing. Noise is added to the test images, or
# their lower half is removed.

X = load_digits().data / 16
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
train, clean = X[order[:400]], X[order[400:500]]
noisy = clean + 0.3 * rng.standard_normal(clean.shape)
is_missing = np.zeros(64, dtype=bool)
is_missing[40:] = True

# %%
# Noise
# -----
#
# There are sixteen codes. ``inverse_transform`` searches for the image whose features are nearest to the
# reconstruction.

gamma = 0.05
model = KernelAutoencoder(16, Gaussian(gamma), lam=1e-4, inner_lam=1e-5, max_inner_iter=15).fit(train)
denoised = model.inverse_transform(model.transform(noisy))
print(f"outer layer certified to a gap of {model.duality_gap_:.0e}; the objective fell from "
      f"{model.objective_history_[0]:.3f} to {model.objective_history_[-1]:.3f}")  # fmt: skip

pca = KernelPCA(16, kernel="rbf", gamma=gamma, fit_inverse_transform=True, alpha=1e-3).fit(train)


def error(images):
    """Return the mean squared error of a pixel."""
    return np.mean((images - clean) ** 2)


print(f"error of a pixel: noisy {error(noisy):.4f}, autoencoder {error(denoised):.4f}, "
      f"KernelPCA {error(pca.inverse_transform(pca.transform(noisy))):.4f}")  # fmt: skip

# %%
# Missing parts
# -------------
#
# The first guess is the mean of the training images. Only the missing pixels are ever replaced.

filled = np.where(is_missing, train.mean(axis=0), clean)
guess = filled.copy()
for _ in range(10):
    back = model.inverse_transform(model.transform(filled))
    filled = np.where(is_missing, back, clean)
print(f"error of a missing pixel: mean image {np.mean((guess - clean)[:, is_missing] ** 2):.4f}, "
      f"autoencoder {np.mean((filled - clean)[:, is_missing] ** 2):.4f}")  # fmt: skip

fig, axes = plt.subplots(5, 8, figsize=(9, 6), layout="constrained")
rows = {"clean": clean, "noisy": noisy, "denoised": denoised, "half": np.where(is_missing, 0, clean), "filled": filled}
for line, (name, images) in zip(axes, rows.items(), strict=True):
    for ax, image in zip(line, images, strict=False):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set_xticks([])
        ax.set_yticks([])
    line[0].set_ylabel(name)
plt.show()
