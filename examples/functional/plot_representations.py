"""
Representations of curves
=========================

Which representation of curves to use, and how to see what it loses.

A fit works on coordinates of the curves: point values (``"spline"``), coefficients on the leading eigenfunctions of the
output operator (``"eigen"``), or on a trigonometric basis (``"fourier"``). The duality gap certifies the problem in
coordinates. ``representation_error_`` is the part of the curves that the coordinates lose; check both.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from fenchel import FunctionalRegressor
from fenchel.datasets import make_functional
from fenchel.exceptions import ScaleWarning
from fenchel.kernels import Gaussian
from fenchel.losses import Huber
from fenchel.metrics import curve_errors
from fenchel.report.figures import plot_curves, title_above
from fenchel.representations import Basis

warnings.simplefilter("ignore", ScaleWarning)  # with two coordinates most of each curve is lost, and clipped

train = make_functional(150, 200, noise=0.05, random_state=0)
test = make_functional(300, 200, random_state=1)


def run(name, **settings):
    """Fit, print a line, return the model."""
    model = FunctionalRegressor(loss=Huber(0.05), lam=1e-5, **settings).fit(train.X, train.Y)
    error = np.mean(curve_errors(test.truth, model.predict(test.X)))
    lost = model.representation_error_
    count, gap = model.dual_coef_.shape[1], abs(model.duality_gap_)
    print(f"{name:22} {count:3} coordinates, lost {lost:6.2%}, test error {error:.4f}, relative gap {gap:.0e}")
    return model, lost, error


# %%
# Point values
# ------------
#
# The coordinates are the values at the 200 points. Nothing is lost, gaps are allowed, and every loss can be used:
# losses with p other than 2 need point values.

kernel = Gaussian(50.0)
_ = run("spline", output_kernel=kernel)

# %%
# Eigenfunctions
# --------------
#
# A smooth output kernel has few large eigenvalues. The fit has one coordinate for each of them, and the operator is
# diagonal.

sizes = (2, 5, 10, 15, 20, 30)
eigen = [run(f"eigen, {k} components", output_kernel=kernel, representation="eigen", n_components=k) for k in sizes]

# %%
# Fifteen coordinates are as good as all points. A number below 1 is a share of the operator's trace; the share of the
# curves that is lost may be larger.

_ = run("eigen, 99 %", output_kernel=kernel, representation="eigen", n_components=0.99)

# %%
# Trigonometric and custom functions
# ----------------------------------
#
# ``"fourier"`` has its own eigenvalues and needs no output kernel; ``Basis`` takes functions and eigenvalues.
# Trigonometric functions have the same value at both ends of the domain and these curves do not, so more functions are
# needed.

odd_sizes = (3, 5, 11, 15, 21, 31)
fourier = [run(f"fourier, {k} functions", representation="fourier", n_components=k) for k in odd_sizes]


def powers(t):
    """Return the Legendre polynomials up to degree 15, moved to [0, 1]."""
    return np.polynomial.legendre.legvander(2 * t - 1, 15)


_ = run("basis, 16 polynomials", representation=Basis(powers, 1 / np.arange(1, 17.0) ** 2))

# %%
# The gap is below the tolerance in every line, even if a large part of the curves is lost, because it is the gap of the
# problem in coordinates. The error follows the representation error, down to the level of the noise.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, counts, rows in (("eigen", sizes, eigen), ("fourier", odd_sizes, fourier)):
    left.plot(counts, [lost for _, lost, _ in rows], "o-", label=f"{name}: lost")
    left.plot(counts, [error for *_, error in rows], "s--", color=left.lines[-1].get_color(), label=f"{name}: error")
left.set(title="Accuracy and size", xlabel="coordinates", ylabel="share lost, test error", yscale="log")
left.legend()
few = eigen[1][0]
curves = few.predict(test.X[:2])
plot_curves(test.truth[:2], right, predicted=curves, grid=test.t, label="true", predicted_label="predicted")
title_above(right, "Five eigenfunctions")
plt.show()
