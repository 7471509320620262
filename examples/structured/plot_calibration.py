"""
Robust surrogates and Bayes' rule
=================================

What a robust loss does to decisions, where the best decision is known.

The law of the output given the input is known here, hence also Bayes' rule and the excess risk of every prediction. A
part of the training outputs is replaced by one fixed wrong output. The theory is in
:doc:`/calibration_of_surrogates`.
"""

import itertools
import warnings

import matplotlib.pyplot as plt
import numpy as np

from fenchel import StructuredPredictor
from fenchel.decoders import Candidates
from fenchel.exceptions import ScaleWarning
from fenchel.kernels import Gaussian
from fenchel.losses import Huber, Square

warnings.simplefilter("ignore", ScaleWarning)  # the small kappa clips nearly all samples, on purpose

# %%
# Three problems
# --------------
#
# One of four classes under the zero-one loss, and sets of six labels under the Hamming loss, independent of each other
# given the input: once all of them noisy, once clear except near their boundaries. The wrong output is the first class,
# or the set of all labels.

grid = np.linspace(0, 1, 200)
sets = np.array(list(itertools.product([0.0, 1.0], repeat=6)))


def classes(x):
    odds = np.exp(1.5 * np.cos(2 * np.pi * (x[:, None] - np.arange(4) / 4)))
    return odds / odds.sum(axis=1, keepdims=True)


def labels(steepness):
    def law(x):
        means = 1 / (1 + np.exp(-steepness * np.sin(2 * np.pi * (x[:, None] + np.arange(6) / 6))))
        return np.prod(np.where(sets == 1, means[:, None], 1 - means[:, None]), axis=2)

    return law


hamming = np.mean(sets[:, None] != sets[None], axis=2)
problems = {  # law of the outputs, their codes, costs of decisions, index of the wrong output
    "classes": (classes, np.eye(4), 1 - np.eye(4), 0),
    "noisy labels": (labels(1.0), sets, hamming, 63),
    "clear labels": (labels(4.0), sets, hamming, 63),
}


def excess_risk(law, costs, decisions):
    """Mean excess task risk over the grid of inputs."""
    expected = law(grid) @ costs.T
    return np.mean(expected[np.arange(len(grid)), decisions] - expected.min(axis=1))


# %%
# With infinitely many samples
# ----------------------------
#
# The surrogate then predicts a weighted mean of the codes, in which an output at a distance r beyond ``kappa`` has the
# weight ``kappa / r``. Decisions are those of Bayes' rule for the tilted probabilities.


def limit(name, share, kappa):
    law, codes, costs, wrong = problems[name]
    p = (1 - share) * law(grid)
    p[:, wrong] += share
    tilted, before = p, 0 * p
    while np.max(np.abs(tilted - before)) > 1e-7:
        distances = np.linalg.norm(codes - (tilted @ codes)[:, None], axis=2)
        before, tilted = tilted, p * np.minimum(1, kappa / np.maximum(distances, 1e-12))
        tilted /= tilted.sum(axis=1, keepdims=True)
    return excess_risk(law, costs, np.argmin(tilted @ costs.T, axis=1))


# %%
# With finitely many
# ------------------
#
# ``lam`` is smaller for a small ``kappa``, which gives small weights to all samples. The nearest code is the best class
# for the zero-one loss, and the best label set for the Hamming loss. With a share s of wrong outputs, the third loss
# clips a share 2s of the samples, which minimises a bound on the bias.


def fitted_excess(name, share, loss, scale, n, seed):
    law, codes, costs, wrong = problems[name]
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    drawn = np.array([rng.choice(len(codes), p=p) for p in law(x)])
    drawn[rng.uniform(size=n) < share] = wrong
    model = StructuredPredictor(
        Gaussian(20.0), loss=loss, lam=0.01 * scale / np.sqrt(n), decoder=Candidates(codes), center=True, tol=1e-3
    ).fit(x[:, None], codes[drawn])
    return excess_risk(law, costs, np.ravel(model.top_k(grid[:, None], 1, indices=True)))


sizes, shares = [50, 150, 400], [0.0, 0.1, 0.3]
fig, panels = plt.subplots(3, 3, figsize=(10, 8), sharex=True, sharey="row", layout="constrained")
for row, name in zip(panels, problems, strict=True):
    for panel, share in zip(row, shares, strict=True):
        losses = {"square": (Square(), 1.0), "Huber(0.5)": (Huber(0.5), 0.5)}
        if share:
            losses["Huber, clips 2s"] = (Huber(f"quantile:{1 - 2 * share:g}"), 1.0)
        for color, (label, (loss, scale)) in enumerate(losses.items()):
            risks = [np.mean([fitted_excess(name, share, loss, scale, n, seed) for seed in range(4)]) for n in sizes]
            panel.plot(sizes, risks, marker="o", color=f"C{color}", label=label)
            print(f"{name:13} {share:4.0%} wrong, {label:16} n = {sizes[-1]}: excess risk {risks[-1]:.3f}", end="")
            if color < 2:
                infinite = limit(name, share, np.inf if color == 0 else 0.5)
                panel.axhline(infinite, color=f"C{color}", linestyle=":" if color else "--", linewidth=1)
                print(f", in the limit {infinite:.3f}", end="")
            print()
        panel.set(xscale="log", title=f"{name}, {share:.0%} wrong")
        panel.set_xticks(sizes, [str(n) for n in sizes], minor=False)
        panel.minorticks_off()
    row[0].set_ylabel("excess task risk")
for panel in panels[-1]:
    panel.set_xlabel("samples")
panels[0, -1].legend(fontsize="small")
plt.show()

# %%
# For the zero-one loss both losses have the same limit: no ``kappa`` changes it. For noisy labels the wrong set, which
# is always the same, is the most frequent one at 30 %: a small ``kappa`` moves towards it, and the excess risk in the
# limit rises from .092 to .151. For clear labels the right sets are near each other and the wrong set is far away: it
# falls from .016 to .006. Without wrong outputs nothing is lost, as these labels are independent given the input.
