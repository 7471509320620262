"""
Positive definite matrices as outputs
=====================================

How to predict matrices that are guaranteed to be positive definite.

A positive definite matrix can be drawn as an ellipse, such as the diffusion of water in tissue. Ridge regression of its
entries predicts ellipses that are too thick, and matrices that may not be positive definite. This example compares
losses for positive definite matrices, one of them robust to wrong readings.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from fenchel import LossTrickPredictor
from fenchel.kernels import Gaussian
from fenchel.task_losses import AffineInvariant, LeastSquares, LogEuclidean

# %%
# Data
# ----
#
# A narrow ellipse turns by a right angle. Each reading is the covariance of twelve draws. In one reading in five the
# sensor has failed and shows a large circle.


def tensor(x):
    """Return the true matrices."""
    turn = np.stack([np.cos(np.pi * x / 2), -np.sin(np.pi * x / 2), np.sin(np.pi * x / 2), np.cos(np.pi * x / 2)], -1)
    turn = turn.reshape(-1, 2, 2)
    return turn @ np.diag([1.0, 0.05]) @ np.swapaxes(turn, 1, 2)


rng = np.random.default_rng(0)
n = 120
x = np.sort(rng.uniform(size=n))
draws = np.linalg.cholesky(tensor(x)) @ rng.standard_normal((n, 2, 12))
Y = draws @ np.swapaxes(draws, 1, 2) / 12
failed = rng.uniform(size=n) < 0.2
Y[failed] = 4.0 * np.eye(2) * rng.uniform(0.8, 1.2, (failed.sum(), 1, 1))

# %%
# Four losses
# -----------
#
# Errors are affine-invariant distances to the truth; 0.7 is a factor of two in one axis.

grid = np.linspace(0.03, 0.97, 15)
losses = {
    "ridge of the entries": LeastSquares("nearest"),
    "log-Euclidean": LogEuclidean(),
    "affine-invariant": AffineInvariant(),
    "affine-invariant, power 1": AffineInvariant(power=1.0),
}
found = {"truth": tensor(grid)}
for name, loss in losses.items():
    outputs = Y.reshape(n, 4) if isinstance(loss, LeastSquares) else Y
    model = LossTrickPredictor(Gaussian(10.0), loss, lams=[1e-3, 1e-2]).fit(x[:, None], outputs)
    found[name] = model.predict(grid[:, None]).reshape(-1, 2, 2)
    errors = AffineInvariant(power=1.0)(tensor(grid), found[name])
    areas = np.sqrt(np.linalg.det(found[name]) / np.linalg.det(tensor(grid)))
    print(f"{name:26} median error {np.median(errors):.2f}, area {np.median(areas):.1f} times the true one")

# %%
# Means of the entries are thick and round, and failed readings make this worse. The squared distances between matrices
# average on the manifold, where failed readings count less, but still count. The median, which minimises the last loss,
# hardly notices them.

fig, axes = plt.subplots(len(found), 1, figsize=(10, 7), layout="constrained", sharex=True, sharey=True)
for ax, (name, matrices) in zip(axes, found.items(), strict=True):
    for place, matrix in zip(grid, matrices, strict=True):
        values, vectors = np.linalg.eigh(matrix)
        width, height = 0.055 * np.sqrt(values)
        angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
        color = "0.4" if name == "truth" else "tab:blue"
        ax.add_patch(Ellipse((place, 0.0), width, height, angle=angle, color=color, alpha=0.8))
    ax.set_title(name, loc="left", fontsize=10)
    ax.set(xlim=(0, 1), ylim=(-0.05, 0.05), aspect="equal", yticks=[])
axes[-1].set_xlabel("x")
plt.show()
