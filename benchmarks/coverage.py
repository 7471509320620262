"""How often prediction bands contain whole curves, and how wide they are.

    python benchmarks/coverage.py [simulated] [robust] [wrong] [replicates] [scattered] [real] [quantile] [drift]
        [regions] [small] [time]
        [--replications 1000] [--seed 0] [--sizes 100 300 1000]

``simulated``: n = 100, 300, 1000; square, Huber and epsilon losses; noise of one size, and noise whose size depends on
the input (by a factor of 55) and on the point (by one of 6). A band that knew that size would have .49 of the width of
the constant one. ``robust``: a tenth of the curves is replaced, in the training and in the calibration part. ``wrong``:
one of two outputs is wrong in a twentieth of the samples. ``replicates``: four scans of each specimen, with and without
their labels. ``scattered``: six points of its own for each curve. ``real``: curves of DTI, lip and speech, over 20
random splits. ``quantile``: intervals of ``QuantileFunctionRegressor`` before and after the calibration. ``drift``:
blocks in the order of time, with and without ``update``. ``regions``: volumes of ellipsoids of
several outputs. ``small``: jackknife+ with local widths at n = 30. ``time``:
jackknife+ against one fit, and the calibration of 10 000 samples.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fenchel import (
    ConformalRegressor,
    FunctionalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
)
from fenchel.approximations import Nystrom
from fenchel.conformal.band import Ellipsoid
from fenchel.datasets import (
    load_air_quality,
    load_bike_sharing,
    load_dti,
    load_lip_emg,
    load_mulan_regression,
    load_speech,
    make_functional,
)
from fenchel.kernels import Gaussian, Standardized
from fenchel.losses import EpsilonRidge, Huber

POINTS = np.linspace(0, 1, 20)
SHAPES = np.stack([np.cos(np.pi * k * POINTS) / (1 + k) for k in range(3)])
LOSSES = {"square": "square", "huber": Huber(0.1), "epsilon": EpsilonRidge(0.02)}
N_NEW = 100
REGIONS = ("rf1", "edm", "slump", "atp1d", "oes97", "wq")
SPEECH = ("LP", "LA", "TBCL", "TBCD", "VEL", "GLO", "TTCL", "TTCD")


def draw(n: int, rng: np.random.Generator, is_local: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and curves."""
    X = rng.uniform(-1, 1, (n, 2))
    size = np.exp(2 * X[:, :1]) * (0.2 + np.sin(np.pi * POINTS) ** 2) if is_local else 1.0
    return X, np.sin(2 * np.pi * POINTS + 2 * X[:, :1]) + 0.1 * size * (rng.standard_normal((n, 3)) @ SHAPES)


def band_of(model: Any, sample: tuple[Any, Any], new: tuple[Any, Any]) -> tuple[float, float]:
    """Return the share of new outputs inside, and the mean width."""
    band = model.fit(*sample).predict_interval(new[0])
    return float(np.mean(band.contains(new[1]))), float(np.mean(band.width))


def summary(pairs: list[tuple[float, float]]) -> str:
    """Return the mean coverage with its standard error, and the mean width."""
    shares, widths = np.array(pairs).T
    return f"{100 * shares.mean():.1f} ± {100 * shares.std() / np.sqrt(len(shares)):.1f} %, width {widths.mean():.3f}"


def simulated(replications: int, seed: int, sizes: tuple[int, ...] = (100, 300, 1000)) -> None:
    print("n, loss: even noise | uneven noise, constant width | uneven noise, local width | ratio of mean widths")
    for n in sizes:
        for name, loss in LOSSES.items():
            inner = FunctionalRegressor(
                Gaussian(1.0), loss=loss, lam=1e-4, approximation=Nystrom(40) if n == 1000 else None, tol=1e-4
            )
            kinds = {"even": (False, "constant"), "constant": (True, "constant"), "local": (True, "local")}
            found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
            for k in range(replications):
                for kind, (is_local, modulation) in kinds.items():
                    rng = np.random.default_rng([seed + k, n, is_local])
                    sample, new = draw(n, rng, is_local), draw(N_NEW, rng, is_local)
                    model = ConformalRegressor(inner, modulation=modulation)
                    found[kind].append(band_of(model, sample, new))
            ratio = np.mean([w for _, w in found["local"]]) / np.mean([w for _, w in found["constant"]])
            print(f"{n}, {name}: {' | '.join(summary(found[kind]) for kind in kinds)} | {ratio:.2f}", flush=True)


def robust(replications: int, seed: int, sizes: tuple[int, ...] = (100, 300)) -> None:
    inner = FunctionalRegressor(Gaussian(1.0), loss=Huber(0.1), lam=1e-4, center="median", tol=1e-4)
    for n in sizes:
        found: dict[float, list[tuple[float, float]]] = {0.0: [], 0.1: []}
        for k in range(replications):
            rng = np.random.default_rng([seed + k, n, 2])
            (X, Y), new = draw(n, rng, False), draw(N_NEW, rng, False)
            wrong = rng.permutation(n)[: n // 10]
            Y[wrong] = 3 * rng.standard_normal((len(wrong), 3)) @ SHAPES + rng.choice([-4, 4], (len(wrong), 1))
            for share, pairs in found.items():
                model = ConformalRegressor(inner, contamination=share, random_state=k)
                pairs.append(band_of(model, (X, Y), new))
        print(f"n = {n}, plain split: {summary(found[0.0])}; contamination=0.1: {summary(found[0.1])}", flush=True)


def wrong(replications: int, seed: int) -> None:
    def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X = rng.uniform(-2, 2, (200, 2))
        return X, np.stack([np.sin(2 * X[:, 0]), X[:, 1]], axis=1) + 0.1 * rng.standard_normal((200, 2))

    inner = OperatorKernelRegressor(loss=Huber("auto"), lam=1e-3, center=True)
    for count, share in ((0, 0.0), (10, 0.0), (10, 0.05), (10, 0.1)):
        found = []
        for k in range(replications):
            rng = np.random.default_rng(seed + k)
            (X, Y), (X_new, Y_new) = sample(rng), sample(rng)
            Y[rng.permutation(200)[:count], 0] += 3
            band = ConformalRegressor(inner, contamination=share).fit(X, Y).predict_interval(X_new)
            found.append((float(band.contains(Y_new).mean()), float(np.mean(band.upper[:, 0] - band.lower[:, 0]))))
        print(f"{count} of 200 wrong, contamination={share}: {summary(found)} of the first output", flush=True)


def replicates(replications: int, seed: int) -> None:
    def scans(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        specimen = np.repeat(np.arange(n), 4)
        latent, error = rng.uniform(-2, 2, (n, 3)), 0.3 * rng.standard_normal(n)
        X = latent[specimen] + 0.03 * rng.standard_normal((4 * n, 3))
        return X, (np.sin(latent[:, 0]) + 0.5 * latent[:, 1] + error)[specimen], specimen

    inner = OperatorKernelRegressorCV(Gaussian("median"), center=True, losses=["square"])
    for method, modulation in product(("split", "cv+"), ("std", "local")):
        found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        for k, (is_told, pairs) in product(range(replications), found.items()):
            rng = np.random.default_rng(seed + k)
            (X, y, specimen), (X_new, y_new, _) = scans(rng, 40), scans(rng, 100)
            model = ConformalRegressor(inner, method=method, modulation=modulation)
            band = model.fit(X, y, groups=specimen if is_told else None).predict_interval(X_new)
            pairs.append((float(band.contains(y_new).mean()), float(band.width.mean())))
        print(f"{method}, {modulation}: {summary(found[False])}; with labels: {summary(found[True])}", flush=True)


def scattered(replications: int, seed: int) -> None:
    for method, modulation in product(("split", "cv+"), ("std", "constant")):
        found = []
        for k in range(replications):
            data, rng = make_functional(120, 101, random_state=seed + k), np.random.default_rng(seed + k)
            points = np.sort(rng.uniform(0, 1, (120, 6)), axis=1)
            values = [np.interp(at, data.t, curve) for at, curve in zip(points, data.truth, strict=True)]
            pairs = [(at, y + 0.1 * rng.standard_normal(6)) for at, y in zip(points, values, strict=True)]
            model = ConformalRegressor(FunctionalRegressor(lam=1e-3), method=method, modulation=modulation)
            found.append(band_of(model, (data.X[:60], pairs[:60]), (data.X[60:], pairs[60:])))
        print(f"{method}, {modulation}: {summary(found)}", flush=True)


def _dti() -> tuple[np.ndarray, np.ndarray]:
    data = load_dti()
    return data.X[:, :, None], data.Y


def _lip() -> tuple[np.ndarray, np.ndarray]:
    data = load_lip_emg()
    return data.X[:, ::4, None], data.Y[:, ::4]


def _speech(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = load_speech()
    return data.X[:, ::3].astype(float), data.Y[name][:, ::3].astype(float)


def real(replications: int, seed: int) -> None:
    sets = {"DTI": _dti, "lip": _lip} | {f"speech, {name}": partial(_speech, name) for name in SPEECH}
    for name, load in sets.items():
        X, Y = load()
        found: dict[str, list[tuple[float, float]]] = {"split": [], "jackknife+": []}
        for k in range(replications):
            order = np.random.default_rng([seed + k, 3]).permutation(len(X))
            train, test = np.split(order, [len(order) * 3 // 4])
            for method, pairs in found.items():
                search = FunctionalRegressorCV(losses=["square"])
                model = ConformalRegressor(search, method=method, random_state=k, calibration_size=0.4)
                pairs.append(band_of(model, (X[train], Y[train]), (X[test], Y[test])))
        print(f"{name}, n = {len(X)}: {'; '.join(f'{k} {summary(v)}' for k, v in found.items())}", flush=True)


def _followed(
    inner: Any, X: np.ndarray, y: np.ndarray, first: int, block: int
) -> list[tuple[float, float, float, float]]:
    """Return of each block after the first samples the share covered and the width, without and with updates."""
    order = np.arange(len(X))
    fixed = ConformalRegressor(inner).fit(X[:first], y[:first], order=order[:first])
    moving, rows = ConformalRegressor(inner).fit(X[:first], y[:first], order=order[:first]), []
    for begin in range(first, len(X) - block + 1, block):
        part = slice(begin, begin + block)
        bands = [model.predict_interval(X[part]) for model in (fixed, moving)]
        rows.append(tuple(value for band in bands for value in (band.contains(y[part]).mean(), band.width.mean())))
        moving.update(X[part], y[part])
    return rows


def drift(replications: int, seed: int) -> None:
    air_data, bike, curves = load_air_quality(), load_bike_sharing(), FunctionalRegressorCV(losses=["square"])
    machine = OperatorKernelRegressor(Gaussian("median"), lam=1e-4, center=True, scale=True, approximation=Nystrom(200))
    sets: dict[str, Callable[[int], list[tuple[float, float, float, float]]]] = {
        "air quality, day by day": lambda k: _followed(curves, air_data.X, air_data.Y, 155, 1),
        "air quality, blocks of 5 days": lambda k: _followed(curves, air_data.X, air_data.Y, 155, 5),
        "bike, blocks of a week": lambda k: _followed(machine, bike.X, bike.y, 4368, 168),
        "simulated, noise grows": lambda k: _followed(*_growing(seed + k), 300, 50),
    }
    for name, run in sets.items():
        rows = np.concatenate([run(k) for k in range(replications if name.startswith("sim") else 1)])
        low, high = np.quantile(rows[:, 2], [0.1, 0.9])
        fixed, fixed_width, moving, width = rows.mean(axis=0)
        print(
            f"{name}: {len(rows)} blocks; as fitted {100 * fixed:.1f} %, width {fixed_width:.3g}; with updates "
            f"{100 * moving:.1f} % (80 % of the blocks {100 * low:.0f} to {100 * high:.0f}), width {width:.3g}",
            flush=True,
        )


def _growing(seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    rng, n = np.random.default_rng(seed), 1500
    X, size = rng.uniform(-2, 2, (n, 1)), 0.1 * np.exp(np.maximum(np.arange(n) - 300, 0) / 600)
    return OperatorKernelRegressor(Gaussian(1.0), lam=1e-3), X, np.sin(2 * X[:, 0]) + size * rng.standard_normal(n)


def small(replications: int, seed: int) -> None:
    """jackknife+ with local widths at n = 30."""
    functional = FunctionalRegressor(Gaussian(1.0), lam=1e-4)
    for name, is_local in (("even noise", False), ("uneven noise", True)):
        found = []
        for k in range(replications):
            rng = np.random.default_rng([seed + k, 30])
            sample, new = draw(30, rng, is_local), draw(N_NEW, rng, is_local)
            found.append(band_of(ConformalRegressor(functional, method="jackknife+", modulation="local"), sample, new))
        print(f"curves, {name}, n = 30: {summary(found)}", flush=True)


def regions(replications: int, seed: int) -> None:
    """Volumes of joint regions, as sides of a cube in standard deviations of the outputs, and their coverage."""
    ratios: dict[str, list[float]] = {"std": [], "local": []}
    for name in REGIONS:
        data = load_mulan_regression(name)
        known = ~np.isnan(data.X).any(axis=1) & ~np.isnan(data.Y).any(axis=1)
        X, Y, found = data.X[known], data.Y[known], dict[str, list[tuple[float, float]]]()
        for k in range(replications):
            train, part, new = np.array_split(
                np.random.default_rng(seed + k).permutation(len(X)), [int(0.6 * len(X)), int(0.8 * len(X))]
            )
            scale = Y[train].std(axis=0)
            inner = OperatorKernelRegressor(
                Standardized(Gaussian(3 / X.shape[1])),
                lam=1e-6 if name == "rf1" else 1e-3,
                center=True,
                approximation=Nystrom(1500) if len(train) > 3000 else None,
            ).fit(X[train], Y[train] / scale)
            halves = np.array_split(part, 2)
            residuals = [Y[half] / scale - inner.predict(X[half]) for half in (*halves, new)]
            root = np.linalg.cholesky(np.cov(residuals[0].T) + 1e-9 * np.eye(Y.shape[1]))
            sizes = [np.linalg.norm(np.linalg.solve(root, one.T), axis=0) for one in residuals]
            radius = np.sort(sizes[1])[min(int(np.ceil(0.9 * (len(sizes[1]) + 1))), len(sizes[1])) - 1]
            ball = Ellipsoid(np.zeros((1, len(root))), np.linalg.inv(root), np.array([radius])).volume[0]
            found.setdefault("one covariance", []).append((np.mean(sizes[2] <= radius), ball ** (1 / len(root))))
            for kind in ratios:
                model = ConformalRegressor(inner, joint="ellipsoid", modulation=kind).conformalize(
                    X[part], Y[part] / scale
                )
                band = model.predict_interval(X[new])
                volume = float(np.exp(np.mean(np.log(band.volume(root=True)))))
                found.setdefault(kind, []).append((band.contains(Y[new] / scale).mean(), volume))
        means = {kind: np.mean(pairs, axis=0) for kind, pairs in found.items()}
        for kind, values in ratios.items():
            values.append(means[kind][1] / means["one covariance"][1])
        print(f"{name}: " + "; ".join(f"{kind} {100 * c:.1f} %, {v:.3f}" for kind, (c, v) in means.items()), flush=True)
    print({kind: f"{np.exp(np.mean(np.log(values))):.2f} of one covariance" for kind, values in ratios.items()})


def quantile(replications: int, seed: int) -> None:
    for n, lam in ((200, 1e-2), (200, 1e-4), (400, 1e-2), (400, 1e-4)):
        inner = QuantileFunctionRegressor(lam=lam)
        plain, mended = list[tuple[float, float]](), list[tuple[float, float]]()
        for k in range(replications):
            rng = np.random.default_rng([seed + k, n, 4])
            X = rng.uniform(-2, 2, (n + 1000, 1))
            y = np.sin(X[:, 0]) + np.exp(X[:, 0] / 2) * 0.2 * rng.standard_normal(n + 1000)
            ends = np.asarray(inner.fit(X[:n], y[:n]).predict_interval(X[n:], 0.9))
            is_inside = (y[n:] >= ends[:, 0]) & (y[n:] <= ends[:, 1])
            plain.append((float(is_inside.mean()), float(np.mean(ends[:, 1] - ends[:, 0]))))
            mended.append(band_of(ConformalRegressor(inner, random_state=k), (X[:n], y[:n]), (X[n:], y[n:])))
        print(f"n = {n}, lam = {lam:g}, as fitted: {summary(plain)}; conformalised: {summary(mended)}", flush=True)


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """Return the least processor time of a call."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def timed(replications: int, seed: int) -> None:
    rng, points = np.random.default_rng(seed), np.linspace(0, 1, 50)
    for n in (100, 300, 1000):
        X = rng.uniform(-1, 1, (n, 3))
        Y = np.sin(2 * np.pi * points + 2 * X[:, :1]) + 0.1 * rng.standard_normal((n, 50))
        cases = {
            "curves, square": (FunctionalRegressor(Gaussian(1.0)), Y),
            "one output, square": (OperatorKernelRegressor(Gaussian(1.0)), Y[:, 0]),
            "curves, huber": (FunctionalRegressor(Gaussian(1.0), loss=Huber(0.2)), Y),
        }
        for name, (inner, y) in cases.items():
            if n == 1000 and "huber" in name:
                continue
            model = ConformalRegressor(inner, method="jackknife+")
            fit, band = seconds(lambda: inner.fit(X, y)), seconds(lambda: model.fit(X, y), 2)  # noqa: B023
            ends = seconds(lambda: model.predict_interval(X[:100]), 1)  # noqa: B023
            print(f"n = {n}, {name}: fit {fit:.3f} s, jackknife+ {band:.3f} s ({band / fit:.1f} x), ends {ends:.2f} s")
    X = rng.uniform(-1, 1, (10_000, 3))
    Y = np.sin(2 * np.pi * points + 2 * X[:, :1]) + 0.1 * rng.standard_normal((10_000, 50))
    inner = FunctionalRegressor(Gaussian(1.0), approximation=Nystrom(300))
    for modulation in ("constant", "std", "local"):
        model = ConformalRegressor(inner, modulation=modulation)
        whole, fit = seconds(lambda: model.fit(X, Y), 2), seconds(lambda: inner.fit(X[:7501], Y[:7501]), 2)  # noqa: B023
        ends = seconds(lambda: model.predict_interval(X[:1000]), 1)  # noqa: B023
        print(f"n = 10000, split, {modulation}: {whole:.2f} s, of which the fit {fit:.2f} s; 1000 bands {ends:.2f} s")


PARTS: dict[str, Callable[[int, int], None]] = {
    "simulated": simulated,
    "robust": robust,
    "real": real,
    "wrong": wrong,
    "replicates": replicates,
    "scattered": scattered,
    "quantile": quantile,
    "drift": drift,
    "regions": regions,
    "small": small,
    "time": timed,
}
REPLICATIONS = {
    "simulated": 1000,
    "robust": 1000,
    "wrong": 100,
    "replicates": 100,
    "scattered": 20,
    "real": 20,
    "quantile": 20,
    "drift": 10,
    "regions": 5,
    "small": 100,
    "time": 1,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="part", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--replications", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", help="of simulated and robust")
    arguments = parser.parse_args()
    if arguments.sizes:
        PARTS.update({one.__name__: partial(one, sizes=arguments.sizes) for one in (simulated, robust)})
    warnings.simplefilter("ignore")
    for part in arguments.parts:
        print(part, flush=True)
        PARTS[part](arguments.replications or REPLICATIONS[part], arguments.seed)


if __name__ == "__main__":
    main()
