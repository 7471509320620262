"""What an experiment gives back."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Comparison", "Progress", "kept"]

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


def kept(folder: Path | None, name: str, compute: Callable[[], Any]) -> Any:
    """Return what is computed, from the folder if it is there; else keep it there, whole or not at all.

    Numbers, lists and dictionaries of them: what JSON holds.
    """
    if folder is None:
        return compute()
    file = folder / f"{name}.json"
    if file.exists():
        return json.loads(file.read_text())
    found = compute()
    folder.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".part")
    partial.write_text(json.dumps(found))
    partial.replace(file)
    return found
