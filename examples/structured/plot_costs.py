"""
Decisions with costs
====================

How to make the decisions with the smallest expected cost, including the decision to ask an expert.

A task loss is the cost of a decision. With the loss trick the decisions need not be the classes: asking a doctor can be
one of them. The data are scikit-learn's diabetes records; patients with a disease progression above 150 count as ill.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from fenchel import LossTrickPredictor
from fenchel.kernels import Gaussian
from fenchel.task_losses import LossMatrix, ZeroOne

# %%
# Three sets of costs
# -------------------
#
# Rows are decisions, columns are classes. Missing an illness costs five times as much as a false alarm; in the third
# case it is also possible to ask, for less than half the cost of a false alarm.

data = load_diabetes()
labels = np.where(data.target > 150, "ill", "well")
X, X_test, y, y_test = train_test_split(data.data, labels, test_size=0.5, random_state=0)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

costs = LossMatrix([[0, 1], [5, 0], [0.4, 0.4]], classes=["ill", "well"], decisions=["ill", "well", "ask"])
losses = {
    "zero-one": ZeroOne(),
    "5 : 1": LossMatrix([[0, 1], [5, 0]], classes=["ill", "well"]),
    "5 : 1, may ask": costs,
}

# %%
# The weights of the training patients do not depend on the costs; only the decoder differs, and with it the ``lam``
# that cross-validation chooses.

counts = {}
for name, loss in losses.items():
    model = LossTrickPredictor(Gaussian(0.01), loss, lams=np.logspace(-5, 0, 11)).fit(X, y)
    found = model.predict(X_test)
    counts[name] = {
        "missed": int(np.sum((found == "well") & (y_test == "ill"))),
        "false alarms": int(np.sum((found == "ill") & (y_test == "well"))),
        "asked": int(np.sum(found == "ask")),
    }
    print(f"{name:15} lam {model.lam_:.0e}: {counts[name]}, mean cost {np.mean(costs(y_test, found)):.2f}")

# %%
# Decisions
# ---------

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for k, kind in enumerate(("missed", "false alarms", "asked")):
    bars = ax.bar(np.arange(3) + 0.27 * (k - 1), [counts[name][kind] for name in losses], 0.25, label=kind)
    ax.bar_label(bars)
ax.set_xticks(range(3), losses)
ax.set(ylabel=f"of {len(y_test)} test samples", title="decisions under three sets of costs")
ax.legend()
plt.show()
