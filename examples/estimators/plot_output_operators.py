"""
Output operators for correlated outputs
=======================================

When it helps to couple the outputs of a model, and when it does not.

An output operator couples the outputs. ``Covariance()`` estimates it from the training outputs, and ``Matrix(B)`` takes
it from you. The example compares both with the identity for ten outputs, which are either mixtures of two functions or
ten unrelated functions.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel import OperatorKernelRegressor
from fenchel.kernels import Covariance, Gaussian, Identity, Matrix

LAMS = np.logspace(-5, 1, 9)


def draw(rng, n, mixture):
    """Return inputs, noisy outputs and noise-free outputs; the functions are sines along random directions."""
    count = mixture.shape[0]
    directions, phases = rng.standard_normal((2, count)), rng.uniform(0, 6, count)
    parts = []
    for size in (n, 200, 500):  # training, choice of lam, test
        X = rng.uniform(-2, 2, (size, 2))
        truth = np.sin(X @ directions + phases) @ mixture
        parts.append((X, truth + 0.5 * rng.standard_normal(truth.shape), truth))
    return parts


def error_of(operator, parts):
    """Return the test error at the lam that is best on the second sample."""
    (X, Y, _), (X_choice, Y_choice, _), (X_test, _, truth) = parts
    models = [OperatorKernelRegressor(Gaussian(0.5), operator=operator, lam=lam).fit(X, Y) for lam in LAMS]
    best = min(models, key=lambda model: np.mean((model.predict(X_choice) - Y_choice) ** 2))
    return np.mean(np.sum((best.predict(X_test) - truth) ** 2, axis=1))


def compare(ax, title, make_mixture, names):
    """Print and draw the mean error of six draws for each operator and number of samples."""
    sizes, means = (15, 30, 60, 120), []
    for n in sizes:
        errors = []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            mixture = make_mixture(rng)
            parts = draw(rng, n, mixture)
            operators = {"identity": Identity(), "covariance": Covariance(), "true matrix": Matrix(mixture.T @ mixture)}
            errors.append([error_of(operators[name], parts) for name in names])
        wins = np.sum(np.array(errors) < np.array(errors)[:, :1], axis=0)
        means.append(np.mean(errors, axis=0))
        texts = [f"{name} {mean:.2f} (wins {win} of 6)" for name, mean, win in zip(names, means[-1], wins, strict=True)]
        print(f"{title}, n = {n:3}: identity {means[-1][0]:.2f}, {', '.join(texts[1:])}")
    for name, line in zip(names, np.transpose(means), strict=True):
        ax.plot(sizes, line, "o-", label=name)
    ax.set(title=title, xlabel="training samples", ylabel="mean squared test error", yscale="log")
    ax.legend()


# %%
# ``lam`` is chosen separately for each operator. The numbers are the mean squared distance to the noise-free outputs
# over the draws, and the number of draws in which an operator beats the identity.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
names = ["identity", "covariance", "true matrix"]
compare(left, "two functions, mixed", lambda rng: rng.standard_normal((2, 10)), names)
compare(right, "ten functions, apart", lambda rng: np.eye(10), names[:2])
plt.show()

# %%
# If the outputs are mixtures of two functions, the covariance of the noisy outputs helps in every draw, and the matrix
# of the mixture helps more. If the outputs are unrelated, the covariance does not help: the two errors are close, and
# with the fewest samples the identity is better in every draw.
