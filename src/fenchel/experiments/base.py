"""What an experiment gives back."""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Comparison", "Progress"]

Progress = Callable[[str, int, int], None]  # what is being done, how many units are finished, of how many


@dataclass(frozen=True)
class Comparison:
    """One published number beside ours."""

    name: str
    published: float
    ours: float
    tolerance: float  # relative
    note: str = ""

    @property
    def passes(self) -> bool:
        """Tell whether ours is within the tolerance of the published value."""
        return abs(self.ours - self.published) <= self.tolerance * abs(self.published)
