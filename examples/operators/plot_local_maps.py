"""
A local law from forty pairs of fields
======================================

How to learn a map of fields in which each point depends on what is around it, and to iterate it.

In a mixture of two phases, the state at a point changes with the states next to it, and in the same way everywhere.
``FieldRegressor()`` finds that out: positions become samples, so that forty pairs of fields are forty thousand samples.
A regression between whole fields has to learn the same law at every point anew.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import FieldRegressor

# %%
# The Allen–Cahn equation on a torus of 24 × 24 points. Inputs are states, outputs the states a little later.


def later(state, duration=0.5, steps=10):
    for _ in range(steps):
        around = sum(np.roll(state, step, axis) for axis in (1, 2) for step in (-1, 1))
        state = state + duration / steps * (0.5 * (around - 4 * state) + state - state**3)
    return state


X = later(np.random.default_rng(0).standard_normal((44, 24, 24)))
for k in range(44):
    X[k : k + 1] = later(X[k : k + 1], 0.2 * (k % 11), 50)  # of several ages
Y = later(X)
train, new = slice(0, 40), slice(40, 44)

# %%
# Both models have no arguments to set; the second one is told to look at whole fields only.

models = {"local": FieldRegressor(), "whole fields": FieldRegressor(local=False)}
for name, model in models.items():
    predicted = model.fit(X[train], Y[train]).predict(X[new])
    error = np.linalg.norm(predicted - Y[new]) / np.linalg.norm(Y[new])
    print(f"{name}: relative error {100 * error:.2f} %, gap {model.estimator_.duality_gap_:.0e}")
    print(model.neighbourhood_)

# %%
# Predictions from predictions: ``rollout`` iterates the map. Top: the equation. Bottom: the model.

steps = 20
states, truth = models["local"].rollout(X[new][:1], steps)[0], [X[new][:1]]
for _ in range(steps):
    truth.append(later(truth[-1]))
shown = (1, 5, 10, 20)
fig, axes = plt.subplots(2, len(shown), figsize=(9, 4.8), layout="constrained")
for column, step in zip(axes.T, shown, strict=True):
    for ax, field in zip(column, (truth[step][0], states[step - 1]), strict=True):
        ax.imshow(field, vmin=-1, vmax=1, cmap="RdBu")
        ax.set(xticks=[], yticks=[])
    column[0].set_title(f"step {step}", fontsize="medium")
    difference = np.linalg.norm(truth[step][0] - states[step - 1]) / np.linalg.norm(truth[step][0])
    column[1].set_title(f"error {100 * difference:.1f} %", fontsize="medium")
plt.show()
