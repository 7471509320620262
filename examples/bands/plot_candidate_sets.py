"""
Prediction sets of structured outputs
=====================================

How to predict a set of label sets that contains the true one with a stated probability.

A conformal prediction set is small where the answer is clear, and large where it is not.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import ConformalPredictor, StructuredPredictor
from fenchel.kernels import Gaussian

rng = np.random.default_rng(0)


def draw(n):
    """Return points of a square, and two noisy labels: right half, upper half."""
    X = rng.uniform(-1, 1, (n, 2))
    return X, (X + 0.25 * rng.standard_normal((n, 2)) > 0).astype(int)


X, Y = draw(400)
X_new, Y_new = draw(1000)

model = ConformalPredictor(StructuredPredictor(Gaussian(1.0), lam=1e-3), coverage=0.9).fit(X, Y)
sets = model.predict_set(X_new)
print(f"{sets.contains(Y_new).mean():.1%} of the true label sets are inside, of {sets.size.mean():.2f} on average")

# %%
# Size of the prediction sets
# ---------------------------
#
# The figure shows the size of the sets over the inputs: one in the corners, two near the edge between two halves, up to
# four in the middle.

fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
points = ax.scatter(*X_new.T, c=sets.size, s=12, cmap="viridis")
fig.colorbar(points, label="label sets inside", ticks=range(1, 5))
ax.set(title="Size of the 90 % set", xlabel="first input", ylabel="second input")
plt.show()
