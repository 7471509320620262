"""The engine on a CUDA device: the same numbers as on the host, and the time of a large Huber fit.

Run ``python benchmarks/cuda.py`` on a machine with torch and a GPU (CuPy is tried too if it is there).
"""

import json
import time

import numpy as np
import torch

from fenchel import OperatorKernelRegressor
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.operators import Dense
from fenchel.problem import DualProblem
from fenchel.solvers import APGD, ClosedForm, DouglasRachford, RowNewton


def say(**fields):
    print(json.dumps(fields), flush=True)


def parity(convert, back, name):
    """Fit on the device and on the host: predictions, dtype and device must agree."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    Y = np.sin(X @ rng.standard_normal((4, 6))) + 0.1 * rng.standard_normal((300, 6))
    Y[:20] += 10
    for loss in (Square(), Huber(0.5), EpsilonRidge(0.3), EpsilonSVR(0.3), Huber(0.5, p=1), Huber(0.5, p=1.5)):
        for solver in ("auto", ClosedForm(), DouglasRachford(), RowNewton(), APGD()):
            model = OperatorKernelRegressor(Gaussian(0.3), loss=loss, lam=1e-3, tol=1e-8, solver=solver)
            try:
                host = model.fit(X, Y).predict(X)
            except ValueError:
                continue  # the solver says why it does not take this loss
            found = model.fit(convert(X), convert(Y)).predict(convert(X))
            error = float(np.max(np.abs(back(found) - host)))
            say(check=name, loss=repr(loss), solver=repr(solver), gap=model.duality_gap_, error=error)
            assert type(found) is type(convert(X)), type(found)
            assert error < 1e-3 and model.duality_gap_ <= 1e-8, (loss, solver, error, model.duality_gap_)


def large(n, lam, dtype=torch.float64):
    """Time a Huber fit with a full-rank output factor."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    points = torch.randn((n, 30), generator=generator, device="cuda", dtype=dtype)
    outputs = points[:, :10] @ torch.randn((10, 20), generator=generator, device="cuda", dtype=dtype)
    outputs = outputs + 0.5 * torch.randn((n, 20), generator=generator, device="cuda", dtype=dtype)
    K, K_Y = Gaussian(0.02)(points), Gaussian(0.02)(outputs)
    V = torch.linalg.cholesky(K_Y + 1e-10 * torch.eye(n, device="cuda", dtype=dtype))
    ridge = ClosedForm().solve(DualProblem.build(Dense(K), V, Square(), lam))
    kappa = float(torch.quantile(torch.linalg.vector_norm(ridge.duals, dim=1), 0.7))
    for attempt in ("cold", "again"):
        problem = DualProblem.build(Dense(K), V, Huber(kappa), lam)
        torch.cuda.synchronize()
        start = time.perf_counter()
        solution = RowNewton().solve(problem, tol=1e-8)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        gap = solution.certificate.relative_gap
        # Cholesky, two n × n × n solves and two products for each step, and one product for the certificate
        flops = solution.n_iter * (1 / 3 + 2 + 2 + 2) * n**3
        saturated = float(torch.mean((torch.linalg.vector_norm(solution.duals, dim=1) > 0.999 * kappa).double()))
        say(n=n, lam=lam, kappa=kappa, run=attempt, seconds=seconds, gap=gap, steps=solution.n_iter,
            status=solution.status.name, saturated=saturated, tflops=flops / seconds / 1e12,
            gaps=[c.relative_gap for _, c in solution.history])  # fmt: skip


def peak(dtype):
    """Measure the rate of a large matrix product."""
    a = torch.randn((8192, 8192), device="cuda", dtype=dtype)
    a @ a
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(5):
        a @ a
    torch.cuda.synchronize()
    return 5 * 2 * 8192**3 / (time.perf_counter() - start) / 1e12


if __name__ == "__main__":
    say(device=torch.cuda.get_device_name(), float64_peak=peak(torch.float64))
    for lam in (1e-4, 1e-6):
        large(6974, lam)
    parity(lambda a: torch.asarray(a, device="cuda"), lambda a: a.cpu().numpy(), "torch")
    try:
        import cupy
    except ImportError:
        say(check="cupy", skipped="not installed")
    else:
        parity(cupy.asarray, cupy.asnumpy, "cupy")
