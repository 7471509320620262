"""
Directions on the circle
========================

How to add a kind of output of your own in one file.

A direction is an angle, and the angles 3.1 and -3.1 are neighbours. A *codec* is the way from outputs to coordinates
and back; a *task* checks the data and learns the codec. Bands, outliers, the search, files and pages then work without
another line.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import RegressorMixin

from fenchel import ConformalRegressor, OutlierReport
from fenchel.estimators.search_machine import PairSearchMachine
from fenchel.kernels import as_operator_kernel
from fenchel.model.codec import Codec, Task
from fenchel.model.forms import InputForm, OutputForm, vectors_like
from fenchel.model.machine import KernelMachine
from fenchel.model.sample import Sample
from fenchel.representations import Euclidean


@dataclass(frozen=True)
class DirectionCodec(Codec):
    """Angles as points on the unit circle, and back."""

    representation: Euclidean

    def encode(self, y):
        return self.representation.encode(np.stack([np.cos(y), np.sin(y)], axis=1))

    def decode(self, rows):
        return np.arctan2(rows[:, 1:], rows[:, :1])

    def near(self, values, others):
        return others + np.remainder(values - others + np.pi, 2 * np.pi) - np.pi


@dataclass(frozen=True)
class Directions(Task):
    """Angles (n,) in radians, of vectors."""

    kernel: object

    def sample(self, owner, X, y, sample_weight=None):
        X, y, inputs = InputForm.learn(owner, X, y, y_numeric=True)
        return Sample.of(X, vectors_like(y, X), inputs, OutputForm(), sample_weight)

    def learn(self, sample):
        codec = DirectionCodec(Euclidean())
        return codec, codec.encode(sample.y)

    def kernel_of(self, sample, codec):
        return as_operator_kernel(self.kernel)


class DirectionRegressor(RegressorMixin, KernelMachine):
    """Regression of angles in radians."""

    def __init__(self, kernel="gaussian", loss="square", lam=1e-3, tol=1e-6):
        self.kernel = kernel
        self.loss = loss
        self.lam = lam
        self.tol = tol

    def fit(self, X, y, sample_weight=None):
        return self._learned(X, y, sample_weight)

    def predict(self, X):
        X = self._read(X)
        return self.model_.outputs.wrap(self.model_.read(X), X)

    def _task(self):
        return Directions(self.kernel)


class DirectionRegressorCV(PairSearchMachine, DirectionRegressor):
    """The same with kernel, loss and lam chosen by held-out errors."""

    def __init__(self, kernel="auto", losses="auto", lams=None, cv=5, aggregate="auto", tol=1e-6):
        self.kernel = kernel
        self.losses = losses
        self.lams = lams
        self.cv = cv
        self.aggregate = aggregate
        self.tol = tol

    def fit(self, X, y, sample_weight=None, groups=None):
        return self._choose(X, y, sample_weight, groups)

    def _machine(self, losses=(), is_robust=False):
        return DirectionRegressor(self.kernel, tol=self.tol)


# %%
# A search
# --------
#
# The wind turns through a bit more than a full circle. Three directions are wrong. Kernel, loss and lam are chosen.

rng = np.random.default_rng(0)
X = rng.uniform(0, 5, (160, 1))
y = np.remainder(1.5 * X[:, 0] + 0.2 * rng.standard_normal(160) + np.pi, 2 * np.pi) - np.pi
y[[10, 70, 130]] += 2.0
model = DirectionRegressorCV().fit(X, y)
print(f"{model.best_kernel_}\n{model.best_loss_}, lam = {model.best_lam_:.1g}, relative gap {model.duality_gap_:.0e}")

# %%
# Bands and outliers
# ------------------
#
# Residuals are signed angles, so that a band may cross the cut at π; ``contains`` compares on the circle.

new = rng.uniform(0, 5, (1000, 1))
truth = 1.5 * new[:, 0] + 0.2 * rng.standard_normal(1000)
for method in ("split", "cv+", "jackknife+"):
    band = ConformalRegressor(model.best_estimator_, method=method, coverage=0.9).fit(X, y).predict_interval(new)
    print(f"{method}: width {band.width.mean():.2f}, covers {band.contains(truth).mean():.1%}")
report = OutlierReport.of(model, X, y)
print("wrong:", np.flatnonzero(report.flagged(0.1)))

line = np.linspace(0, 5, 300)[:, None]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.scatter(X, y, s=8, c=np.where(report.flagged(0.1), "C3", "0.6"))
ax.plot(line, model.predict(line), ".", markersize=2)
ax.set(title="Directions", xlabel="input", ylabel="angle in radians")
plt.show()
