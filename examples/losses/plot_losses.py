"""
Losses and their conjugates
===========================

How the conjugate of a loss shows whether a model is sparse or robust.

A loss enters the dual problem through its Fenchel conjugate: a corner at zero makes the model sparse, a bounded domain
makes it robust.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel.losses import (
    Ball,
    EpsilonRidge,
    EpsilonSVR,
    Exponential,
    Huber,
    MaxMargin,
    Norm,
    NormLog,
    Power,
    Square,
)

residuals = np.linspace(-3, 3, 601)[:, None]
duals = np.linspace(-2.5, 2.5, 501)[:, None]

# %%
# Sparse and robust losses in one dimension
# -----------------------------------------
#
# Residuals and duals are rows, here with one entry each. The value is infinite beyond the end of a curve.


def draw(losses):
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for loss in losses:
        left.plot(residuals, loss.value(residuals), label=repr(loss))
        conjugate = loss.conjugate(duals)
        right.plot(duals, np.where(np.isfinite(conjugate), conjugate, np.nan))
    left.set(xlabel="residual", title="loss", ylim=(-0.5, 4.5))
    right.set(xlabel="dual variable", title="conjugate", ylim=(-0.1, 3.5))
    left.legend(fontsize="small")


draw([Square(), Huber(0.8), EpsilonRidge(0.5), EpsilonSVR(0.5)])

# %%
# ``EpsilonRidge`` and ``EpsilonSVR`` are zero up to epsilon; their conjugates have a corner at zero. ``Huber`` and
# ``EpsilonSVR`` grow linearly; the domain of their conjugates is bounded, and so is the influence of each sample.
#
# The losses of Proposition 1 of [Laforgue2020]_
# ----------------------------------------------

draw([Norm(0.8), Power(3.0), Exponential(0.5), NormLog(0.8), Ball(0.7)])

# %%
# ``NormLog`` is the convex envelope of t log t, constant up to 1/e. ``Ball`` is a constraint: zero inside, infinite
# outside.
#
# ``MaxMargin`` depends on the inner product of prediction and target, so it needs the targets. Estimators bind the
# targets; outside an estimator, call ``bind``. With the target 1 it is the hinge loss.

hinge = MaxMargin().bind(np.ones_like(residuals))
print(hinge.value(residuals)[[0, 300, 400, 600]])  # at the residuals -3, 0, 1, 3

# %%
# Conjugate as a supremum
# -----------------------
#
# By definition the conjugate at a is the supremum of a r - loss(r) over r. Computed on a fine grid, it agrees with the
# formula up to the spacing of the grid.

grid = np.linspace(-10, 10, 40001)[:, None]
chosen = [
    Square(),
    Huber(0.8),
    EpsilonRidge(0.5),
    EpsilonSVR(0.5),
    Norm(0.8),
    Power(3.0),
    Exponential(0.5),
    NormLog(0.8),
]
for loss in chosen:
    inside = duals[np.isfinite(loss.conjugate(duals))]
    searched = np.array([np.max(a * grid[:, 0] - loss.value(grid)) for a in inside[:, 0]])
    print(f"{loss!r:28} largest difference {np.max(np.abs(searched - loss.conjugate(inside))):.1e}")

# %%
# Two dimensions: the order of the norm
# -------------------------------------
#
# The level lines of the Huber loss for three orders p, and the ball inside which it is half the square (dashed).

axis = np.linspace(-3, 3, 121)
points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
fig, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
for ax, p in zip(axes, (1, 2, np.inf), strict=True):
    loss = Huber(1.0, p=p)
    values = loss.value(points).reshape(121, 121)
    clipped = loss.saturation(points).reshape(121, 121, -1).max(axis=2)
    ax.contour(axis, axis, values, levels=np.arange(0.25, 4, 0.5))
    ax.contour(axis, axis, clipped, levels=[1.0], colors="k", linestyles="dashed")
    ax.set(title=f"Huber, p = {p}", xlabel="first residual", ylabel="second residual", aspect="equal")
plt.show()
