"""
Label sets with wrong samples
=============================

How to predict label sets when some of the training sets are wrong.

A sample has several labels, and not every set of labels is possible. ``StructuredPredictor`` learns in the feature
space of a kernel on label sets, and a decoder turns its predictions back into sets. A Huber loss bounds the influence
of samples with a wrong set.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import StructuredPredictor
from fenchel.kernels import Gaussian
from fenchel.losses import Huber

# %%
# Data
# ----
#
# There are nine labels in three groups, with exactly one label per group. Only 27 of the 512 sets are possible, and the
# model is not told which.

rng = np.random.default_rng(0)
n = 600
X = 1.5 * rng.standard_normal((n + 1000, 4))
scores = np.einsum("nd,gdk->ngk", X, rng.standard_normal((3, 4, 3))) + rng.standard_normal((3, 3))
scores += 0.2 * rng.standard_normal(scores.shape)
Y = (scores == scores.max(axis=2, keepdims=True)).astype(float).reshape(-1, 9)
X, X_test, Y, Y_test = X[:n], X[n:], Y[:n], Y[n:]
print(f"{len(np.unique(Y, axis=0))} different sets in the training sample; the first two:\n{Y[:2].astype(int)}")

# %%
# Output kernels and decoders
# ---------------------------
#
# With the linear output kernel the model predicts nine numbers. ``"threshold"`` cuts each of them at 0.5;
# ``"training_set"`` returns the nearest set of the training sample. With a Gaussian output kernel a prediction is a
# point of a function space, and is decoded to the nearest training set.


def report(name, model):
    """Print three measures of the predicted test sets."""
    found = model.predict(X_test)
    wrong_labels, all_right = np.mean(found != Y_test), np.mean(np.all(found == Y_test, axis=1))
    possible = np.mean(np.all(found.reshape(-1, 3, 3).sum(axis=2) == 1, axis=1))
    print(f"{name:24} wrong labels {wrong_labels:.3f}, sets all right {all_right:.3f}, possible sets {possible:.3f}")


settings = {"kernel": Gaussian(0.2), "lam": 1e-3}
report("linear, threshold", StructuredPredictor(**settings, decoder="threshold").fit(X, Y))
report("linear, training set", StructuredPredictor(**settings, decoder="training_set").fit(X, Y))
model = StructuredPredictor(**settings, output_kernel=Gaussian(0.1), decoder="training_set").fit(X, Y)
report("Gaussian, training set", model)
print(f"with the Gaussian kernel a prediction has {model.dual_coef_.shape[1]} coordinates")

# %%
# A threshold decides label by label, and nearly a fifth of its sets are impossible. Sets from the training sample are
# always possible, and more of them are entirely right. The two kernels differ little here. The Gaussian one has as many
# coordinates as there are different sets, not 600.
#
# Wrong sets
# ----------
#
# Three training samples in ten are now given the same set, as if a form had been sent with its default answers; for a
# few of them it is the true set. The square loss and Huber losses with three thresholds are fitted to these data; the
# test sample is clean.

Y_wrong = Y.copy()
Y_wrong[rng.uniform(size=n) < 0.3] = [1, 0, 0] * 3
is_wrong = np.any(Y_wrong != Y, axis=1)
print(f"{is_wrong.sum()} of {n} training sets are wrong")
models = {}
for loss in ("square", Huber(0.4), Huber(0.2), Huber(0.1)):
    models[str(loss)] = StructuredPredictor(**settings, output_kernel=Gaussian(0.1), loss=loss).fit(X, Y_wrong)
    report(str(loss), models[str(loss)])

# %%
# The smaller ``kappa`` is, the less harm the wrong sets do. But outlier scores are most informative if ``kappa`` is
# above the residuals of most samples: a score of 1 means that a sample was clipped, and with a small ``kappa`` many
# correct samples are clipped too.

for name, model in list(models.items())[1:]:
    clipped = model.outlier_score_ > 0.999
    wrong, others = clipped[is_wrong].mean(), clipped[~is_wrong].mean()
    print(f"{name}: clipped {wrong:.0%} of the wrong samples, {others:.0%} of the others")

fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, list(models.items())[1:], strict=True):
    parts = [model.outlier_score_[is_wrong], model.outlier_score_[~is_wrong]]
    shares = [np.full(len(part), 1 / len(part)) for part in parts]
    ax.hist(parts, bins=np.linspace(0, 1.0001, 16), weights=shares, label=["wrong set", "right set"])
    ax.set_title(name)
    ax.set_xlabel("outlier score")
axes[0].set_ylabel("share of the samples")
axes[0].legend()
plt.show()
