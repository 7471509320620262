"""
Outputs known by a Gram matrix
==============================

How to fit outputs when only their Gram matrix is known.

Outputs need not be vectors: a positive semidefinite Gram matrix of the training outputs is enough. ``GramFactor``
turns it into coordinates, and a prediction is the vector of its inner products with the training outputs. Here the
lower half of a digit is predicted from the upper half, with a Gaussian kernel on each side.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from fenchel import OperatorKernelRegressor
from fenchel.kernels import Gaussian, Linear
from fenchel.losses import Huber
from fenchel.representations import GramFactor

images = load_digits().images / 16
upper, lower = images[:, :4].reshape(-1, 32), images[:, 4:].reshape(-1, 32)
X, Y, X_test, Y_test = upper[:400], lower[:400], upper[400:700], lower[400:700]

# %%
# Linear output kernel
# --------------------
#
# The Gram matrix of vectors of 32 pixels has rank at most 32, so the duals have 32 columns instead of 400. The
# predictions are the inner products of the training outputs with the predictions of a fit to the vectors.

kernel = Gaussian(0.2)
by_vectors = OperatorKernelRegressor(kernel, loss=Huber(0.5)).fit(X, Y)
by_products = OperatorKernelRegressor(kernel, loss=Huber(0.5), representation=GramFactor()).fit(X, Linear()(Y))
difference = by_products.predict(X_test) - by_vectors.predict(X_test) @ Y.T
print(f"duals {by_products.dual_coef_.shape}, largest difference {np.max(np.abs(difference)):.1e}")

# %%
# Gaussian output kernel
# ----------------------
#
# The outputs are now points of a function space. A prediction is decoded to the nearest training output in that space,
# which is the one with the largest inner product, because all of them have norm 1.

output_kernel = Gaussian(0.2)
model = OperatorKernelRegressor(kernel, loss=Huber(0.5), lam=1e-4, representation=GramFactor())
model.fit(X, output_kernel(Y))
products = model.predict(X_test)
print(f"duals {model.dual_coef_.shape}, relative gap {model.duality_gap_:.0e}, products {products.shape}")

# %%
# The mean squared distance to the true lower half, compared with two other predictions. The fit to the vectors has a
# smaller error, as it may predict an average of several lower halves; a decoded prediction is always a lower half from
# the training sample.

found = Y[np.argmax(products, axis=1)]
guesses = {
    "decoded prediction": found,
    "lower half that belongs to the nearest upper half": Y[np.argmax(kernel(X_test, X), axis=1)],
    "fit on the vectors, not decoded": by_vectors.predict(X_test),
}
for name, guess in guesses.items():
    print(f"{name}: {np.mean(np.sum((guess - Y_test) ** 2, axis=1)):.2f}")

# %%
# Ten test digits, and their upper halves with the decoded lower halves.

fig, axes = plt.subplots(2, 10, figsize=(10, 2.4), layout="constrained")
for k, (top, bottom) in enumerate(axes.T):
    top.imshow(np.concatenate([X_test[k], Y_test[k]]).reshape(8, 8), cmap="gray_r")
    bottom.imshow(np.concatenate([X_test[k], found[k]]).reshape(8, 8), cmap="gray_r")
    bottom.axhline(3.5, color="tab:red", lw=1)
    for ax in (top, bottom):
        ax.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("truth")
axes[1, 0].set_ylabel("predicted")
plt.show()
