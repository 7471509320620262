"""
Burgers' equation from 150 solutions
====================================

How to learn the solution operator of a differential equation from a few solutions.

The model maps an initial state to the state at time 1. Its kernel is equivariant, because a shifted state has a shifted
solution, and its frequency weights are learned. A plain kernel has a much larger error on the same solutions.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import OperatorKernelRegressor, learn_frequencies
from fenchel.datasets import make_burgers
from fenchel.kernels import Equivariant, Matern

# %%
# The states are functions on 64 points of a circle.

data = make_burgers(250, n_points=64)
X, Y, X_new, Y_new = data.X[:150], data.Y[:150], data.X[150:], data.Y[150:]

# %%
# Three models are compared. The weights of the last one are learned with the gradient of the leave-one-out error.

found = learn_frequencies(X, Y, n_frequencies=24, max_iter=40)
models = {
    "plain kernel": OperatorKernelRegressor(Matern(5.0, nu=2.5), loss="square", lam=1e-9),
    "with the symmetry": OperatorKernelRegressor(Equivariant(Matern(5.0, nu=2.5), 24), loss="square", lam=1e-9),
    "and learned frequencies": OperatorKernelRegressor(found.kernel, loss="square", lam=found.lam),
}
predictions = {name: model.fit(X, Y).predict(X_new) for name, model in models.items()}
for name, predicted in predictions.items():
    errors = np.linalg.norm(predicted - Y_new, axis=1) / np.linalg.norm(Y_new, axis=1)
    print(f"{name:25s} relative error {100 * errors.mean():.2f} %, gap {models[name].duality_gap_:.0e}")

# %%
# Left: the new state with the median error, its solution and the predictions. Right: the errors over the circle, for
# all new states.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
sample = int(np.argsort(errors)[len(errors) // 2])
left.plot(data.grid, X_new[sample], color="0.7", label="initial state")
left.plot(data.grid, Y_new[sample], color="black", linewidth=3, label="state at time 1")
for (name, predicted), color in zip(predictions.items(), ("C1", "C2", "C0"), strict=True):
    left.plot(data.grid, predicted[sample], color=color, label=name)
    right.semilogy(data.grid, np.abs(predicted - Y_new).mean(axis=0), color=color, label=name)
left.set(title="A new initial state and its future", xlabel="x", ylabel="u")
left.legend(frameon=False, fontsize=8)
right.set(title="Mean absolute error at each point", xlabel="x", ylabel="error")
right.legend(frameon=False, fontsize=8)
plt.show()

# %%
# The learned weights: low frequencies count most, and frequencies beyond the twelfth hardly count at all.

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.semilogy(found.weights / found.weights.max(), "o-", markersize=4)
ax.set(title="What the kernel looks at", xlabel="frequency of the input", ylabel="relative weight")
plt.show()
