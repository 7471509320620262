"""Noisy curves at 5 to 15 points of their own: how far smoothed curves are from the true ones.

Beside the conditional expectations of ``fenchel`` are those with the true mean and covariance, which nothing can beat,
and linear interpolation.

    python benchmarks/sparse_curves.py
"""

import time

import numpy as np

from fenchel.data.functional import as_curves
from fenchel.model.smoothed_curves import CurveSmoother

SIZES, SEEDS, NOISE = (60, 200, 500), 3, 0.3


def shapes(t: np.ndarray) -> np.ndarray:
    """Return the four components at some points."""
    waves = [1.5 * np.sin(np.pi * t), np.sin(2 * np.pi * t), 0.6 * np.cos(3 * np.pi * t), 0.3 * np.sin(5 * np.pi * t)]
    return np.stack(waves, axis=-1)


def drawn(n: int, rng: np.random.Generator) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return scores and sparse curves."""
    scores, pairs = rng.standard_normal((n, 4)), []
    for row in scores:
        at = np.sort(rng.uniform(size=rng.integers(5, 16)))
        pairs.append((at, 2 * at + shapes(at) @ row + NOISE * rng.standard_normal(len(at))))
    return scores, pairs


def expected(pairs: list[tuple[np.ndarray, np.ndarray]], grid: np.ndarray) -> np.ndarray:
    """Return the conditional expectations with the true mean and covariance."""
    rows = []
    for at, values in pairs:
        gram = shapes(at) @ shapes(at).T + NOISE**2 * np.eye(len(at))
        rows.append(2 * grid + shapes(grid) @ shapes(at).T @ np.linalg.solve(gram, values - 2 * at))
    return np.array(rows)


def main() -> None:
    """Print root mean square errors of the curves."""
    for n in SIZES:
        errors: dict[str, list[float]] = {}
        seconds = list[float]()
        for seed in range(SEEDS):
            scores, pairs = drawn(n, np.random.default_rng(seed))
            curves, start = as_curves(pairs), time.process_time()
            smoother = CurveSmoother.of(curves)
            smoothed = smoother(curves)[:, :, 0]
            seconds.append(time.process_time() - start)
            linear = np.array([np.interp(smoother.grid, *pair) for pair in pairs])
            truth = 2 * smoother.grid + scores @ shapes(smoother.grid).T
            ways = {"smoothed": smoothed, "known covariance": expected(pairs, smoother.grid), "interpolated": linear}
            for name, rows in ways.items():
                errors.setdefault(name, []).append(float(np.sqrt(np.mean((rows - truth) ** 2))))
        told = {name: f"{np.mean(one):.3f} ± {np.std(one) / SEEDS**0.5:.3f}" for name, one in errors.items()}
        print(n, told, f"CPU s {np.mean(seconds):.1f}", flush=True)


if __name__ == "__main__":
    main()
