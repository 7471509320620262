"""
Darcy flow with the symmetries of the square
============================================

How to build the symmetries of a square into a kernel for fields.

The model maps the coefficient of a porous square, which has two values, to the pressure of a fluid in it. If the
coefficient is rotated or flipped, so is the pressure. A kernel with this symmetry learns as much from one pair as
another kernel from all eight images of it.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import FieldRegressor, OperatorKernelRegressor
from fenchel.datasets import make_darcy
from fenchel.kernels import Matern, SquareEquivariant

# %%
# The fields have 15 × 15 points. The two values of the coefficient are scaled to ±1.

data = make_darcy(160, n_points=15, refinement=4)
X, Y = (data.X - 7.5) / 4.5, data.Y
train, new = slice(0, 100), slice(100, 160)

# %%
# The first model uses principal components of inputs and outputs, as is usual; the second uses the symmetries, on the
# values themselves. Widths are relative to the sample. Both are kernel ridge regressions with a certified gap.

models = {
    "principal components": FieldRegressor(OperatorKernelRegressor(Matern(2.0, nu=2.5), lam=1e-8), input_components=50),
    "symmetries of the square": FieldRegressor(
        OperatorKernelRegressor(SquareEquivariant(Matern(2.0, nu=2.5)), lam=1e-8), "points", output_basis="points"
    ),
}
predictions = {name: model.fit(X[train], Y[train]).predict(X[new]) for name, model in models.items()}
for name, predicted in predictions.items():
    errors = np.linalg.norm(predicted - Y[new], axis=(1, 2)) / np.linalg.norm(Y[new], axis=(1, 2))
    print(f"{name:25s} relative error {100 * errors.mean():.1f} %, gap {models[name].estimator_.duality_gap_:.0e}")

# %%
# The new coefficient with the median error, its pressure, the prediction with the symmetries, and the errors of both
# models.

sample = int(np.argsort(errors)[len(errors) // 2])
panels = {"coefficient": data.X[new][sample], "pressure": Y[new][sample], "prediction": predicted[sample]}
panels |= {f"error, {name}": predicted[sample] - Y[new][sample] for name, predicted in predictions.items()}
largest = max(np.abs(field).max() for name, field in panels.items() if name.startswith("error"))
fig, axes = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
axes[1, 2].set_axis_off()
for ax, (name, field) in zip(axes.flat, panels.items(), strict=False):
    limits = {"vmin": -largest, "vmax": largest, "cmap": "RdBu"} if name.startswith("error") else {}
    fig.colorbar(ax.imshow(field, origin="lower", **limits), ax=ax, shrink=0.8)
    ax.set_title(name, fontsize="medium")
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# A rotated coefficient gives the rotated pressure, up to round-off. Outputs may have gaps: here 30 % of the values of
# the training pressures are missing.

model = models["symmetries of the square"]
turned = model.predict(np.rot90(X[new], axes=(1, 2)))
print(f"largest difference {np.abs(turned - np.rot90(model.predict(X[new]), axes=(1, 2))).max():.0e}")
holes = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, np.nan, Y)
predicted = model.fit(X[train], holes[train]).predict(X[new])
errors = np.linalg.norm(predicted - Y[new], axis=(1, 2)) / np.linalg.norm(Y[new], axis=(1, 2))
print(f"with gaps                 relative error {100 * errors.mean():.1f} %")
