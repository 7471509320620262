"""Large samples: agreement with the CPU, then time and memory of fits from features, and of exact ones.

python benchmarks/large.py cuda 1e6 1000 200     device, samples, landmarks, outputs
python benchmarks/large.py cpu 1e5 500 50        to a gap of 1e-4, the exact gap estimated from rows
python benchmarks/large.py exact 3e4 1000 5      the kernel in tiles, never stored, to an exact gap of 1e-4
python benchmarks/large.py exact:cuda 1e5 2000 20 1e-5 float32      to a gap of 1e-5, tiles in float32
"""

import json
import logging
import resource
import sys
import time
from typing import Any

import numpy as np

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.solvers import Krylov


def say(**fields: Any) -> None:
    print(json.dumps(fields, default=float), flush=True)


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
            there = there.cpu().numpy() if hasattr(there, "cpu") else there
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
        host_gib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)  # fmt: skip


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
    predicted = predicted.cpu().numpy() if hasattr(predicted, "cpu") else predicted
    error = np.sqrt(np.mean((predicted - truth[:20000]) ** 2) / np.mean(truth**2))
    say(part="thin", n=n, landmarks=size, outputs=p, seconds=seconds, cpu=cpu, gap=model.duality_gap_,
        certificate=model.certificate_, standard_error=getattr(model, "duality_gap_standard_error_", 0.0),
        thin_gap=model.history_[-1][1], n_iter=model.n_iter_,
        status=model.status_, error=error, predict=time.perf_counter() - start,
        host_gib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)  # fmt: skip


def main() -> None:
    device, n, size, p = sys.argv[1], *(int(float(text)) for text in sys.argv[2:5])
    kind, _, device = device.partition(":") if device.startswith("exact") else ("thin", "", device)
    if device in ("", "cpu"):
        arguments = np.asarray, lambda: None, n, size, p
        exact(*arguments) if kind == "exact" else timing(*arguments, tol=1e-4, certificate="sampled")
        return
    import torch

    def as_array(values: np.ndarray) -> Any:
        return torch.as_tensor(values, device=device)

    if kind == "exact":
        exact(as_array, torch.cuda.synchronize, n, size, p, *map(float, sys.argv[5:6]), *sys.argv[6:7])
        say(part="memory", device_gib=torch.cuda.max_memory_allocated() / 2**30)
        return
    agreement(as_array)
    for count in (n // 10, n):
        timing(as_array, torch.cuda.synchronize, count, size, p)
        say(part="memory", device_gib=torch.cuda.max_memory_allocated() / 2**30)


if __name__ == "__main__":
    main()
