"""
Ambiguous outputs and pre-images
================================

How to predict one of two possible answers instead of their mean.

If an input has two possible outputs, their mean is neither of them. With a Gaussian output kernel the decoder searches
for the vector whose image is nearest to the prediction, and finds one of the two. The nearest training output still has
its noise; ``Preimage`` searches among all vectors.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import StructuredPredictor
from fenchel.decoders import Clamp
from fenchel.kernels import Gaussian

# %%
# Data
# ----
#
# The outputs are noisy points in the plane on one of two branches, two times in three the upper one. The input
# determines the position along the branch, but not the branch.


def branch(X, side):
    """Return the points of the upper (1) or the lower (-1) branch."""
    return np.hstack([np.cos(np.pi * X), side * (0.6 + 0.4 * np.sin(np.pi * X))])


rng = np.random.default_rng(0)
X = rng.uniform(size=(300, 1))
side = np.where(rng.uniform(size=(300, 1)) < 0.65, 1, -1)
Y = branch(X, side) + 0.15 * rng.standard_normal((300, 2))
X_test = np.linspace(0.02, 0.98, 60)[:, None]
branches = np.array([branch(X_test, 1), branch(X_test, -1)])

# %%
# Three decoders
# --------------
#
# The linear output kernel predicts the mean, which ``Clamp`` with wide bounds does not change. The other two models are
# the same fit with two decoders.

settings = {"kernel": Gaussian(10.0), "lam": 1e-3}
models = {
    "linear kernel": StructuredPredictor(**settings, decoder=Clamp(-5.0, 5.0)),
    "training set": StructuredPredictor(**settings, output_kernel=Gaussian(3.0), decoder="training_set"),
    "pre-image": StructuredPredictor(**settings, output_kernel=Gaussian(3.0), decoder="preimage"),
}
found = {}
for name, model in models.items():
    found[name] = model.fit(X, Y).predict(X_test)
    errors = np.min(np.linalg.norm(found[name] - branches, axis=2), axis=0)
    print(f"{name:14} distance to the nearer branch: mean {errors.mean():.3f}, largest {errors.max():.3f}")

# %%
# The mean lies between the branches. The nearest training outputs lie on the upper branch up to their noise. The
# pre-images are closer to it, since they need not be training outputs.

fig, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", sharex=True, sharey=True)
for ax, (name, points) in zip(axes, found.items(), strict=True):
    ax.plot(*Y.T, ".", color="0.8", label="training outputs")
    for one in branches:
        ax.plot(*one.T, "k--", lw=1)
    ax.plot(*points.T, ".", color="tab:red", label="predictions")
    ax.set(title=name, xlabel="first output")
axes[0].set_ylabel("second output")
axes[-1].legend(loc="center")
plt.show()

# %%
# Width of the output kernel
# --------------------------
#
# A wide kernel does not separate the branches: its pre-images are close to those of the linear kernel. A narrow one
# combines few training outputs at a time, and the error grows again.

for gamma in (0.1, 1.0, 3.0, 10.0):
    model = StructuredPredictor(**settings, output_kernel=Gaussian(gamma), decoder="preimage").fit(X, Y)
    errors = np.min(np.linalg.norm(model.predict(X_test) - branches, axis=2), axis=0)
    print(f"gamma {gamma:5}: mean distance {errors.mean():.3f}, {model.dual_coef_.shape[1]} coordinates")
