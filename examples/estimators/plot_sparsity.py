"""
Sparsity: what epsilon buys and what it costs
=============================================

The epsilon losses ignore residuals that are shorter than epsilon. Those samples have a null dual variable and are not
kept for prediction. A larger epsilon gives a smaller model; what it does to the error is another matter.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import OperatorKernelRegressor
from fenchel.data import make_multioutput
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, EpsilonSVR

data = make_multioutput(600, noise=0.2, random_state=0)
X, Y = data.X[:300], data.Y[:300]
X_test, truth = data.X[300:], data.truth[300:]
print(f"norm of the noise, median over the samples: {np.median(np.linalg.norm(data.Y - data.truth, axis=1)):.2f}")

# %%
# Two losses, nine values of epsilon
# ----------------------------------

epsilons = np.linspace(0, 0.8, 9)
results = {}
for kind, lam in ((EpsilonRidge, 1e-3), (EpsilonSVR, 3e-3)):
    rows = []
    for epsilon in epsilons:
        model = OperatorKernelRegressor(Gaussian(1.0), loss=kind(epsilon), lam=lam).fit(X, Y)
        error = np.mean(np.sum((model.predict(X_test) - truth) ** 2, axis=1))
        rows.append((model.sparsity_, error, len(model.support_), model.duality_gap_))
        print(
            f"{kind.__name__:12} epsilon {epsilon:.1f}: sparsity {model.sparsity_:4.0%}, "
            f"{len(model.support_):3} samples kept, test error {error:.4f}, gap {abs(model.duality_gap_):.0e}"
        )
    results[kind.__name__] = np.array(rows)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, rows in results.items():
    left.plot(epsilons, rows[:, 0], "o-", label=name)
    right.plot(epsilons, rows[:, 1], "o-", label=name)
left.set(xlabel="epsilon", ylabel="sparsity_", ylim=(0, 1))
right.set(xlabel="epsilon", ylabel="mean squared test error", yscale="log")
left.legend()
plt.show()
