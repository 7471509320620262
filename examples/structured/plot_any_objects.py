"""
Strings as outputs
==================

How to predict strings, or any other objects, with a kernel of your own.

Any objects can be outputs if there is a kernel on them: a function of two samples that returns a matrix. Here the
outputs are words, and the kernel counts the pairs of letters that two words share.
"""

from collections import Counter
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from fenchel import StructuredPredictor
from fenchel.kernels import Gaussian, Part
from fenchel.losses import Huber

# %%
# Data
# ----
#
# The words have two syllables. The input is a noisy number for each syllable, as read from two dials.

first, second = ["ba", "de", "gi", "lo", "mu"], ["ka", "ne", "pi", "so", "tu"]


def sample(n, rng):
    """Return inputs (n, 2) and a list of words."""
    dials = rng.integers(0, 5, (n, 2))
    return dials + 0.3 * rng.standard_normal((n, 2)), [first[a] + second[b] for a, b in dials]


rng = np.random.default_rng(0)
X, words = sample(200, rng)
X_test, words_test = sample(500, rng)
print(", ".join(f"{word} at {np.round(x, 1)}" for x, word in zip(X[:3], words[:3], strict=True)))

# %%
# Kernel on words
# ---------------
#
# The features of a word are the counts of its letters and of its pairs of adjacent letters, with marks at both ends.
# The function takes two samples and returns the matrix of inner products of their features, divided by the norms.


def counts(word):
    """Return how often each letter and each pair of letters occurs in a word."""
    marked = f"^{word}$"
    return Counter(word) + Counter(a + b for a, b in pairwise(marked))


def product(one, other):
    """Return the product of two counts."""
    return sum(number * other[key] for key, number in one.items())


def words_kernel(A, B):
    """Return the matrix of similarities between words, 1 for equal ones."""
    A, B = [counts(word) for word in A], [counts(word) for word in B]
    norms = np.sqrt([product(one, one) for one in A])[:, None] * np.sqrt([product(one, one) for one in B])
    return np.array([[product(one, other) for other in B] for one in A]) / norms


print(np.round(words_kernel(["baka", "bane", "lotu"], ["baka", "bane", "lotu"]), 2))

# %%
# Fit and predict
# ---------------
#
# Outputs are passed as a list, and predictions are returned as an array of objects. The default decoder returns the
# nearest training word.

model = StructuredPredictor(Gaussian(1.0), output_kernel=words_kernel, loss=Huber(0.5), lam=1e-3).fit(X, words)
found = model.predict(X_test)
right = np.mean([word == guess for word, guess in zip(words_test, found, strict=True)])
print(f"{len(set(words))} words in training, {model.dual_coef_.shape[1]} coordinates, gap {model.duality_gap_:.0e}")
print(f"words all right: {right:.2f}")

# %%
# Unseen words
# ------------
#
# Five words are removed from the training sample, and the candidates are all 25 words. They are passed as an array of
# objects, since a list would mean one set per sample. With a sum of kernels, one for each dial, the prediction is a sum
# of two parts, one for each syllable; with a kernel of both dials it is not.

vocabulary = np.array([a + b for a in first for b in second], dtype=object)
unseen = {first[k] + second[(2 * k + 1) % 5] for k in range(5)}
kept = np.array([word not in unseen for word in words])
words_kept = [word for word in words if word not in unseen]
new = np.array([word in unseen for word in words_test])
input_kernels = {"both dials": Gaussian(1.0), "sum over dials": Part(Gaussian(1.0), [0]) + Part(Gaussian(1.0), [1])}
for name, kernel in input_kernels.items():
    model = StructuredPredictor(kernel, output_kernel=words_kernel, loss=Huber(0.5), lam=1e-3).fit(X[kept], words_kept)
    for among, guess in (
        ("training words", model.predict(X_test)),
        ("all 25 words", model.predict(X_test, vocabulary)),
    ):
        right = np.array([word == one for word, one in zip(words_test, guess, strict=True)])
        shares = f"{right[new].mean():.2f} of the unseen words, {right[~new].mean():.2f} of the others"
        print(f"{name:14} {among:14} right: {shares}")

# %%
# With the sum, three in four of the unseen words are found if they are among the candidates; with the kernel of both
# dials, hardly any are.
#
# The figure shows the squared distances between the candidates and the predictions of the sum, for the 25 positions of
# the dials. A cross marks the true word, in red if it was never seen.

places = np.array([[a, b] for a in range(5) for b in range(5)], dtype=float)
distances = model.decision_scores(places, vocabulary)
fig, ax = plt.subplots(figsize=(6.4, 5.6), layout="constrained")
image = ax.imshow(distances, cmap="viridis")
for k, word in enumerate(vocabulary):
    ax.plot(k, k, "x", color="tab:red" if word in unseen else "white")
ax.set_xticks(range(25), vocabulary, rotation=90)
ax.set_yticks(range(25), vocabulary)
ax.set(title="Distances of the predictions to all words", xlabel="candidate", ylabel="true word")
fig.colorbar(image, label="squared distance")
plt.show()
print(f"the three nearest at {places[0]}: {', '.join(model.top_k(places[:1], 3, vocabulary)[0])}")
