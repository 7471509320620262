"""
Custom losses
=============

How to add a loss of your own in one class.

A loss is one class with three methods. This one estimates conditional quantiles; the page *Add a loss* explains it line
by line.
"""

import matplotlib.pyplot as plt
import numpy as np
from array_api_compat import array_namespace

from fenchel import OperatorKernelRegressor
from fenchel.kernels import Gaussian
from fenchel.losses import Loss
from fenchel.testing import check_loss


class Quantile(Loss):
    r"""Quantile loss, summed over the outputs.

    .. math:: \ell(r) = \sum_j \max\bigl(\tau r_j, (\tau - 1) r_j\bigr), \qquad
        \ell^*(a) = \chi_{\tau - 1 \le a_j \le \tau} .

    Parameters
    ----------
    level : float, default=0.5
        The quantile :math:`\tau`, in (0, 1).
    """

    def __init__(self, level=0.5):
        self.level = level

    def value(self, residuals):
        xp = array_namespace(residuals)
        return xp.sum(xp.maximum(self.level * residuals, (self.level - 1) * residuals), axis=1)

    def conjugate(self, duals):
        xp = array_namespace(duals)
        share = self.saturation(duals)
        round_off = 16 * xp.finfo(duals.dtype).eps
        return xp.where(share <= 1 + round_off, xp.zeros_like(share), xp.inf)

    def prox_conjugate(self, duals, step):
        return array_namespace(duals).clip(duals, self.level - 1, self.level)

    def saturation(self, duals):
        xp = array_namespace(duals)
        return xp.max(xp.maximum(duals / self.level, duals / (self.level - 1)), axis=1)

    @classmethod
    def examples(cls):
        return [cls(), cls(level=0.1)]


# %%
# Check
# -----
#
# :func:`fenchel.testing.check_loss` checks the methods against each other.

for loss in Quantile.examples():
    check_loss(loss)
print("the contract holds")

# %%
# Use
# ---
#
# Pass an instance as the loss. The fit is certified like any other.

rng = np.random.default_rng(0)
X = rng.uniform(0, 4, (400, 1))
y = np.sin(2 * X[:, 0]) + (0.1 + 0.2 * X[:, 0]) * rng.standard_normal(400)
line = np.linspace(0, 4, 200)[:, None]

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.scatter(X, y, s=8, color="0.6")
for level in (0.1, 0.5, 0.9):
    model = OperatorKernelRegressor(Gaussian(1.0), loss=Quantile(level), lam=1e-3).fit(X, y)
    below = np.mean(y < model.predict(X))
    print(f"level {level}: {below:.0%} of the outputs lie below, relative gap {model.duality_gap_:.1e}")
    ax.plot(line, model.predict(line), label=f"level {level}")
ax.set(title="Three quantiles", xlabel="input", ylabel="output")
ax.legend()
plt.show()
