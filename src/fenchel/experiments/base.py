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
    tolerance: float  # relative; with at_most absolute, such as the published standard deviation
    note: str = ""
    at_most: bool = False  # whether ours may lie below as far as it likes

    @property
    def passes(self) -> bool:
        """Tell whether ours is within the tolerance of the published value."""
        if self.at_most:
            return self.ours <= self.published + self.tolerance
        return abs(self.ours - self.published) <= self.tolerance * abs(self.published)
