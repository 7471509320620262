"""
One classifier for every cost
=============================

How to fit one classifier and choose the cost of an error afterwards.

The cost of a missed positive relative to a false alarm is often unknown when the model is fitted.
``CostSensitiveClassifier`` learns the support vector machines of all costs at once; the cost is chosen afterwards.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import CostSensitiveClassifier
from fenchel.kernels import Gaussian

rng = np.random.default_rng(0)
X = rng.standard_normal((600, 2))
y = (np.hypot(*X.T) + 0.4 * rng.standard_normal(600) < 1).astype(int)
X, X_test, y, y_test = X[:200], X[200:], y[:200], y[200:]

model = CostSensitiveClassifier(Gaussian(0.5), lam=1e-3, levels=15).fit(X, y)
print(f"relative gap {model.duality_gap_:.0e}")

# %%
# Cost as an argument of ``predict``
# ----------------------------------
#
# With a cost of 0.9 a missed positive is nine times as bad as a false alarm.

for cost in (0.1, 0.5, 0.9):
    print(f"cost {cost}: {np.mean(model.predict(X_test, cost)):.0%} of the test samples are called positive")

# %%
# Rates and costs
# ---------------
#
# False and true positive rates as functions of the cost give a ROC curve. Each of its points is a separate optimum, not
# a shifted threshold.

curve = model.cost_curve(X_test, y_test)
share = y_test.mean()
fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
axes[0].plot(curve.false_positive_rate, curve.true_positive_rate, ".-")
axes[0].set(title="ROC curve", xlabel="false positive rate", ylabel="true positive rate")
axes[1].plot(curve.costs, curve.expected_cost, label="model")
axes[1].plot(
    curve.costs, np.minimum(curve.costs * share, (1 - curve.costs) * (1 - share)), "--", label="constant answer"
)
axes[1].set(title="Expected cost", xlabel="cost of a missed positive", ylabel="expected cost")
axes[1].legend()
side = np.linspace(-2.5, 2.5, 80)
points = np.stack(np.meshgrid(side, side), axis=-1)
axes[2].scatter(*X[y == 0].T, s=6, color="0.75")
axes[2].scatter(*X[y == 1].T, s=6, color="0.25", label="positive")
for cost, color in ((0.3, "C2"), (0.5, "C0"), (0.9, "C3")):
    values = model.decision_function(points.reshape(-1, 2), cost).reshape(80, 80)
    axes[2].contour(side, side, values, levels=[0], colors=color)
    axes[2].plot([], [], color=color, label=f"cost {cost}")
axes[2].set(title="Boundaries at three costs", xlabel="first input", ylabel="second input")
axes[2].legend(fontsize="small", frameon=True, loc="lower right")
plt.show()
