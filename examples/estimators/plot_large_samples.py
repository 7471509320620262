"""
Large samples
=============

How large samples are fitted without arguments, and how many landmarks an approximate fit needs.

``OperatorKernelRegressorCV()`` takes samples of any size: kernel, loss and penalty are chosen on a part, and the model
is fitted on all. Where an exact fit would take too long, or with ``approximation=Nystrom(D)``, landmarks replace the
kernel; the test error falls with their number until it reaches that of the kernel itself.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from fenchel import OperatorKernelRegressorCV
from fenchel.approximations import Nystrom
from fenchel.report.figures import plot_lines

rng = np.random.default_rng(0)


def truth(X):
    return np.column_stack([np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]), X[:, 0] * X[:, 1]])


# Most inputs lie in a small region, as in many tables; one sample in ten is wrong.
X = np.r_[0.2 * rng.standard_normal((4500, 2)), rng.uniform(-2, 2, (500, 2))]
Y = truth(X) + 0.05 * rng.standard_normal((5000, 2))
wrong = rng.random(5000) < 0.1
Y[wrong] += 5
test = rng.uniform(-2, 2, (1000, 2))


def error(model):
    return np.sqrt(np.mean((model.predict(test) - truth(test)) ** 2))


# %%
# The search sees two thousand samples. The fit of all five thousand is exact, and certified as such.
start = time.process_time()
model = OperatorKernelRegressorCV().fit(X, Y)
seconds = time.process_time() - start
print(f"{model.n_searched_} samples searched, {len(model.dual_coef_)} fitted, {seconds:.1f} s of CPU")
print(f"{model.best_loss_}; {model.certificate_} gap {model.duality_gap_:.0e}; test error {error(model):.3f}")

# %%
# The same kernel, loss and penalty with landmarks. Pivoted ones reach the sparse region sooner than uniform ones. Each
# fit is certified for its own approximate kernel.
sizes = [10, 20, 40, 80, 160]
errors = {"uniform": [], "rpcholesky": []}
for landmarks, found in errors.items():
    for size in sizes:
        thin = clone(model.best_estimator_).set_params(approximation=Nystrom(size, landmarks)).fit(X, Y)
        assert thin.duality_gap_ <= 1e-6
        found.append(error(thin))

# %%
# Left: the first output at the test points, with the dense part of the sample in grey. Right: the test errors.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.scatter(*test.T, c=model.predict(test)[:, 0], s=14, cmap="coolwarm")
left.plot(*X[:4500].T, ".", color="0.3", markersize=1)
left.set(title="The exact fit", xlabel="first input", ylabel="second input")
right.axhline(error(model), color="0.6", linestyle=":", label="exact")
plot_lines(errors, right, x=sizes, x_label="landmarks", y_label="test error")
right.set(title="Test error", yscale="log")
