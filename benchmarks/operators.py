"""Burgers' equation and Darcy flow as operators: equivariant kernels and Fourier neural operators.

python benchmarks/operators.py cuda kernel            1000 and 100 training curves, clean and with a tenth of them wrong
python benchmarks/operators.py cuda fno               the same with a Fourier neural operator, 500 epochs
python benchmarks/operators.py cuda fno mirrored      the same, half of each batch replaced by its mirror images
python benchmarks/operators.py cpu kernel 250         on this machine; the search looks at 250 curves
python benchmarks/operators.py cuda darcy             Darcy flow: kernels with and without the symmetries; the cases
                                                      above, and 30 % of the values of the training outputs missing
python benchmarks/operators.py cuda darcy-fno         the same with a Fourier neural operator, 500 epochs
python benchmarks/operators.py cpu darcy-fno 40 2     with 40 training fields and 2 epochs
python benchmarks/operators.py cuda deeponet 2000     DeepONets on principal components of the outputs, 2000 epochs

Relative L2 errors in per cent on 200 test functions. Everything is chosen on the training pairs, by leave-one-out.
"""

import itertools
import json
import sys
import time
from typing import Any

import numpy as np
import torch
from scipy.fft import dctn, idctn
from sklearn.utils import Bunch

from fenchel import OperatorKernelRegressor, learn_frequencies
from fenchel._array import as_index, row_norms
from fenchel.datasets import make_burgers, make_darcy
from fenchel.estimators.field_bases import completed
from fenchel.kernels import Matern, RationalQuadratic, SquareEquivariant, as_operator_kernel
from fenchel.losses import Huber
from fenchel.representations import Euclidean

FREQUENCIES = 48
EPOCHS = 500


def say(**fields: Any) -> None:
    print(json.dumps(fields, default=float), flush=True)


def error(predicted: Any, truth: Any) -> float:
    predicted, truth = (np.asarray(torch.as_tensor(each).cpu()) for each in (predicted, truth))
    return 100 * float(np.mean(np.linalg.norm(predicted - truth, axis=1) / np.linalg.norm(truth, axis=1)))


def spoilt(Y: np.ndarray, share: float = 0.1) -> np.ndarray:
    """Return outputs of which a share belongs to other inputs, flipped."""
    rng, Y = np.random.default_rng(2), Y.copy()
    wrong = rng.choice(len(Y), round(share * len(Y)), replace=False)
    Y[wrong] = -Y[np.roll(wrong, 1)]
    return Y


def cases() -> Any:
    """Yield the name, the training and the test data of each case."""
    train, test = make_burgers(1000, random_state=0), make_burgers(200, random_state=1)
    for n in (1000, 100):
        yield f"{n} curves", train.X[:n], train.Y[:n], test, False
        yield f"{n} curves, a tenth wrong", train.X[:n], spoilt(train.Y[:n]), test, True


def kernels(device: str, max_samples: int) -> None:
    """Fit the kernel models: least squares, and a robust loss where pairs may be wrong."""
    for (name, X, Y, test, is_dirty), group in itertools.product(cases(), ("odd reflections", "shifts")):
        X, Y, X_new = (each if device == "cpu" else torch.as_tensor(each, device=device) for each in (X, Y, test.X))
        start = time.perf_counter()
        found = learn_frequencies(X, Y, FREQUENCIES, max_samples=max_samples, outliers=is_dirty, group=group)
        search = time.perf_counter() - start
        kept = as_index(found.index, X)
        ways = {"square": ("square", X, Y)}
        if is_dirty:
            ways["huber"] = (Huber("auto"), X, Y)
            ways["huber, without the pairs that the search left out"] = (Huber("auto"), X[kept], Y[kept])
        for label, (loss, inputs, outputs) in ways.items():
            start = time.perf_counter()
            model = OperatorKernelRegressor(found.kernel, loss=loss, lam=found.lam, tol=1e-4).fit(inputs, outputs)
            say(model=f"{group}, {label}", case=name, error=error(model.predict(X_new), test.Y),
                left_out=100 * found.error, search=search, fit=time.perf_counter() - start,
                used=len(found.index), gap=model.duality_gap_, status=model.status_)  # fmt: skip
        if device == "cpu" and group == "shifts" and not is_dirty:
            plain = OperatorKernelRegressor(Matern(8.0, nu=2.5), loss="square", lam=1e-9).fit(X, Y)
            say(model="Matern, no symmetry", case=name, error=error(plain.predict(X_new), test.Y))


class Spectral(torch.nn.Module):
    """A product of the lowest frequencies with learned matrices."""

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.weight = torch.nn.Parameter(torch.randn(width, width, modes, dtype=torch.cfloat) / width**2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(x)
        out = torch.zeros_like(spectrum)
        out[..., : self.modes] = torch.einsum("bim,iom->bom", spectrum[..., : self.modes], self.weight)
        return torch.fft.irfft(out, n=x.shape[-1])


class Neural(torch.nn.Module):
    """A Fourier neural operator: lifting, four layers, projection."""

    def __init__(self, width: int = 64, modes: int = 16, depth: int = 4) -> None:
        super().__init__()
        self.lift = torch.nn.Conv1d(2, width, 1)
        self.spectral = torch.nn.ModuleList(Spectral(width, modes) for _ in range(depth))
        self.local = torch.nn.ModuleList(torch.nn.Conv1d(width, width, 1) for _ in range(depth))
        self.project = torch.nn.Sequential(torch.nn.Conv1d(width, 128, 1), torch.nn.GELU(), torch.nn.Conv1d(128, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        grid = torch.linspace(0, 1, x.shape[-1] + 1, device=x.device)[:-1].expand_as(x)
        x = self.lift(torch.stack([x, grid], dim=1))
        for k, (spectral, local) in enumerate(zip(self.spectral, self.local, strict=True)):
            x = spectral(x) + local(x)
            x = torch.nn.functional.gelu(x) if k + 1 < len(self.spectral) else x
        return self.project(x)[:, 0]


def mirrored(X: torch.Tensor, Y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pairs of which half, drawn anew, are replaced by their odd reflections."""
    is_turned = torch.rand(len(X), 1, device=X.device) < 0.5
    return tuple(torch.where(is_turned, -torch.roll(each.flip(1), 1, dims=1), each) for each in (X, Y))  # type: ignore[return-value]


def neural(device: str, is_mirrored: bool, batch: int = 20) -> None:
    """Train the neural operator on relative errors, with Adam and a one-cycle rate."""
    for name, X, Y, test, _ in cases():
        torch.manual_seed(0)
        model = Neural().to(device)
        X, Y, X_new = (torch.as_tensor(each, dtype=torch.float32, device=device) for each in (X, Y, test.X))
        steps = -(-len(X) // batch)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
        rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=EPOCHS * steps)
        start = time.perf_counter()
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(X), device=device).split(batch):
                optimizer.zero_grad()
                x, y = mirrored(X[rows], Y[rows]) if is_mirrored else (X[rows], Y[rows])
                loss = ((model(x) - y).norm(dim=1) / y.norm(dim=1)).mean()
                loss.backward()
                optimizer.step()
                rate.step()
        seconds = time.perf_counter() - start
        with torch.no_grad():
            predicted = model(X_new)
        label = f"Fourier neural operator{', mirror images' * is_mirrored}"
        say(model=label, case=name, error=error(predicted.double().cpu(), torch.as_tensor(test.Y)),
            seconds=seconds, epochs=EPOCHS, parameters=sum(each.numel() for each in model.parameters()))  # fmt: skip


LAMS = np.logspace(-11, -1, 11)


def darcy_cases(n_train: int) -> Any:
    """Yield the name, the training and the test data of each case, and whether pairs may be wrong."""
    train, test = make_darcy(n_train, random_state=0), make_darcy(min(n_train, 200), random_state=1)
    for n in dict.fromkeys((n_train, max(20, n_train // 10))):
        yield f"{n} fields", train.X[:n], train.Y[:n], test, False
        yield f"{n} fields, a tenth wrong", train.X[:n], spoilt(train.Y[:n]), test, True
    missing = np.random.default_rng(0).random(train.Y.shape) < 0.3
    yield f"{n_train} fields, 30 % of values missing", train.X, np.where(missing, np.nan, train.Y), test, False


def smoothed(X: np.ndarray, decay: float) -> np.ndarray:
    """Return fields whose cosine modes are weighted by (1 + |k|)^-decay, as rows, in units of their size."""
    modes = np.arange(X.shape[1])
    weights = (1 + np.hypot(modes[:, None], modes)) ** -decay
    rows = idctn(weights * dctn((X - 7.5) / 4.5, axes=(1, 2), norm="ortho"), axes=(1, 2), norm="ortho")
    return rows.reshape(len(X), -1) / np.sqrt(np.mean(weights**2) * rows[0].size)


def left_out(kernel: Any, X: Any, Y: Any) -> Any:
    """Return relative leave-one-out errors (lams, n) of kernel ridge regression."""
    basis = as_operator_kernel(kernel, None).bind(X, Euclidean().fit(Y)).gram(X).factorize()
    sizes, errors = row_norms(Y)[:, 0], []
    for lam in LAMS:
        ridge = float(lam) * len(X)
        duals = basis.function(lambda values, ridge=ridge: 1 / (values + ridge))(Y)
        held_out = basis.left_out(lambda values, ridge=ridge: 1 / (values + ridge), duals)
        errors.append(row_norms(held_out)[:, 0] / sizes)
    return np.stack([np.asarray(torch.as_tensor(each).cpu()) for each in errors])


def searched(candidates: Any, inputs: dict[float, Any], Y: Any, rows: np.ndarray, aggregate: Any) -> Any:
    """Return the error, the decay, the kernel, lam and the errors of all samples of the best candidate."""
    best: Any = (np.inf,)
    index = as_index(rows, Y)
    for decay, X in inputs.items():
        for kernel in candidates:
            errors = left_out(kernel, X[index], Y[index])
            values = aggregate(errors, axis=1)
            k = int(np.argmin(values))
            if values[k] < best[0]:
                best = (float(values[k]), decay, kernel, float(LAMS[k]), errors[k])
    return best


def darcy_kernels(device: str, n_train: int) -> None:
    """Fit kernels with and without the symmetries of the square; gaps are filled, wrong pairs left out."""
    shapes = [Matern(width, nu=2.5) for width in (1.0, 2.0, 4.0)]
    shapes += [RationalQuadratic(width) for width in (0.7, 1.4)]
    families = {"plain": shapes, "symmetries of the square": [SquareEquivariant(kernel) for kernel in shapes]}
    for name, X, Y, test, is_dirty in darcy_cases(n_train):
        start = time.perf_counter()
        outputs = torch.as_tensor(completed(Y.reshape(len(Y), -1), np.ones(len(Y))), device=device)
        inputs = {decay: torch.as_tensor(smoothed(X, decay), device=device) for decay in (0.0, 0.5)}
        filling = time.perf_counter() - start
        for family, candidates in families.items():
            start, rows = time.perf_counter(), np.arange(len(X))
            found = first = searched(candidates, inputs, outputs, rows, np.median if is_dirty else np.mean)
            for _ in range(3 if is_dirty else 0):  # what is wrong hides behind what is worse
                middle = np.median(found[4])
                rows = rows[found[4] <= middle + 4 * 1.4826 * np.median(np.abs(found[4] - middle))]
                found = searched(found[2:3], {found[1]: inputs[found[1]]}, outputs, rows, np.median)
            if is_dirty:
                found = searched(candidates, inputs, outputs, rows, np.mean)
            search = time.perf_counter() - start
            ways = {"square loss": ("square", np.arange(len(X)), first)}
            if is_dirty:
                ways["huber, without suspects"] = (Huber("auto"), rows, found)
            for label, (loss, kept, (loo, decay, kernel, lam, _)) in ways.items():
                start, index = time.perf_counter(), as_index(kept, outputs)
                model = OperatorKernelRegressor(kernel, loss=loss, lam=lam, tol=1e-4)
                model.fit(inputs[decay][index], outputs[index])
                predicted = model.predict(torch.as_tensor(smoothed(test.X, decay), device=device))
                say(model=f"{family}, {label}", case=name, error=error(predicted, test.Y.reshape(len(test.Y), -1)),
                    left_out=100 * loo, filling=filling, search=search, fit=time.perf_counter() - start, used=len(kept),
                    kernel=str(kernel), decay=decay, lam=lam, gap=model.duality_gap_)  # fmt: skip


class Spectral2d(torch.nn.Module):
    """A product of the lowest frequencies of both variables with learned matrices."""

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.weight = torch.nn.Parameter(torch.randn(width, width, 2 * modes, modes, dtype=torch.cfloat) / width**2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum, k = torch.fft.rfft2(x), self.modes
        low = torch.cat([spectrum[..., :k, :k], spectrum[..., -k:, :k]], dim=2)
        low = torch.einsum("bixy,ioxy->boxy", low, self.weight)
        out = torch.zeros_like(spectrum)
        out[..., :k, :k], out[..., -k:, :k] = low[:, :, :k], low[:, :, k:]
        return torch.fft.irfft2(out, s=x.shape[-2:])


class Neural2d(torch.nn.Module):
    """A Fourier neural operator of fields: lifting, four layers on a padded domain, projection."""

    def __init__(self, width: int = 32, modes: int = 12, depth: int = 4, padding: int = 7) -> None:
        super().__init__()
        self.padding = padding
        self.lift = torch.nn.Conv2d(3, width, 1)
        self.spectral = torch.nn.ModuleList(Spectral2d(width, modes) for _ in range(depth))
        self.local = torch.nn.ModuleList(torch.nn.Conv2d(width, width, 1) for _ in range(depth))
        self.project = torch.nn.Sequential(torch.nn.Conv2d(width, 128, 1), torch.nn.GELU(), torch.nn.Conv2d(128, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = x.shape[-1]
        axis = torch.linspace(0, 1, side, device=x.device)
        x = torch.stack([x, axis[:, None].expand_as(x), axis.expand_as(x)], dim=1)
        x = torch.nn.functional.pad(self.lift(x), (0, self.padding, 0, self.padding))
        for k, (spectral, local) in enumerate(zip(self.spectral, self.local, strict=True)):
            x = spectral(x) + local(x)
            x = torch.nn.functional.gelu(x) if k + 1 < len(self.spectral) else x
        return self.project(x[..., :side, :side])[:, 0]


def turned(fields: torch.Tensor, g: int) -> torch.Tensor:
    """Return fields after one of the eight symmetries of the square."""
    return torch.rot90(fields.transpose(1, 2) if g >= 4 else fields, g % 4, (1, 2))


def darcy_neural(device: str, n_train: int, epochs: int) -> None:
    """Train the neural operator on relative errors of the values that there are, with and without random symmetries."""
    for name, X, Y, test, _ in darcy_cases(n_train):
        for augmented in (False, True) if name == f"{n_train} fields" else (True,):
            torch.manual_seed(0)
            model = Neural2d().to(device)
            X_all, X_new = (torch.as_tensor((each - 7.5) / 4.5, dtype=torch.float32, device=device)
                            for each in (X, test.X))  # fmt: skip
            unit = float(np.sqrt(np.nanmean(Y**2)))
            Y_all = torch.as_tensor(Y / unit, dtype=torch.float32, device=device)
            seen, Y_all = (~torch.isnan(Y_all)).float(), torch.nan_to_num(Y_all)
            rng, batch = np.random.default_rng(0), 50 if len(X) >= 500 else 20
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
            rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=epochs * -(-len(X) // batch))
            start = time.perf_counter()
            for _ in range(epochs):
                for rows in torch.randperm(len(X), device=device).split(batch):
                    g = int(rng.integers(8)) if augmented else 0
                    x, y, mask = (turned(each[rows], g) for each in (X_all, Y_all, seen))
                    optimizer.zero_grad()
                    sizes = (y * mask).flatten(1).norm(dim=1)
                    (((model(x) - y) * mask).flatten(1).norm(dim=1) / sizes).mean().backward()
                    optimizer.step()
                    rate.step()
            seconds = time.perf_counter() - start
            with torch.no_grad():
                predicted = unit * model(X_new).double().cpu().flatten(1)
                images = [turned(model(turned(X_new, g)), (4 - g) % 4 if g < 4 else g) for g in range(8)]
                mean = unit * torch.stack(images).mean(0).double().cpu().flatten(1)
            truth = test.Y.reshape(len(test.Y), -1)
            say(model="Fourier neural operator" + (", random symmetries" if augmented else ""), case=name,
                error=error(predicted, truth), error_of_symmetric_mean=error(mean, truth), seconds=seconds,
                epochs=epochs, parameters=sum(each.numel() for each in model.parameters()))  # fmt: skip


class Deep(torch.nn.Module):
    """A DeepONet whose trunk is the mean and principal components of the outputs, and whose branch is a network."""

    def __init__(self, branch: torch.nn.Module, outputs: torch.Tensor, count: int) -> None:
        super().__init__()
        flat = outputs.flatten(1)
        self.branch = branch
        self.register_buffer("mean", flat.mean(0))
        _, sizes, modes = torch.linalg.svd(flat - self.mean, full_matrices=False)
        self.register_buffer("modes", modes[:count] * (sizes[:count, None] / len(flat) ** 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mean + self.branch(x) @ self.modes


def branch(side: int, dimension: int, count: int, width: int = 512) -> torch.nn.Module:
    """Return a network from functions on a line, or on a square, to coordinates."""
    if dimension == 1:
        first = [torch.nn.Linear(side, width), torch.nn.GELU()]
    else:
        left = -(-side // 4)
        first = [torch.nn.Unflatten(1, (1, side)), torch.nn.Conv2d(1, 64, 5, 2, 2), torch.nn.GELU(),
                 torch.nn.Conv2d(64, 128, 5, 2, 2), torch.nn.GELU(), torch.nn.Flatten(),
                 torch.nn.Linear(128 * left**2, width), torch.nn.GELU()]  # fmt: skip
    rest = [torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, width), torch.nn.GELU()]
    return torch.nn.Sequential(*first, *rest, torch.nn.Linear(width, count))


def shifted(fields: torch.Tensor, g: int) -> torch.Tensor:
    """Return periodic signals after one of the shifts, the second half after an odd reflection."""
    m = fields.shape[1]
    fields = -torch.roll(fields.flip(1), 1, dims=1) if g >= m else fields
    return torch.roll(fields, g % m, dims=1)


def deep(device: str, epochs: int) -> None:
    """Train DeepONets on relative errors, every batch after a random symmetry of the equation."""
    sets = [(f"Burgers, {name}", X, Y, test, shifted, 2 * X.shape[1], 64) for name, X, Y, test, _ in cases()]
    for name, X, Y, test, is_dirty in darcy_cases(1000):
        if not is_dirty and "missing" not in name:
            sets.append((f"Darcy, {name}", (X - 7.5) / 4.5, Y, Bunch(X=(test.X - 7.5) / 4.5, Y=test.Y), turned, 8, 115))
    for name, X, Y, test, moved, order, count in sets:
        torch.manual_seed(0)
        rng, unit = np.random.default_rng(0), float(np.sqrt(np.mean(Y**2)))
        X_all, X_new, Y_all = (
            torch.as_tensor(each, dtype=torch.float32, device=device) for each in (X, test.X, Y / unit)
        )
        images = torch.cat([moved(Y_all, int(g)) for g in rng.permutation(order)[:8]])
        model = Deep(branch(X.shape[1], X.ndim - 1, count), images, count).to(device)
        batch = 100 if len(X) >= 500 else 20
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
        rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=epochs * -(-len(X) // batch))
        start = time.perf_counter()
        for _ in range(epochs):
            for rows in torch.randperm(len(X), device=device).split(batch):
                g = int(rng.integers(order))
                x, y = (moved(each[rows], g) for each in (X_all, Y_all))
                optimizer.zero_grad()
                ((model(x) - y.flatten(1)).norm(dim=1) / y.flatten(1).norm(dim=1)).mean().backward()
                optimizer.step()
                rate.step()
        seconds = time.perf_counter() - start
        with torch.no_grad():
            predicted = unit * model(X_new).double().cpu()
        say(model="DeepONet", case=name, error=error(predicted, test.Y.reshape(len(test.Y), -1)), seconds=seconds,
            epochs=epochs, parameters=sum(each.numel() for each in model.parameters()))  # fmt: skip


if __name__ == "__main__":
    if sys.argv[2] == "fno":
        neural(sys.argv[1], sys.argv[3:] == ["mirrored"])
    elif sys.argv[2] == "deeponet":
        deep(sys.argv[1], int((sys.argv[3:] or ["2000"])[0]))
    elif sys.argv[2] == "darcy":
        darcy_kernels(sys.argv[1], int((sys.argv[3:] or ["1000"])[0]))
    elif sys.argv[2] == "darcy-fno":
        darcy_neural(sys.argv[1], *(int(value) for value in sys.argv[3:] or ["1000", EPOCHS]))
    else:
        kernels(sys.argv[1], int((sys.argv[3:] or ["1000"])[0]))
