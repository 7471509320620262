"""What an experiment gives back, and how a long one keeps its finished parts."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fenchel._check import require

__all__ = ["Comparison", "Progress", "kept", "on_device"]

Progress = Callable[[str, int, int], None]  # what is being done, how many units are finished, of how many


@dataclass(frozen=True)
class Comparison:
    """One published number beside ours."""

    name: str
    published: float
    ours: float
    tolerance: float  # relative; with at_most absolute, such as the published standard deviation
    note: str = ""
    at_most: bool = False  # whether ours may lie below as far as it likes

    @property
    def passes(self) -> bool:
        """Tell whether ours is within the tolerance of the published value."""
        if self.at_most:
            return self.ours <= self.published + self.tolerance
        return abs(self.ours - self.published) <= self.tolerance * abs(self.published)


def kept(folder: Path | None, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the numbers of one part of an experiment, from the folder if they are there, else put them there."""
    file = None if folder is None else folder / f"{name}.json"
    if file is not None and file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        return found
    found = compute()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".part")
        partial.write_text(json.dumps(found))
        partial.replace(file)
    return found


def on_device(device: str | None, array: np.ndarray) -> Any:
    """Return the array in double precision, on the device if there is one."""
    array = np.ascontiguousarray(array, dtype=np.float64)
    return array if device is None else require("torch", extra="torch").as_tensor(array, device=device)
