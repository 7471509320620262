"""Draw curves.png, the picture of the README: python docs/_static/curves.py."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from fenchel import FunctionalRegressor
from fenchel.datasets import contaminate, make_functional
from fenchel.losses import Huber

train, test = make_functional(100, 50, random_state=0), make_functional(100, 50, random_state=1)
wrong = contaminate(train.Y, "global", 0.1, intensity=4.0, random_state=0)
robust = FunctionalRegressor(loss=Huber(0.1), lam=1e-6).fit(train.X, wrong.Y)
square = FunctionalRegressor(lam=1e-6).fit(train.X, wrong.Y)

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
left.plot(train.t, wrong.Y[~wrong.is_outlier].T, color="C0", alpha=0.15, linewidth=0.8)
left.plot(train.t, wrong.Y[wrong.is_outlier].T, color="C3", alpha=0.7, linewidth=0.8)
left.set(title="Training curves, a tenth of them wrong", xlabel="t", ylabel="y(t)")
for sample, color in zip((0, 2, 5), ("C0", "C1", "C2"), strict=True):
    middle.plot(train.t, test.truth[sample], color=color, linewidth=3, alpha=0.4)
    middle.plot(train.t, robust.predict(test.X[[sample]])[0], color=color)
    middle.plot(train.t, square.predict(test.X[[sample]])[0], color="0.4", linestyle=":")
middle.plot([], [], color="0.6", linewidth=3, label="truth")
middle.plot([], [], color="0.3", label="Huber loss")
middle.plot([], [], color="0.4", linestyle=":", label="square loss")
middle.legend(frameon=False, fontsize=8)
middle.set(title="New curves, predicted", xlabel="t")
order = np.argsort(robust.outlier_score_)
colors = np.where(wrong.is_outlier[order], "C3", "C0")
right.scatter(np.arange(100), robust.outlier_score_[order], c=colors, s=9)
right.set(title="Which curves were wrong (in red)", xlabel="curves, sorted", ylabel="dual norm over its bound")
fig.suptitle(f"Certified duality gap {robust.duality_gap_:.0e}", fontsize=9, x=0.99, ha="right")
fig.savefig(Path(__file__).with_suffix(".png"), dpi=110)
