"""Inputs, outputs and weights of a case: degenerate ones, any scale, any container, and faults."""

import tempfile
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

_SIZES = (1, 2, 3, 5, 8, 12, 16, 20)


@dataclass
class Sample:
    """What ``fit`` is called with, and in words how it was made; ``faults`` are what may be refused."""

    X: object
    y: object
    sample_weight: object = None
    words: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    unreadable: str = ""  # what no fit may accept


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def chance(rng, probability):
    return rng.random() < probability


def scale(rng, probability=0.5):
    """Return a factor of a whole number of decades in 1e-12 to 1e12, often 1."""
    return float(10.0 ** rng.integers(-12, 13)) if chance(rng, probability) else 1.0


def table(rng, n, d):
    """Return n rows of d numbers, and in words which."""
    X = rng.standard_normal((n, d))
    kind = pick(
        rng, "normal", "normal", "normal", "constant", "zero", "duplicated", "low rank", "outlier", "integers", "offset"
    )
    if kind == "constant":
        X = np.broadcast_to(X[:1], (n, d)).copy()
    elif kind == "zero":
        X = np.zeros((n, d))
    elif kind == "duplicated":
        X = X[rng.integers(0, max(1, n // 2), n)]
    elif kind == "low rank":
        X = np.outer(X[:, 0], np.arange(1.0, d + 1))
    elif kind == "outlier":
        X[rng.integers(n)] *= 1e8
    elif kind == "integers":
        X = np.round(3 * X)
    elif kind == "offset":
        X = X + 1e6
    return X, kind


def contained(rng, array, takes_sparse=False):
    """Return the numbers in another dtype and container, and in words which."""
    dtype = pick(rng, "float64", "float64", "float64", "float32", "float32", "int64", "object")
    if dtype == "int64":
        array = np.clip(np.round(array), -(2.0**62), 2.0**62)
    if dtype == "float32":
        array = np.clip(array, -1e38, 1e38)
    array = array.astype(dtype)
    kind = pick(rng, "C", "C", "C", "Fortran", "strided", "reversed", "read-only", "memmap", "list", "sparse")
    if kind == "Fortran":
        array = np.asfortranarray(array)
    elif kind == "strided":
        array = np.repeat(array, 2, axis=0)[::2]
    elif kind == "reversed":
        array = np.ascontiguousarray(array[::-1])[::-1]
    elif kind == "read-only":
        array.flags.writeable = False
    elif kind == "memmap" and dtype != "object" and array.size:
        with tempfile.TemporaryFile() as file:
            kept = np.memmap(file, dtype, "w+", shape=array.shape)
        kept[...] = array
        array = kept
    elif kind == "list":
        array = array.tolist()
    elif kind == "sparse" and takes_sparse and dtype != "object" and array.ndim == 2:
        array = sparse.csr_array(array)
    else:
        kind = "C"
    return array, f"{dtype} {kind}"


def sample(rng, outputs, takes_sparse=False, is_positive=False):
    """Return the data of a case; ``outputs`` is "flat", "vectors", "curves", "labels", "sets" or "none"."""
    n, d = int(pick(rng, *_SIZES)), int(pick(rng, 1, 2, 3, 5))
    X, kind = table(rng, n, d)
    factor = scale(rng)
    X = np.abs(X) if is_positive else X
    X, container = contained(rng, X * factor, takes_sparse)
    words = [f"X: {kind} ({n}, {d}) times {factor:g}, {container}"]
    y, about = drawn_outputs(rng, outputs, n)
    data = Sample(X, y, None, [*words, about])
    if chance(rng, 0.25) and outputs != "none":
        weights = pick(rng, rng.uniform(0.1, 3, n), rng.integers(0, 3, n).astype(float), 10.0 ** rng.uniform(-6, 6, n))
        data.sample_weight = weights
        data.words.append(f"sample_weight: {weights.min():.2g} to {weights.max():.2g}")
        if not np.any(weights > 0):
            data.faults.append("all weights are zero")
    if chance(rng, 0.12):
        spoil(rng, data, outputs)
    return data


def drawn_outputs(rng, outputs, n):
    """Return outputs, and in words which."""
    if outputs == "none":
        return None, "no y"
    if outputs == "labels":
        y = rng.integers(0, 2, n)
        y[: min(2, n)] = [0, 1][: min(2, n)]
        return pick(rng, y, 2 * y - 1, np.array(["no", "yes"])[y], y.astype(bool), y.tolist()), "y: two classes"
    if outputs == "sets":
        return (rng.random((n, 4)) < 0.4).astype(pick(rng, float, int, np.float32)), "y: label sets (n, 4)"
    width = {"flat": 1, "vectors": int(pick(rng, 1, 2, 4)), "curves": int(pick(rng, 1, 2, 5, 9))}[outputs]
    y, kind = table(rng, n, width)
    factor = scale(rng)
    y = y * factor
    if outputs == "flat":
        y = y[:, 0]
    holes = ""
    if outputs == "curves" and width > 2 and chance(rng, 0.3):
        y = np.where(rng.random(y.shape) < 0.2, np.nan, y)
        y[:, 0] = np.where(np.isnan(y[:, 0]), 1.0, y[:, 0])
        return y, f"y: {kind} {y.shape} times {factor:g}, with gaps"
    y, container = contained(rng, y)
    return y, f"y: {kind}{holes} ({n}, {width}) times {factor:g}, {container}"


def spoil(rng, data, outputs):
    """Put one fault into the data; it may be refused, by an error that names the argument."""
    faults = ["nan X", "inf X", "no rows", "no columns", "flat X", "text X", "huge X", "complex X", "None X"]
    if outputs != "none":
        faults += ["nan y", "inf y", "short y", "None y", "text y", "huge y", "deep y"]
        faults += ["negative weight", "nan weight", "short weight", "zero weights", "text weight"]
    fault = pick(rng, *faults)
    what = fault.split()[1]
    data.faults.append(fault)
    data.words.append(f"fault: {fault}")
    if what in ("X", "rows", "columns"):
        data.X, data.y = _spoilt_inputs(rng, fault, data.X, data.y)
    elif what == "y":
        data.y = _spoilt_outputs(rng, fault, data.y)
    else:
        data.sample_weight = _spoilt_weights(rng, fault, len(np.atleast_1d(dense(data.X))))


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _spoilt_inputs(rng, fault, X, y):
    X = dense(X)
    if fault == "None X":
        return None, y
    if fault == "no rows":
        return X[:0], None if y is None else np.asarray(y)[:0]
    if fault == "no columns":
        return X[:, :0], y
    if fault == "flat X":
        return X[:, 0], y
    if fault == "text X":
        return np.full(X.shape, "a"), y
    if fault == "complex X":
        return X.astype(float) + 1j, y
    X = X.astype(float)
    X[rng.integers(X.shape[0]), rng.integers(X.shape[1])] = {"nan X": np.nan, "inf X": np.inf, "huge X": 1e300}[fault]
    return X, y


def _spoilt_outputs(rng, fault, y):
    y = np.asarray(y)
    if fault == "None y":
        return None
    if fault == "short y":
        return y[:-1]
    if fault == "text y":
        return np.full(y.shape, "a")
    if fault == "deep y":
        return np.zeros((*y.shape, 2, 2))
    if y.dtype.kind in "UO":
        return y
    y = y.astype(float)
    y.flat[rng.integers(y.size)] = {"nan y": np.nan, "inf y": np.inf, "huge y": 1e300}[fault]
    return y


def _spoilt_weights(rng, fault, n):
    weights = rng.uniform(0.5, 2, n)
    if fault == "short weight":
        return weights[:-1]
    if fault == "text weight":
        return ["a"] * n
    if fault == "zero weights":
        return 0 * weights
    weights[rng.integers(n)] = -1.0 if fault == "negative weight" else np.nan
    return weights
