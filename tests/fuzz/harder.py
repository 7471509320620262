"""Streams of draws on top of a case of the first: weights, dtypes, masks, own points, certificates; gaps, features."""

import re

import numpy as np

import fenchel
from fenchel.approximations import Nystrom, PSparsified, RandomFeatures
from fenchel.representations import Spline
from tests.fuzz.data import chance, dense, pick, scale, table

_MASKED = 1e6  # what lies under a mask


def harden(rng, case):
    """Add extreme weights, float32 outputs, masked arrays, own points, or another certificate to a case."""
    data, is_faulty = case.data, bool(case.may_refuse)
    outputs = "no y" not in data.words
    if "FunctionalRegressor" in type(case.estimator).__name__ and not is_faulty and chance(rng, 0.5):
        data.y, about = own_points(rng, dense(data.X).shape[0])
        data.words[1] = about
        if chance(rng, 0.9) and hasattr(case.estimator, "n_components"):
            case.estimator.set_params(representation="spline", n_components=None)
    elif outputs and not is_faulty and chance(rng, 0.3) and dense(data.y).dtype.kind in "iuf":
        data.y = np.clip(dense(data.y), -1e38, 1e38).astype(np.float32)
        data.words.append("y: float32")
    if not is_faulty and chance(rng, 0.25):
        case.estimator = wrapped(rng, case.estimator)
        if isinstance(case.estimator, fenchel.RobustRefit):
            data.sample_weight = None
    if "certificate" in case.estimator.get_params(deep=False) and chance(rng, 0.3):
        parts = {
            "certificate": pick(rng, "exact", "exact", "sampled"),
            "approximation": Nystrom(pick(rng, 2, 4, "auto")),
        }
        case.estimator.set_params(**parts)
    if outputs and not is_faulty and chance(rng, 0.5) and not isinstance(case.estimator, fenchel.RobustRefit):
        data.sample_weight = extreme_weights(rng, dense(data.X).shape[0])
        w = np.asarray(data.sample_weight)
        data.words.append(f"sample_weight: {w.min():.2g} to {w.max():.2g}, {w.dtype}")
        if not np.any(w > 0):
            data.faults.append("all weights are zero")
    if not is_faulty and chance(rng, 0.06):
        _spoil(rng, case)
    elif not is_faulty and chance(rng, 0.15):
        # a calibration sample may have gaps whatever the estimator of a band takes
        mask(rng, data, re.search("Functional|Field|OperatorKernel|ConformalRegressor", repr(case.estimator)))
    case.may_refuse = [*data.faults, *(each for each in case.may_refuse if each not in data.faults)]


def widen(rng, case):
    """Add gaps in vectors, approximations of weights and codes, or other quadratures to a case."""
    data, estimator = case.data, case.estimator
    name, parameters = type(estimator).__name__, estimator.get_params(deep=False)
    if name.startswith("OperatorKernelRegressor") and not case.may_refuse and data.y is not None:
        Y = np.array(dense(data.y), dtype=np.float64)
        holes = rng.random(Y.shape) < pick(rng, 0.1, 0.5)
        data.y = np.where(holes, np.nan, Y)
        data.words.append(f"y: {holes.sum()} gaps")
        data.faults.append("gaps in y")  # which may leave a column, or a fold, without any value
        case.may_refuse = ["gaps in y"]
    elif name in ("LossTrickPredictor", "KernelAutoencoder"):
        some = (Nystrom(4), RandomFeatures(6, random_state=0), PSparsified(4, random_state=0))
        estimator.set_params(approximation=pick(rng, *some))
    elif name.startswith("FunctionalRegressor") and parameters["representation"] == "spline":
        estimator.set_params(representation=Spline(pick(rng, "average", "mean", "monte_carlo")))


def wrapped(rng, estimator):
    """Return an estimator around another one, or the same."""
    name = type(estimator).__name__
    if name not in ("OperatorKernelRegressor", "FunctionalRegressor", "QuantileFunctionRegressor"):
        return estimator
    if name != "OperatorKernelRegressor" or chance(rng, 0.4):
        method = "split" if name.startswith("Quantile") else pick(rng, "split", "cv+", "jackknife+")
        return fenchel.ConformalRegressor(estimator, pick(rng, 0.5, 0.8), method, cv=3)
    if chance(rng, 0.3):
        return fenchel.RobustRefit(estimator, cv=3)
    if chance(rng, 0.4):
        return fenchel.FieldRegressor(estimator, pick(rng, "points", "pca"), None, pick(rng, "points", "pca"))
    return fenchel.LearnedMetricRegressor(fenchel.OperatorKernelRegressorCV(lams=[1e-3, 1e-1], cv=2), max_rounds=1)


def extreme_weights(rng, n):
    """Return weights at the ends of the range of float64, over many decades, or null."""
    weights = pick(
        rng,
        np.full(n, 5e-324),
        np.full(n, np.exp(-500.0)),
        np.full(n, 1e200),
        np.full(n, 1.7e308),
        10.0 ** rng.uniform(-20, 20, n),
        10.0 ** rng.uniform(-300, 300, n),
        np.exp(-rng.uniform(0, 740, n)),
        np.where(np.arange(n) == 0, 1e200, 1.0),
        np.where(np.arange(n) == 0, 5e-324, 1.0),
    )
    if chance(rng, 0.3):
        weights = np.where(rng.random(n) < 0.4, 0.0, weights)
    if chance(rng, 0.15):
        weights = np.clip(weights, 0.0, 3e38).astype(np.float32)
    return weights.tolist() if chance(rng, 0.1) else weights


def own_points(rng, n):
    """Return curves with points of their own, as pairs or as rows of NaN, and in words which."""
    most, factor = int(pick(rng, 1, 3, 6)), scale(rng)
    counts, kind = rng.integers(1, most + 1, n), pick(rng, "pairs", "pairs", "few of a grid", "NaN grid")
    values, about = table(rng, n, most)
    values = values * factor
    about = f"y: {about}, {n} curves of 1 to {most} own points ({kind}) times {factor:g}"
    if kind == "NaN grid":
        holes = np.full((n, 2 * most), np.nan)
        for i, count in enumerate(counts):
            holes[i, rng.permutation(2 * most)[:count]] = values[i, :count]
        return holes, about
    unit = scale(rng, 0.2)
    pool = unit * (np.linspace(0, 1, 2 * most) if kind == "few of a grid" else rng.uniform(0, 1, 20 * most))
    return [(rng.permutation(pool)[:count], values[i, :count]) for i, count in enumerate(counts)], about


def mask(rng, data, takes_gaps):
    """Make one array a masked one, with numbers under the mask that must not be read; outputs may have gaps."""
    name = pick(rng, "X", *(name for name in ("y", "y", "sample_weight") if hasattr(getattr(data, name), "dtype")))
    array = np.array(dense(getattr(data, name)))
    if array.dtype.kind not in "iuf":
        return
    hidden = rng.random(array.shape) < pick(rng, 0.0, 0.2)
    setattr(data, name, np.ma.masked_array(np.where(hidden, _MASKED, array).astype(array.dtype), hidden))
    data.words.append(f"{name}: {hidden.sum()} masked")
    if hidden.any():
        data.faults.append(f"masked {name}")
        data.unreadable = "" if name == "y" and takes_gaps else f"masked {name}"


def _spoil(rng, case):
    """Put in numbers beyond float64, or dates for outputs."""
    data, fault = case.data, pick(rng, "huge int X", "dates y", "huge int lam")
    if fault == "huge int X":
        data.X = [[10**400 for _ in row] for row in dense(data.X)]
    elif fault == "huge int lam" and "lam" in case.estimator.get_params(deep=False):
        case.estimator.set_params(lam=10**400)
    elif fault == "dates y" and "no y" not in data.words:
        n = dense(data.X).shape[0]
        shape = (n, 3) if "FunctionalRegressor" in repr(case.estimator) else (n,)
        data.y = np.datetime64("2024-01-01") + np.arange(np.prod(shape)).reshape(shape)
    else:
        return
    data.words.append(f"fault: {fault}")
    data.faults.append(fault)
    data.unreadable = fault
