"""Loss thresholds relative to the data: multiples of a robust scale, or quantiles, of residual norms."""

import math
import re
from dataclasses import dataclass

import numpy as np

from fenchel._statistics import weighted_quantile

__all__: list[str] = []

_NORMAL = 1.482602218505602  # standard deviation of a normal law divided by its median absolute deviation
_FORM = re.compile(r"(scale|quantile):(.+)")
FORMS = "'auto', 'scale:c' with c > 0, or 'quantile:q' with 0 < q < 1"


@dataclass(frozen=True)
class RelativeSize:
    """``number`` times the robust scale of residual norms, or their quantile at level ``number``."""

    kind: str
    number: float

    @classmethod
    def parse(cls, text: str, auto: str) -> "RelativeSize | None":
        """Parse a relative size, with ``auto`` for ``"auto"``; return ``None`` if the text is not one."""
        found = _FORM.fullmatch(auto if text == "auto" else text)
        try:
            size = cls(found[1], float(found[2])) if found else None
        except ValueError:
            return None
        if size is None or not 0 < size.number < (1 if size.kind == "quantile" else math.inf):
            return None
        return size

    def of(self, norms: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Return the size as a positive number; the scale is 1.4826 times the median norm, as for normal residuals.

        Zero norms are ignored if the size would be zero; if all norms are zero the size is 1.
        """
        counts = np.ones(len(norms)) if weights is None else weights
        level = self.number if self.kind == "quantile" else 0.5
        size = weighted_quantile(norms, counts, level)
        if size <= 0:
            positive = norms > 0
            if not positive.any():
                return 1.0
            size = weighted_quantile(norms[positive], counts[positive], level)
        return size if self.kind == "quantile" else self.number * _NORMAL * size
