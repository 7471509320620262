"""Burgers' equation as an operator: equivariant kernels with learned frequencies, and a Fourier neural operator.

python benchmarks/operators.py cuda kernel            1000 and 100 training curves, clean and with a tenth of them wrong
python benchmarks/operators.py cuda fno               the same with a Fourier neural operator, 500 epochs
python benchmarks/operators.py cuda fno mirrored      the same, half of each batch replaced by its mirror images
python benchmarks/operators.py cpu kernel 250         on this machine; the search looks at 250 curves

Relative L2 errors in per cent on 200 test curves. Everything is chosen on the training curves, by leave-one-out.
"""

import itertools
import json
import sys
import time
from typing import Any

import numpy as np
import torch

from fenchel import OperatorKernelRegressor, learn_frequencies
from fenchel._array import as_index
from fenchel.datasets import make_burgers
from fenchel.kernels import Matern
from fenchel.losses import Huber

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


if __name__ == "__main__":
    if sys.argv[2] == "fno":
        neural(sys.argv[1], sys.argv[3:] == ["mirrored"])
    else:
        kernels(sys.argv[1], int((sys.argv[3:] or ["1000"])[0]))
