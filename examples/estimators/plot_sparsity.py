"""
Sparsity and accuracy of ε-insensitive losses
=============================================

How many samples an ε-insensitive loss leaves out of the model, and what that costs.

The ε-insensitive losses ignore residuals shorter than epsilon. Samples with such residuals have zero dual variables and
are not needed for prediction. A larger epsilon therefore gives a smaller model; its effect on the error depends on
``lam``.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import OperatorKernelRegressor
from fenchel.datasets import make_multioutput
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge

data = make_multioutput(600, noise=0.2, random_state=0)
X, Y = data.X[:300], data.Y[:300]
X_test, truth = data.X[300:], data.truth[300:]
print(f"norm of the noise, median over the samples: {np.median(np.linalg.norm(data.Y - data.truth, axis=1)):.2f}")

# %%
# Nine values of epsilon, two of lam
# ----------------------------------
#
# The test error is the mean squared distance to the noise-free outputs.

epsilons = np.linspace(0, 0.8, 9)
results = {}
for lam in (1e-3, 1e-6):
    rows = []
    for epsilon in epsilons:
        model = OperatorKernelRegressor(Gaussian(1.0), loss=EpsilonRidge(epsilon), lam=lam).fit(X, Y)
        error = np.mean(np.sum((model.predict(X_test) - truth) ** 2, axis=1))
        rows.append((model.sparsity_, error))
        print(
            f"lam {lam:g}, epsilon {epsilon:.1f}: sparsity {model.sparsity_:4.0%}, "
            f"{len(model.support_):3} samples kept, test error {error:.4f}, gap {abs(model.duality_gap_):.0e}"
        )
    results[lam] = np.array(rows)

# %%
# Sparsity sets in as epsilon approaches the norm of the noise. With the larger ``lam``, every epsilon above zero
# costs accuracy, little at first. With the smaller one, which is far too small for these data, epsilon takes over some
# of the regularisation: the error falls before it rises, though not to the level of the larger ``lam``.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for lam, rows in results.items():
    left.plot(epsilons, rows[:, 0], "o-", label=f"lam = {lam:g}")
    right.plot(epsilons, rows[:, 1], "o-")
left.set(title="Sparsity", xlabel="epsilon", ylabel="sparsity_", ylim=(0, 1))
right.set(title="Test error", xlabel="epsilon", ylabel="mean squared test error", yscale="log")
left.legend()
plt.show()
