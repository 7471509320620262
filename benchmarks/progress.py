"""How near the share of the work that a fit tells is to the share of its time.

python benchmarks/progress.py 2000        samples; 10 inputs, 5 outputs, and the same with wrong outputs
"""

import sys
import time
import warnings

import numpy as np

from fenchel import (
    ConformalRegressor,
    LearnedMetricRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressorCV,
    RobustRefit,
)


def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and outputs with interactions and noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 10))
    return X, np.sin(3 * X[:, :5]) + 0.3 * X[:, 5:] * X[:, :5] + 0.1 * rng.standard_normal((n, 5))


def followed(name: str, model: object, X: np.ndarray, y: np.ndarray) -> None:
    """Fit, and print when the first unit of work was told, and what was told at each quarter of the time."""
    seen, start = [(0.0, 0.0)], time.process_time()
    model.set_params(progress=lambda done, total: seen.append((time.process_time() - start, done / total)))
    model.fit(X, y)
    seconds = time.process_time() - start
    at, done = np.array(seen).T
    quarters = [f"{np.max(done[at <= share * seconds]):.0%}" for share in (0.25, 0.5, 0.75)]
    print(f"{name:<30} {seconds:7.2f} s  first {at[1]:5.2f} s  told at quarters of the time {' '.join(quarters)}")


def main(n: int) -> None:
    """Follow the fits of classes without arguments."""
    warnings.simplefilter("ignore")
    X, Y = drawn(n)
    wrong = Y + 5 * (np.arange(n) % 7 == 0)[:, None] * np.random.default_rng(1).standard_normal(Y.shape)
    OperatorKernelRegressorCV().fit(X[:50], Y[:50])  # loads modules
    followed("OperatorKernelRegressorCV", OperatorKernelRegressorCV(), X, Y)
    followed("the same, wrong outputs", OperatorKernelRegressorCV(), X, wrong)
    followed("one output", OperatorKernelRegressorCV(), X, Y[:, 0])
    followed("QuantileFunctionRegressorCV", QuantileFunctionRegressorCV(), X, Y[:, 0])
    followed("ConformalRegressor, cv+", ConformalRegressor(method="cv+"), X, Y)
    followed("RobustRefit", RobustRefit(), X, wrong)
    followed("LearnedMetricRegressor", LearnedMetricRegressor(), X, Y[:, 0])


if __name__ == "__main__":
    main(int(float(sys.argv[1])))
