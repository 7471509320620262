"""Large samples: agreement with the CPU, time and memory of fits from features, of exact ones, and of searches.

python benchmarks/large.py cuda 1e6 1000 200     device, samples, landmarks, outputs
python benchmarks/large.py cpu 1e5 500 50        to a gap of 1e-4, the exact gap estimated from rows
python benchmarks/large.py peer 1e5 500 50       the same beside Nystroem and one HuberRegressor for each output
python benchmarks/large.py grows cpu             seconds against the number of samples, thin and exact
python benchmarks/large.py shares cuda           products of fits, of what the device can do
python benchmarks/large.py families              the problems of the other benchmarks, in tiles and with a stored matrix
python benchmarks/large.py exact 3e4 1000 5      the kernel in tiles, never stored, to an exact gap of 1e-4
python benchmarks/large.py exact:cuda 1e5 2000 20 1e-5 float32      to a gap of 1e-5, tiles in float32
python benchmarks/large.py search:cuda 1e6 5     the class without arguments on samples, outputs; smooth outputs
python benchmarks/large.py search:cuda 1e6 20 wrong      a tenth of the outputs wrong
python benchmarks/large.py draw FILE             JSON lines of method, n, seconds, error: docs/_static/large.svg
python benchmarks/large.py rivals 6e4 3000       one fit each of rivals in given settings, Nystroem with 3000 landmarks
"""

import json
import logging
import os
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sizes import smooth
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import HuberRegressor, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline

from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel._array import host
from fenchel.approximations import Nystrom
from fenchel.approximations.landmark_features import inverse_root
from fenchel.kernels import Gaussian, Laplacian, Matern
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.operators import Streamed, kronecker
from fenchel.operators.products import fused_products, kernel_product
from fenchel.solvers import Auto, Krylov

FIGURE = Path(__file__).parents[1] / "docs" / "_static" / "large.svg"


def say(**fields: Any) -> None:
    print(json.dumps(fields, default=float), flush=True)


def memory() -> dict[str, float]:
    """Return the most that the process, and torch on a device, have held."""
    found = {"host_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        found["device_gib"] = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.reset_peak_memory_stats()
    return found


def sample(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, outputs of which a tenth is wrong, and the truth."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 20))
    A, B = rng.standard_normal((20, 40)) / 20**0.5, rng.standard_normal((40, p)) / 40**0.5
    truth = np.sin(2 * X @ A) @ B
    wrong = rng.random(n) < 0.1
    return X, truth + 0.1 * rng.standard_normal((n, p)) + 5 * wrong[:, None] * rng.standard_normal((n, p)), truth


def agreement(as_array: Any) -> None:
    """Compare small fits, of stored and of thin kernels, with those of NumPy."""
    X, Y, _ = sample(300, 4)
    for loss in (Square(), Huber(1.0), EpsilonRidge(0.5), EpsilonSVR(0.5), Huber(0.3, p=1)):
        for kernel, approximation in ((Gaussian(0.02), None), ("linear", None), (Gaussian(0.02), Nystrom(50))):
            model = OperatorKernelRegressor(kernel, loss=loss, lam=1e-4, tol=1e-9, approximation=approximation)
            here = model.fit(X, Y).predict(X)
            there = model.fit(as_array(X), as_array(Y)).predict(as_array(X))
            there = host(there)
            say(part="agreement", loss=repr(loss), kernel=repr(kernel), thin=approximation is not None,
                difference=np.abs(here - there).max(), gap=model.duality_gap_)  # fmt: skip


def exact(as_array: Any, wait: Any, n: int, size: int, p: int, tol: float = 1e-4, tiles: str = "float32") -> None:
    """Solve one exact problem whose Gram matrix is never stored; the logger tells passes and gaps."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    X, Y, _ = sample(n, p)
    model = OperatorKernelRegressor(
        Gaussian(0.02), loss=Huber((p / 20) ** 0.5), lam=1e-5, tol=tol, solver=Krylov(n_components=size, tiles=tiles)
    )
    arrays, start, cpu = (as_array(X), as_array(Y)), time.perf_counter(), time.process_time()
    model.fit(*arrays)
    wait()
    say(part="exact", n=n, landmarks=size, outputs=p, tiles=tiles, seconds=time.perf_counter() - start,
        cpu=time.process_time() - cpu, gap=model.duality_gap_, certificate=model.certificate_, status=model.status_,
        **memory())  # fmt: skip


def search(as_array: Any, wait: Any, n: int, p: int, kind: str = "smooth") -> None:
    """Fit the class without arguments; the error is that of 2000 new inputs, relative to the mean."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    X, Y, X_new, truth = smooth(n, 0) if kind == "smooth" else of_wrong(n, p)
    arrays, start, cpu = (as_array(X), as_array(Y)), time.perf_counter(), time.process_time()
    model = OperatorKernelRegressorCV().fit(*arrays)
    wait()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    say(part="search", data=kind, n=n, outputs=Y.shape[1], seconds=seconds, cpu=cpu, gap=model.duality_gap_,
        certificate=model.certificate_, status=model.status_, loss=repr(model.best_loss_),
        kernel=repr(model.best_kernel_), ridge=model.best_lam_ * n,
        error=distance(host(model.predict(as_array(X_new))), truth), **memory())  # fmt: skip


def distance(found: np.ndarray, truth: np.ndarray) -> float:
    """Return the root mean squared distance to noise-free outputs, over that of their mean."""
    return float(np.sqrt(np.mean((found - truth) ** 2) / np.mean((truth - truth.mean(axis=0)) ** 2)))


def of_wrong(n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a training sample with wrong outputs, and 2000 new inputs with their noise-free outputs."""
    X, Y, truth = sample(n + 2000, p)
    return X[:n], Y[:n], X[n:], truth[n:]


def rivals(n: int, size: int) -> None:
    """Fit rivals to the smooth sample of ``search``, once for each of a few settings."""
    X, Y, X_new, truth = smooth(n, 0)
    boosting = [HistGradientBoostingRegressor(max_iter=count, early_stopping=False) for count in (300, 1000)]
    models = [
        *(MultiOutputRegressor(model) for model in boosting),
        RandomForestRegressor(max_features=0.4, random_state=0),
        ExtraTreesRegressor(random_state=0),
        *(
            make_pipeline(Nystroem(gamma=gamma, n_components=size, random_state=0), Ridge(alpha))
            for gamma in (0.01, 0.0178, 0.0316)
            for alpha in (1e-2, 1e-4)
        ),
    ]
    for model in models:
        start = time.process_time()
        found = model.fit(X, Y).predict(X_new)
        cpu = time.process_time() - start
        say(part="rival", model=" ".join(repr(model).split()), n=n, cpu=cpu,
            error=distance(found, truth))  # fmt: skip


def draw(file: str) -> None:
    """Draw errors against seconds, from a file of JSON lines."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "fenchel", "svg.fonttype": "none"})
    with open(file, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
    for k, name in enumerate(dict.fromkeys(row["method"] for row in rows)):
        own = [row for row in rows if row["method"] == name]
        width, style = 2.5 if name.startswith("fenchel") else 1.2, "s--" if "GPU" in name else "o-"
        ax.loglog(
            [row["seconds"] for row in own], [row["error"] for row in own], style, color=f"C{k}", lw=width, label=name
        )
        for row in own:
            text = f"{row['n'] // 1000}" if row["n"] < 10**6 else "1 000"
            ax.annotate(text, (row["seconds"], row["error"]), xytext=(4, 4), textcoords="offset points", fontsize=7)
    ax.set(xlabel="seconds", ylabel="error")
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(FIGURE, metadata={"Date": None})


def timing(as_array: Any, wait: Any, n: int, size: int, p: int, **options: Any) -> None:
    """Fit one thin problem, warm, and report seconds and the error to the truth."""
    X, Y, truth = sample(n, p)
    X, Y = as_array(X), as_array(Y)
    model = OperatorKernelRegressor(
        Gaussian(0.02), loss=Huber(p**0.5 / 2), lam=1e-6, approximation=Nystrom(size, "uniform"), **options
    )
    model.fit(X[:5000], Y[:5000])
    wait()
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(X, Y)
    wait()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    start = time.perf_counter()
    predicted = model.predict(X[:20000])
    wait()
    error = np.sqrt(np.mean((host(predicted) - truth[:20000]) ** 2) / np.mean(truth**2))
    say(part="thin", n=n, landmarks=size, outputs=p, seconds=seconds, cpu=cpu, gap=model.duality_gap_,
        certificate=model.certificate_, standard_error=getattr(model, "duality_gap_standard_error_", 0.0),
        thin_gap=model.history_[-1][1], n_iter=model.n_iter_,
        status=model.status_, error=error, predict=time.perf_counter() - start,
        **memory())  # fmt: skip


def peer(n: int, size: int, p: int, measured: int = 2) -> None:
    """Fit on wrong and on clean outputs, then scikit-learn's own way for some outputs; errors are on new samples."""
    X, Y, truth = sample(n + 20_000, p)
    rng = np.random.default_rng(1)
    clean = truth + 0.1 * rng.standard_normal(truth.shape)
    train, test = slice(0, n), slice(n, None)

    def error(predicted: np.ndarray) -> float:
        some = truth[test, : predicted.shape[1]]
        return float(np.sqrt(np.mean((predicted - some) ** 2) / np.mean(some**2)))

    for name, outputs in (("a tenth wrong", Y), ("clean", clean)):
        model = OperatorKernelRegressor(
            Gaussian(0.02), loss=Huber(p**0.5 / 2), lam=1e-6, tol=1e-4,
            approximation=Nystrom(size, "uniform"), certificate="sampled",
        )  # fmt: skip
        start, cpu = time.perf_counter(), time.process_time()
        model.fit(X[train], outputs[train])
        say(part="ours", data=name, seconds=time.perf_counter() - start, cpu=time.process_time() - cpu,
            thin_gap=model.history_[-1][1], error=error(model.predict(X[test])),
            first=error(model.predict(X[test])[:, :measured]))  # fmt: skip
    start, cpu = time.perf_counter(), time.process_time()
    features = Nystroem(gamma=0.02, n_components=size, random_state=0).fit(X[train])
    F = features.transform(X[train])
    seconds, own = time.perf_counter() - start, time.process_time() - cpu
    F_test, predicted = features.transform(X[test]), []
    for column in range(measured):
        start, cpu = time.perf_counter(), time.process_time()
        other = HuberRegressor(alpha=1e-6 * n, max_iter=100).fit(F, Y[train, column])
        say(part="one HuberRegressor", seconds=time.perf_counter() - start, cpu=time.process_time() - cpu,
            n_iter=other.n_iter_)  # fmt: skip
        seconds += (time.perf_counter() - start) * p / measured
        own += (time.process_time() - cpu) * p / measured
        predicted.append(other.predict(F_test))
    say(part="scikit-learn", outputs=p, measured=measured, seconds=seconds, cpu=own,
        first=error(np.stack(predicted, axis=1)))  # fmt: skip


def grows(device: str) -> None:
    """Time fits at doubled numbers of samples."""
    as_array, wait = arrays_on(device)
    n, size, p, exact_n, exact_size = (
        (12_500, 500, 20, 3_750, 500) if device == "cpu" else (125_000, 1000, 200, 62_500, 2000)
    )
    for k in range(4):
        timing(as_array, wait, n * 2**k, size, p, tol=1e-4)
    exact(as_array, wait, exact_n, exact_size, 20)  # to warm up
    for k in range(4):
        exact(as_array, wait, exact_n * 2**k, exact_size, 20)


def shares(device: str) -> None:
    """Measure what the device can do, and what the products of a thin and of an exact fit do of it."""
    import torch

    def seconds(work: Any, count: int = 3) -> float:
        work()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            work()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / count

    for dtype in (torch.float64, torch.float32):
        A = torch.randn(8192, 8192, device=device, dtype=dtype)
        say(part="peak", dtype=str(dtype), tera_flops=2 * 8192**3 / seconds(lambda A=A: A @ A) / 1e12)
    A = torch.randn(2**29, device=device, dtype=torch.float64)
    say(part="peak", giga_bytes=2 * 8 * 2**29 / seconds(lambda: A.clone()) / 1e9)
    n, D, p = 1_000_000, 1000, 200
    F, B = (torch.randn(n, m, device=device, dtype=torch.float64) for m in (D, p))
    for name, took in (("F'B", seconds(lambda: F.T @ B)), ("F C", seconds(lambda: F @ B[:D]))):
        say(part="thin product", what=name, seconds=took, tera_flops=2 * n * D * p / took / 1e12,
            giga_bytes=8 * n * (D + p) / took / 1e9)  # fmt: skip
    n, d, p = 200_000, 20, 20
    X, A = (torch.randn(n, m, device=device, dtype=torch.float64) for m in (d, p))
    some = torch.arange(0, n, 1000, device=device)
    names = ("halves", "float32", "float64", "tiles")
    for kernel in (Gaussian(0.02), Laplacian(0.02), Matern(5.0, 0.5), Matern(5.0, 1.5), Matern(5.0, 2.5)):
        ways = [*fused_products(kernel, X, None, True), *fused_products(kernel, X, None, False)]
        if isinstance(kernel, Gaussian):
            ways.append(lambda A: kernel_product(Gaussian(0.02), X, None, A))
        expected, most = kernel(X[some], X) @ A, kernel(X[some], X) @ A.abs()
        for name, way in zip(names, ways, strict=False):
            took = seconds(lambda way=way: way(A), 1)
            say(part="exact product", kernel=repr(kernel), way=name, seconds=took, at_a_million=25 * took,
                error=((way(A)[some] - expected).abs() / most).max(), tera_flops=2 * n**2 * (d + p) / took / 1e12,
                tera_exp=n**2 / took / 1e12)  # fmt: skip


class Lookup:
    """A kernel on places in a matrix, so that any Gram matrix can be streamed."""

    def __init__(self, K: np.ndarray) -> None:
        self.K = K

    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        rows = X[:, 0].astype(int)
        return self.K[np.ix_(rows, rows if Z is None else Z[:, 0].astype(int))]

    def diag(self, X: np.ndarray) -> np.ndarray:
        return np.diag(self.K)[X[:, 0].astype(int)]

    def product(self, X: np.ndarray, Z: np.ndarray | None, A: np.ndarray) -> None:
        return None


def families(tol: float = 1e-6) -> None:
    """Solve the members of the benchmark families in tiles, and compare objectives with those of a stored matrix."""
    sys.path.insert(0, os.path.dirname(__file__))
    from families import build, specs

    for spec in specs():
        member = build(spec)
        problem, K = member.problem(), member.K
        best = Auto().solve(problem, 1e-10).certificate
        places = np.arange(len(K), dtype=float)[:, None]
        some = np.random.default_rng(0).choice(len(K), max(1, len(K) // 4), replace=False)
        features = K[:, some] @ inverse_root(K[np.ix_(some, some)])
        gram = kronecker(Streamed(Lookup(K), places, features=lambda features=features: features), member.operator)
        size = max(abs(best.primal), 1e-10 * problem.value_at_zero)
        cpu = time.process_time()
        found = Krylov().solve(replace(problem, gram=gram), tol)
        say(part="family", member=str(spec), gap=found.certificate.relative_gap, status=found.status.name,
            excess=(found.certificate.primal - best.primal) / size, best_gap=best.relative_gap,
            passes=gram.terms[0][0].n_passes, cpu=time.process_time() - cpu)  # fmt: skip


def arrays_on(device: str) -> tuple[Any, Any]:
    """Return how arrays get to a device, and how to wait for it."""
    if device in ("", "cpu"):
        return np.asarray, lambda: None
    if device == "cupy":
        import cupy

        return cupy.asarray, cupy.cuda.Device().synchronize
    import torch

    return lambda values: torch.as_tensor(values, device=device), torch.cuda.synchronize


def main() -> None:
    kind, rest = sys.argv[1], sys.argv[2:]
    if kind in ("families", "grows", "shares"):
        return {"families": families, "grows": grows, "shares": shares}[kind](*rest)
    if kind == "draw":
        return draw(rest[0])
    if kind == "rivals":
        return rivals(*(int(float(text)) for text in rest))
    if kind.startswith("search"):
        as_array, wait = arrays_on(kind.partition(":")[2])
        if ":" in kind:
            exact(as_array, wait, 5000, 500, 20)  # compiles the kernels
        return search(as_array, wait, *(int(float(text)) for text in rest[:2]), *rest[2:])
    n, size, p = (int(float(text)) for text in rest[:3])
    if kind == "peer":
        return peer(n, size, p)
    kind, _, device = kind.partition(":") if kind.startswith("exact") else ("thin", "", kind)
    as_array, wait = arrays_on(device)
    if kind == "exact":
        if device:
            exact(as_array, wait, 5000, 500, p, *map(float, rest[3:4]), *rest[4:5])  # compiles the kernels
        return exact(as_array, wait, n, size, p, *map(float, rest[3:4]), *rest[4:5])
    if device == "cpu":
        return timing(as_array, wait, n, size, p, tol=1e-4, certificate="sampled")
    agreement(as_array)
    for count in (n // 10, n):
        timing(as_array, wait, count, size, p)


if __name__ == "__main__":
    main()
