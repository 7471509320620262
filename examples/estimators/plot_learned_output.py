"""
Learned output operators
========================

How to learn which outputs are related, together with the model.

``LearnedOutputRegressor`` learns the output operator together with the model: a share of the identity, which keeps
outputs separate, and a low-rank part that couples them. Here ten outputs follow two functions with noise, five outputs
each, and a tenth of the samples are wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import LearnedOutputRegressor, OperatorKernelRegressorCV
from fenchel.losses import Huber

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (560, 2))
functions = np.sin(X @ np.array([[1.5, 0.5], [0.5, -2.0]]))
mixture = np.zeros((2, 10))
mixture[0, :5], mixture[1, 5:] = [1, -1, 1, 2, 1], [1, 1, -2, 1, 1]
truth = functions @ mixture
Y = truth + 0.8 * rng.standard_normal(truth.shape)
Y[:6] += 20
train, test = np.arange(60), np.arange(60, 560)

# %%
# Optimisation
# ------------
#
# The objective is minimised in turn over the model, through its dual problem, and over the operator, in closed form.
# It falls in every step, and the gap of the joint problem certifies how close it is to the minimum.

default = OperatorKernelRegressorCV(losses=[Huber("auto")]).fit(X[train], Y[train])
model = LearnedOutputRegressor(default).fit(X[train], Y[train])
print(f"share of the identity {model.share_}, rank of the rest {model.factor_.shape[1]}")
print(f"{model.n_iter_} fits of the model, each to a gap of at most {max(model.gaps_):.1e}")
print(f"gap of the problem over model and operator: {model.operator_gap_:.1e}")
for name, one in (("identity", default), ("learned operator", model)):
    error = np.mean((one.predict(X[test]) - truth[test]) ** 2)
    print(f"{name}: mean squared distance to the noise-free outputs {error:.3f}")

# %%
# Operator
# --------
#
# The operator acts on outputs divided by their scales. It shows the two groups and the signs of the outputs.

fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
true = mixture.T @ mixture / np.outer(default.best_estimator_.scale_, default.best_estimator_.scale_)
panels = {"learned operator": model.output_operator_, "of the two functions": true * 10 / np.trace(true)}
for ax, (title, matrix) in zip(axes, panels.items(), strict=False):
    image = ax.imshow(matrix, cmap="RdBu", vmin=-2, vmax=2)
    ax.set(title=title, xlabel="output", ylabel="output")
fig.colorbar(image, ax=axes[:2])
axes[2].plot(np.arange(len(model.objectives_)) / 2, model.objectives_, "o-")
_ = axes[2].set(title="objective after each block", xlabel="round", ylabel="objective")
