"""
A rollout that stays on the attractor
=====================================

How to choose a map of states for many steps instead of one.

The Kuramoto–Sivashinsky equation is chaotic: a small difference of two states grows until they have nothing in common.
A learned map can therefore follow a solution for some time only, but its predictions may look like solutions for ever.
A map that is accurate for one step need not do so: it may amplify what no state has, such as its own errors.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import FieldRegressor

# %%
# States on a circle of length 22, half a unit of time apart, after the start is forgotten. Models learn from 40 pairs.

waves = 2 * np.pi * np.arange(13) / 22


def later(state, duration=0.5, n_steps=50):
    step, spectrum = duration / n_steps, np.fft.rfft(state)
    for _ in range(n_steps):
        square = np.fft.rfft(np.fft.irfft(spectrum, 24) ** 2) * (np.arange(13) <= 8)
        spectrum = np.exp((waves**2 - waves**4) * step) * (spectrum - 0.5j * step * waves * square)
    return np.fft.irfft(spectrum, 24)


start = np.cumsum(np.random.default_rng(0).standard_normal((48, 24)), axis=1) % 1
states = [later(start, 100, 10_000)]
for _ in range(60):
    states.append(later(states[-1]))
states = np.stack(states, axis=1)  # (48, 61, 24)
X, Y, new = states[:40, 0], states[:40, 1], states[40:]

# %%
# ``steps=10`` compares maps by ten predictions from predictions of held-out states. For pairs that follow each other,
# as in ``fit(path[:-1], path[1:])``, that is the default. A path is lost at the first step with a relative error of .5.
# A warning tells that the second model leaves the data.

models = {
    "steps=10": FieldRegressor(steps=10),
    "steps=1": FieldRegressor(steps=1),
    "whole fields": FieldRegressor(local=False),
}
size, paths = np.sqrt(np.mean(new**2)), {"equation": new[:, 1:]}
for name, model in models.items():
    paths[name] = model.fit(X, Y).rollout(new[:, 0], 60)
    errors = np.sqrt(np.mean((paths[name] - paths["equation"]) ** 2, axis=2)) / size
    lost = np.argmax(np.hstack([errors, np.full((8, 1), np.inf)]) > 0.5, axis=1) + 1
    print(f"{name}: error of one step {100 * np.mean(errors[:, 0]):.2f} %, lost after {np.median(lost):.0f} steps,")
    print(f"    largest value {np.max(np.abs(paths[name])):.1f} of {np.max(np.abs(new)):.1f}; {model.neighbourhood_}")

# %%
# The map that was chosen for rollouts has the larger error after one step, and its path looks like one of the equation.

fig, axes = plt.subplots(len(paths), sharex=True, figsize=(8, 6), layout="constrained")
for ax, (name, path) in zip(axes, paths.items(), strict=True):
    ax.imshow(path[0].T, vmin=-3, vmax=3, cmap="RdBu", origin="lower", aspect="auto", extent=(0, 30, 0, 22))
    ax.set(title=name, ylabel="position")
axes[-1].set_xlabel("time")
plt.show()
