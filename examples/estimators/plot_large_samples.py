"""
Nyström landmarks for large samples
===================================

How many landmarks a large sample needs, and how to choose them.

With ``approximation=Nystrom(D)`` a fit never computes an n × n matrix. The test error falls with the number of
landmarks until it reaches that of the kernel itself; with pivoted landmarks this takes fewer of them than with uniform
ones.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom
from fenchel.kernels import Gaussian
from fenchel.losses import Huber
from fenchel.report.figures import plot_lines

rng = np.random.default_rng(0)


def truth(X):
    return np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1])


# Most inputs lie in a small region, as in many tables; one output in ten is wrong.
X = np.r_[0.2 * rng.standard_normal((9000, 2)), rng.uniform(-2, 2, (1000, 2))]
y = truth(X) + 0.05 * rng.standard_normal(len(X))
y[rng.random(len(X)) < 0.1] += 5
test = rng.uniform(-2, 2, (1000, 2))

# %%
# The Gram matrix of ten thousand samples and its factorisation would take 5.6 GB. Each fit is certified for its own
# approximate kernel.
sizes = [10, 20, 40, 80, 160]
errors = {}
for landmarks in ("uniform", "rpcholesky"):
    errors[landmarks] = []
    for size in sizes:
        model = OperatorKernelRegressor(
            Gaussian(1.0), loss=Huber(0.1), lam=1e-7, approximation=Nystrom(size, landmarks)
        ).fit(X, y)
        assert model.duality_gap_ <= 1e-6
        errors[landmarks].append(np.sqrt(np.mean((model.predict(test) - truth(test)) ** 2)))

# %%
# Predictions of the last fit at the test points, with the dense part of the sample in grey.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.scatter(*test.T, c=model.predict(test), s=14, cmap="coolwarm")
left.plot(*X[:9000].T, ".", color="0.3", markersize=1)
left.set(title="160 pivoted landmarks", xlabel="first input", ylabel="second input")
plot_lines(errors, right, x=sizes, x_label="landmarks", y_label="test error")
right.set(title="Test error", yscale="log")
