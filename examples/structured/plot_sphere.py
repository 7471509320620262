"""
Directions with outliers
========================

How to predict directions, which are points on a sphere, when some are wrong.

The usual way is to predict the three coordinates of a unit vector by ridge regression and to divide by the length. The
loss trick searches on the sphere itself, for any loss: the squared angle, the angle, or the diffusion distance, which
is nearly constant for directions that are far apart.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import LossTrickPredictor
from fenchel.kernels import Gaussian
from fenchel.task_losses import LeastSquares, SphereDiffusion, SphereGeodesic

# %%
# Data
# ----
#
# The data are a curve on the sphere with noise of about eight degrees. One reading in four comes from a stuck sensor,
# which shows nearly the same direction for every input.


def unit(vectors):
    """Return vectors divided by their length."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def curve(x):
    """Return the true directions."""
    latitude, longitude = 0.3 + 0.5 * np.sin(2 * np.pi * x), 2.4 * (x - 0.5)
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=-1)


rng = np.random.default_rng(0)
n = 150
x = rng.uniform(size=n)
Y = unit(curve(x) + 0.1 * rng.standard_normal((n, 3)))
stuck = rng.uniform(size=n) < 0.25
Y[stuck] = unit(np.array([0.57, 0.24, -0.78]) + 0.1 * rng.standard_normal((stuck.sum(), 3)))

# %%
# Four losses
# -----------
#
# Least squares of the coordinates is ridge regression. ``lam`` is chosen by cross-validation on each loss, with a
# quarter of the readings wrong.

grid = np.linspace(0.02, 0.98, 120)
losses = {
    "ridge, normalised": LeastSquares("nearest"),
    "squared angle": SphereGeodesic(),
    "angle": SphereGeodesic(power=1.0),
    "diffusion": SphereDiffusion(time=0.05),
}
models, errors = {}, {}
for name, loss in losses.items():
    models[name] = LossTrickPredictor(Gaussian(20.0), loss, lams=[1e-4, 1e-3, 1e-2, 1e-1]).fit(x[:, None], Y)
    found = unit(models[name].predict(grid[:, None]))
    errors[name] = np.degrees(np.arccos(np.clip(np.sum(found * curve(grid), axis=1), -1, 1)))
    print(f"{name:18} lam {models[name].lam_:.0e}, angle to the curve: median {np.median(errors[name]):4.1f} degrees")

# %%
# Means are drawn towards the stuck sensor. The mean for the squared angle, in which distant readings count most, is
# drawn even more than the mean of the coordinates. The median, which minimises the angle itself, is robust. The
# diffusion distance ignores the stuck readings.

sides = np.linspace(0, 2 * np.pi, 61)
heights = np.linspace(0, np.pi, 31)
ball = [
    np.outer(np.cos(sides), np.sin(heights)),
    np.outer(np.sin(sides), np.sin(heights)),
    np.outer(np.ones(61), np.cos(heights)),
]
azimuth = 5.0
towards = np.array([np.cos(np.radians(azimuth)), np.sin(np.radians(azimuth)), 0.0])


def in_front(points):
    """Return the points just above the surface, without those behind the ball."""
    return np.where((points @ towards > -0.05)[:, None], 1.01 * points, np.nan).T


fig, axes = plt.subplots(1, 4, figsize=(14, 4.0), layout="constrained", subplot_kw={"projection": "3d"})
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ax.computed_zorder = False
    ax.plot_surface(*ball, color="0.97", edgecolor="0.85", linewidth=0.2, rstride=4, cstride=3, shade=False)
    ax.scatter(*in_front(Y[~stuck]), s=8, color="0.55", depthshade=False, label="readings")
    ax.scatter(*in_front(Y[stuck]), s=8, color="tab:orange", depthshade=False, label="stuck")
    ax.plot(*in_front(curve(grid)), color="black", linewidth=1.2, label="truth")
    ax.plot(*in_front(unit(model.predict(grid[:, None]))), color="tab:red", linewidth=2.2, label="prediction")
    ax.set_title(f"{name}\n{np.median(errors[name]):.1f} degrees off", fontsize=11, y=0.97)
    ax.view_init(0.0, azimuth)
    ax.set_box_aspect((1, 1, 1), zoom=1.45)
    ax.set_axis_off()
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
plt.show()

# %%
# Weighted losses of one input
# ----------------------------
#
# For one input, the maps show the weighted losses of all directions by longitude and latitude, dark where they are
# smallest. The diffusion distance has two minima, one at the stuck sensor, and the search finds the lower one. The
# squared angle has a single minimum in between.

at = np.array([[0.22]])
longitudes, latitudes = np.meshgrid(np.linspace(-np.pi, np.pi, 181), np.linspace(-np.pi / 2, np.pi / 2, 91))
flat = np.cos(latitudes)
everywhere = np.stack([flat * np.cos(longitudes), flat * np.sin(longitudes), np.sin(latitudes)], axis=-1).reshape(-1, 3)

fig, axes = plt.subplots(1, 2, figsize=(12, 3.6), layout="constrained", sharey=True)
for ax, name in zip(axes, ("squared angle", "diffusion"), strict=True):
    model = models[name]
    values = model.task_loss_.scores(model.weights(at), everywhere, Y).reshape(longitudes.shape)
    ax.contourf(np.degrees(longitudes), np.degrees(latitudes), values, levels=20, cmap="Blues_r")
    for point, marker, label in ((curve(at[0, 0]), "k*", "truth"), (model.predict(at)[0], "ro", "prediction")):
        ax.plot(np.degrees(np.arctan2(point[1], point[0])), np.degrees(np.arcsin(point[2])), marker, ms=9, label=label)
    ax.set(title=name, xlabel="longitude")
axes[0].set_ylabel("latitude")
axes[1].legend(loc="upper left")
plt.show()
