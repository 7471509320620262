"""Samples for the recorded cases: small, drawn from fixed seeds, in every form that ``fit`` takes.

A sample has a name such as ``"vectors float32 weights"``: a maker of ``SAMPLES`` and any number of ``CHANGES``.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

N, NEW, POINTS = 32, 6, 12
GRID = np.linspace(0.0, 2.0, POINTS) ** 1.2  # points that are not equidistant
ANGLES = np.linspace(0, np.pi, POINTS)


@dataclass
class Sample:
    """What ``fit`` is called with, and what is asked of the fitted estimator."""

    X: Any
    y: Any
    new: Any
    y_new: Any = None
    fit: dict[str, Any] = field(default_factory=dict)  # further arguments of fit
    more: dict[str, Any] = field(default_factory=dict)  # of questions: labels and weights of new samples, candidates

    @property
    def labels(self) -> np.ndarray:
        """One label for each four samples."""
        return np.arange(len(self.y)) // 4


def _inputs(rng, n=N, d=3):
    return rng.uniform(-2, 2, (n + NEW, d))


def _smooth(X, rng, noise=0.1):
    values = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, -1], np.cos(X.sum(axis=1))], axis=1)
    return values + noise * rng.standard_normal(values.shape)


def _split(X, y, n=N, **given):
    return Sample(X[:n], y[:n], X[n:], y[n:], **given)


def vectors(rng, n=N):
    X = _inputs(rng, n)
    return _split(X, _smooth(X, rng), n)


def flat(rng, n=N):
    sample = vectors(rng, n)
    sample.y, sample.y_new = sample.y[:, 0], sample.y_new[:, 0]
    return sample


def column(rng):
    sample = flat(rng)
    sample.y, sample.y_new = sample.y[:, None], sample.y_new[:, None]
    return sample


def bands(rng):
    return flat(rng, 60)


def band_vectors(rng):
    return vectors(rng, 60)


def gram(rng):
    sample = vectors(rng)
    both = np.concatenate([sample.X, sample.new])
    K = np.exp(-0.3 * np.sum((both[:, None] - sample.X[None]) ** 2, axis=2))
    sample.X, sample.new = K[:N], K[N:]
    return sample


def bits(rng):
    sample = vectors(rng)
    both = (rng.random((N + NEW, 12)) < 0.4).astype(float)
    both[:, 0] = 1.0
    sample.X, sample.new = both[:N], both[N:]
    return sample


def images(rng):
    X = rng.standard_normal((N + NEW, 6, 5))
    return _split(np.cumsum(X, axis=1), np.cumsum(X, axis=2)[:, ::2] + 0.1 * X[:, ::2])


def lines(rng):
    sample = curves(rng)
    sample.fit = {}
    return sample


def curves(rng, n=N):
    Z = _inputs(rng, n)
    X = Z[:, :1] * np.sin(ANGLES) + Z[:, 1:2] * np.cos(2 * ANGLES) + 0.3 * Z[:, 2:]
    Y = np.sin(Z[:, :1] + ANGLES) + Z[:, 1:2] * ANGLES / 3 + 0.1 * rng.standard_normal(X.shape)
    return _split(X, Y, n, fit={"grid": GRID})


def many_curves(rng):
    return curves(rng, 60)


def curves_of_vectors(rng):
    sample, given = curves(rng), _inputs(rng)
    sample.X, sample.new = given[:N], given[N:]
    return sample


def gaps(rng):
    sample = curves(rng)
    sample.y[rng.random(sample.y.shape) < 0.25] = np.nan
    sample.y[:, 3] = np.where(np.isnan(sample.y[:, 3]), 0.5, sample.y[:, 3])
    return sample


def ragged(rng):
    sample = curves(rng)
    places = [np.sort(rng.choice(POINTS, 5, replace=False)) for _ in range(N)]
    sample.y = [(GRID[at], row[at]) for at, row in zip(places, sample.y, strict=True)]
    sample.fit = {}
    return sample


def channels(rng):
    sample = curves(rng)
    sample.y, sample.y_new = (np.stack([y, 0.5 * y**2], axis=2) for y in (sample.y, sample.y_new))
    return sample


def channel_gaps(rng):
    sample = channels(rng)
    sample.y[:, ::3, 1] = np.nan
    return sample


def channel_inputs(rng):
    sample = curves(rng)
    sample.X, sample.new = (np.stack([X, np.cos(X)], axis=2) for X in (sample.X, sample.new))
    return sample


def fdata(rng):
    import skfda

    sample = curves(rng)
    sample.X, sample.y, sample.new, sample.y_new = (
        skfda.FDataGrid(values, GRID, argument_names=("hour",), coordinate_names=("rain",))
        for values in (sample.X, sample.y, sample.new, sample.y_new)
    )
    sample.fit = {}
    return sample


def sets(rng, n=N):
    X = _inputs(rng, n)
    Y = (np.hstack([X, X[:, :1] - X[:, 1:2]]) + 0.4 * rng.standard_normal((n + NEW, 4)) > 0.3).astype(int)
    every = np.array([[i >> j & 1 for j in range(4)] for i in range(16)])
    return _split(X, Y, n, more={"candidates": every})


def many_sets(rng):
    return sets(rng, 60)


def objects(rng):
    X = _inputs(rng)
    words = np.array(["ant", "bee", "beetle", "cat", "cattle"], dtype=object)
    return _split(X, words[np.digitize(X[:, 0] + 0.2 * rng.standard_normal(len(X)), [-1, 0, 0.5, 1])].tolist())


def classes(rng):
    X = _inputs(rng)
    return _split(X, np.digitize(X[:, 0] + 0.2 * rng.standard_normal(len(X)), [-0.7, 0.7]))


def two(rng):
    X = _inputs(rng)
    return _split(X, np.array(["no", "yes"])[(X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(len(X)) > 0).astype(int)])


def signs(rng):
    sample = two(rng)
    sample.y, sample.y_new = (np.where(y == "yes", 1.0, -1.0) for y in (sample.y, sample.y_new))
    return sample


def histograms(rng):
    X = _inputs(rng)
    weights = np.exp(_smooth(X, rng))
    return _split(X, weights / weights.sum(axis=1, keepdims=True))


def angles(rng):
    X = _inputs(rng)
    return _split(X, np.mod(X[:, 0] + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(len(X)), 2 * np.pi))


def sphere(rng):
    X = _inputs(rng)
    Y = _smooth(X, rng) + np.array([0.0, 0.0, 1.0])
    return _split(X, Y / np.linalg.norm(Y, axis=1, keepdims=True))


def table(rng):
    import pandas as pd

    X = _inputs(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["kind"] = np.where(X[:, 0] > 0, "left", "right")
    frame[["u", "v"]] = _smooth(X, rng)[:, :2]
    return Sample(frame[:N], None, frame[N:])


def bad_table(rng):
    sample = table(rng)
    sample.X.loc[3, "b"] = np.nan
    return sample


_NAMES = """
vectors flat column bands band_vectors gram bits images lines curves many_curves curves_of_vectors gaps ragged channels
channel_gaps channel_inputs fdata sets many_sets objects classes two signs histograms angles sphere table bad_table
"""
SAMPLES = {name: globals()[name] for name in _NAMES.split()}


def _float32(sample, rng):
    sample.X, sample.new, sample.y = (np.asarray(value, dtype=np.float32) for value in (sample.X, sample.new, sample.y))


def _lists(sample, rng):
    sample.X, sample.y, sample.new = (np.asarray(value).tolist() for value in (sample.X, sample.y, sample.new))


def _sparse(sample, rng):
    sample.X, sample.new = (sparse.csr_array(np.where(np.abs(X) > 0.8, X, 0.0)) for X in (sample.X, sample.new))


def _pandas(sample, rng):
    import pandas as pd

    names = [f"x{i}" for i in range(sample.X.shape[1])]
    index = [f"row {i}" for i in range(len(sample.X))]
    sample.X, sample.new = pd.DataFrame(sample.X, index, names), pd.DataFrame(sample.new, columns=names)
    y = sample.y
    sample.y = (
        pd.Series(y, index, name="y") if y.ndim == 1 else pd.DataFrame(y, index, [f"y{i}" for i in range(y.shape[1])])
    )


def _polars(sample, rng):
    import polars as pl

    names = [f"x{i}" for i in range(sample.X.shape[1])]
    sample.X, sample.new = pl.DataFrame(sample.X, schema=names), pl.DataFrame(sample.new, schema=names)
    sample.y = pl.Series("y", sample.y) if sample.y.ndim == 1 else pl.DataFrame(sample.y, schema=["u", "v", "w"])


def _weights(sample, rng):
    sample.fit["sample_weight"] = rng.uniform(0.2, 2.0, len(sample.y))


def _zeros(sample, rng):
    sample.fit["sample_weight"] = rng.integers(0, 3, len(sample.y)).astype(float)


def _groups(sample, rng):
    sample.fit["groups"] = sample.labels


def _two_groups(sample, rng):
    sample.fit["strata"] = np.arange(len(sample.y)) % 2
    sample.more["strata"] = np.arange(NEW) % 2


def _replicates(sample, rng):
    sample.fit["groups"] = sample.labels


def _wrong(sample, rng):
    sample.y = np.array(sample.y)
    sample.y[::9] += 4.0


def _large(sample, rng):
    sample.X, sample.new, sample.y = 1e5 * sample.X, 1e5 * sample.new, 1e-5 * sample.y


def _own_candidates(sample, rng):
    sample.more["candidates"] = [sample.more["candidates"][i::3] for i in range(NEW)]


def _nan_inputs(sample, rng):
    sample.X[3, 1] = np.nan


def _infinite_outputs(sample, rng):
    sample.y[3] = np.inf


def _missing_output(sample, rng):
    sample.y[3] = np.nan


def _short(sample, rng):
    sample.y = sample.y[:-1]


def _empty(sample, rng):
    sample.X, sample.y = sample.X[:0], sample.y[:0]


def _three_axes(sample, rng):
    sample.X = sample.X[:, :, None, None]


def _wide(sample, rng):
    sample.new = np.hstack([sample.new, sample.new])


def _negative_weights(sample, rng):
    sample.fit["sample_weight"] = -np.ones(len(sample.y))


def _short_weights(sample, rng):
    sample.fit["sample_weight"] = np.ones(3)


def _no_weight(sample, rng):
    sample.fit["sample_weight"] = np.zeros(len(sample.y))


def _unsorted(sample, rng):
    sample.fit["grid"] = GRID[::-1]


def _short_grid(sample, rng):
    sample.fit["grid"] = GRID[:-1]


def _constant(sample, rng):
    sample.y = 0 * sample.y + 3.0


def _same_inputs(sample, rng):
    sample.X = 0 * sample.X + 1.0


def _text(sample, rng):
    sample.X = np.full(sample.X.shape, "a")


CHANGES = {name[1:]: change for name, change in list(globals().items()) if name[0] == "_" and callable(change)}


def sample_of(name: str) -> Sample:
    """Return the sample of a name; the same numbers every time."""
    maker, *changes = name.split()
    sample = SAMPLES[maker](np.random.default_rng(7))
    for place, change in enumerate(changes):
        CHANGES[change](sample, np.random.default_rng([8, place]))
    return sample
