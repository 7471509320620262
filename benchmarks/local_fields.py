"""Fields whose values depend on what is around them: local maps, rollouts, and the map of whole fields.

python benchmarks/local_fields.py [--seeds 3] [--first 0] [--data operator ks burgers advection]

Prints the relative L2 error on 40 new fields, seconds of CPU and what was chosen, for each seed; for equations also the
errors of rollouts, and how many of 100 steps stay within a relative error of .5. Pairs to
learn from do not follow each other.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable

import numpy as np

from fenchel import FieldRegressor

SIDE = 32


def waves(n: int, rng: np.random.Generator) -> np.ndarray:
    frequencies = np.fft.fftfreq(SIDE, 1 / SIDE)
    amplitude = (1 + frequencies[:, None] ** 2 + frequencies**2) ** -1.5
    fields = np.fft.ifft2(np.fft.fft2(rng.standard_normal((n, SIDE, SIDE))) * amplitude).real
    return np.asarray(fields / fields.std())


def nonlinear(X: np.ndarray) -> np.ndarray:
    """Return products of derivatives and a saturated diffusion."""
    first, second = ((np.roll(X, -1, axis) - np.roll(X, 1, axis)) / 2 * SIDE / 6 for axis in (1, 2))
    laplace = sum(np.roll(X, step, axis) for axis in (1, 2) for step in (-1, 1)) - 4 * X
    Y = X * first + 0.5 * second**2 - np.tanh(2 * X) * laplace * SIDE / 3
    return np.asarray(Y / 20)


def chaotic(X: np.ndarray, duration: float = 0.5, length: float = 22.0) -> np.ndarray:
    """Return solutions of the Kuramoto-Sivashinsky equation on a circle some time later, by exponential Euler steps."""
    steps, waves_ = round(duration / 0.005), 2 * np.pi * np.fft.rfftfreq(X.shape[1], length / X.shape[1])
    linear = waves_**2 - waves_**4
    decay = np.exp(linear * duration / steps)
    weight = np.where(linear == 0, duration / steps, (decay - 1) / np.where(linear == 0, 1, linear))
    spectrum = np.fft.rfft(X)
    for _ in range(steps):
        spectrum = decay * spectrum - weight * 0.5j * waves_ * np.fft.rfft(np.fft.irfft(spectrum, n=X.shape[1]) ** 2)
    return np.asarray(np.fft.irfft(spectrum, n=X.shape[1]))


def burgers(X: np.ndarray, duration: float = 0.1, steps: int = 20) -> np.ndarray:
    """Return solutions of Burgers' equation on a circle some time later, by exponential Euler steps."""
    points = X.shape[1]
    waves_, steps = np.fft.rfftfreq(points, 1 / points), 10 * steps
    decay, step = np.exp(-0.1 * waves_**2 * duration / steps), duration / steps
    kept, spectrum = waves_ <= points / 3, np.fft.rfft(X)
    for _ in range(steps):
        square = np.fft.rfft(np.fft.irfft(spectrum, n=points) ** 2)
        spectrum = decay * (spectrum - 0.5j * step * waves_ * kept * square)
    return np.asarray(np.fft.irfft(spectrum, n=points))


def advection(X: np.ndarray, points: float = 2.5) -> np.ndarray:
    """Return fields that have moved on a circle."""
    return np.asarray(np.fft.irfft(np.fft.rfft(X) * np.exp(-2j * np.pi * points * np.fft.rfftfreq(X.shape[1]))))


def smooth(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return periodic functions of 64 points without mean."""
    frequencies = np.fft.rfftfreq(64, 1 / 64)
    amplitude = np.where((frequencies > 0) & (frequencies <= 20), 1 / ((2 * np.pi * frequencies) ** 2 + 25), 0)
    X = np.fft.irfft(amplitude * (rng.standard_normal((n, 33)) + 1j * rng.standard_normal((n, 33))))
    return np.asarray(X / X.std())


def aged(X: np.ndarray) -> np.ndarray:
    """Return solutions of Burgers' equation of twenty ages."""
    return np.concatenate([burgers(X[age::20], 0.1 * age, 20 * age) if age else X[::20] for age in range(20)])


def relative(predicted: np.ndarray, truth: np.ndarray) -> np.ndarray:
    axes = tuple(range(1, truth.ndim))
    return np.asarray(np.sqrt(np.sum((predicted - truth) ** 2, axes) / np.sum(truth**2, axes)))


def report(
    name: str, X: np.ndarray, law: Callable[[np.ndarray], np.ndarray], models: dict[str, FieldRegressor], steps: int = 0
) -> None:
    X, new = X[:-40], X[-40:]
    Y, truth = law(X), law(new)
    for label, model in models.items():
        start = time.process_time()
        model.fit(X, Y)
        row = {"data": name, "model": label, "seconds": round(time.process_time() - start, 1)}
        row |= {"error": float(relative(model.predict(new), truth).mean()), "gap": model.estimator_.duality_gap_}
        row |= {"neighbourhood": repr(model.neighbourhood_), "chosen for": model.steps_}
        if steps:
            truths, errors = new, []
            for state in np.moveaxis(model.rollout(new, steps), 1, 0):
                truths = law(truths)
                errors.append(relative(state, truths))
            row["rollout"] = [float(np.mean(errors[step - 1])) for step in (10, 50, steps)]
            row["valid steps"] = float(np.mean(np.argmax(np.vstack([errors, np.ones(len(new))]) > 0.5, axis=0)))
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--data", nargs="+", default=["operator", "ks", "burgers", "advection"])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in range(given.first, given.first + given.seeds):
        rng = np.random.default_rng(seed)
        both = {"default": FieldRegressor(), "whole fields": FieldRegressor(local=False)}
        if "operator" in given.data:
            report("local operator, 32 x 32", waves(240, rng), nonlinear, both)
        all_three = both | {"for rollouts": FieldRegressor(steps=50)}
        if "ks" in given.data:
            states = chaotic(np.cumsum(rng.standard_normal((240, 64)), axis=1) % 1, 50.0)
            report("Kuramoto-Sivashinsky", states, chaotic, all_three, 100)
        if "burgers" in given.data:
            report("Burgers", rng.permutation(aged(smooth(240, rng))), burgers, all_three, 100)
        if "advection" in given.data:
            report("advection", smooth(240, rng), advection, all_three, 100)
