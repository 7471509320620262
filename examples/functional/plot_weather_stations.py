"""
Weather stations: place and curve
=================================

How to predict from a curve, some numbers and a category of each sample.

Each of 150 simulated stations has a curve of temperatures over the year, a place and a region. The rain of a year
depends on how much warmer summers are than winters, on the distance from the sea, and on the region. Parts are passed
by name, and the search finds how much each of them matters.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import OperatorKernelRegressorCV

rng = np.random.default_rng(0)
n, day = 150, np.linspace(0, 1, 73)
latitude, sea = rng.uniform(36, 44, n), rng.exponential(100, n)
region = rng.choice(["west", "south", "east"], n)
swing = 6 + 0.03 * sea + rng.standard_normal(n)
temperature = 30 - 0.4 * latitude[:, None] - swing[:, None] * np.cos(2 * np.pi * (day - 0.05))
temperature += rng.standard_normal((n, 73))
rain = 800 * np.exp(-sea / 150) - 30 * swing + 200 * (region == "west") + 40 * rng.standard_normal(n)

parts = {"temperature": temperature[:, :, None], "place": np.column_stack([latitude, sea]), "region": region}
train, test = np.arange(90), np.arange(90, n)


def rows(names, index):
    """Return some samples of some parts."""
    return {name: parts[name][index] for name in names}


# %%
# All parts and single ones
# -------------------------

choices = [["temperature"], ["place"], list(parts)]
scores = {}
for names in choices:
    model = OperatorKernelRegressorCV().fit(rows(names, train), rain[train])
    scores["\n".join(names)] = model.score(rows(names, test), rain[test])
print({names.replace("\n", ", "): round(score, 2) for names, score in scores.items()})

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].bar(list(scores), list(scores.values()), color=["C0", "C0", "C1"])
axes[0].set(ylabel="R² of 60 other stations", title="Inputs")

# %%
# What was tried
# --------------
#
# ``search_`` lists the kernels that were compared, with the weights of the parts.

best = int(np.argmin(model.search_["error"]))
print({name: values[best] for name, values in model.search_.items()})
axes[1].scatter(rain[test], model.predict(rows(list(parts), test)), s=12)
axes[1].axline((400, 400), slope=1, color="0.7", zorder=0)
axes[1].set(xlabel="rain (mm)", ylabel="prediction from all parts (mm)", title="Other stations")
