"""Large samples from features: agreement with the CPU, then time and memory of thin fits on a device.

python benchmarks/large.py cuda 1e6 1000 200     device, samples, landmarks, outputs
python benchmarks/large.py cpu 1e5 500 50
"""

import json
import resource
import sys
import time
from typing import Any

import numpy as np

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square


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


def timing(as_array: Any, wait: Any, n: int, size: int, p: int) -> None:
    """Fit one thin problem, warm, and report seconds and the error to the truth."""
    X, Y, truth = sample(n, p)
    X, Y = as_array(X), as_array(Y)
    model = OperatorKernelRegressor(
        Gaussian(0.02), loss=Huber(p**0.5 / 2), lam=1e-6, approximation=Nystrom(size, "uniform")
    )
    model.fit(X[:5000], Y[:5000])
    wait()
    start = time.perf_counter()
    model.fit(X, Y)
    wait()
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    predicted = model.predict(X[:20000])
    wait()
    predicted = predicted.cpu().numpy() if hasattr(predicted, "cpu") else predicted
    error = np.sqrt(np.mean((predicted - truth[:20000]) ** 2) / np.mean(truth**2))
    say(part="thin", n=n, landmarks=size, outputs=p, seconds=seconds, gap=model.duality_gap_, n_iter=model.n_iter_,
        status=model.status_, error=error, predict=time.perf_counter() - start,
        host_gib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)  # fmt: skip


def main() -> None:
    device, n, size, p = sys.argv[1], *(int(float(text)) for text in sys.argv[2:5])
    if device == "cpu":
        timing(np.asarray, lambda: None, n, size, p)
        return
    import torch

    def as_array(values: np.ndarray) -> Any:
        return torch.as_tensor(values, device=device)

    agreement(as_array)
    for count in (n // 10, n):
        timing(as_array, torch.cuda.synchronize, count, size, p)
        say(part="memory", device_gib=torch.cuda.max_memory_allocated() / 2**30)


if __name__ == "__main__":
    main()
