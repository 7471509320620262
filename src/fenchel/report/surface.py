"""Quantities over the (loss, lam) grid of a path or of a model selection."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._array import Outputs
from fenchel.losses import Loss
from fenchel.search.path import RegularizationPath

__all__ = ["Surface"]

_FLOOR = 1e-17  # a gap below this is round-off, and may be negative
_TEXTS = {"errors": "error of held-out samples", "gaps": "relative duality gap", "sparsity": "share of null duals"}


@dataclass(frozen=True)
class Surface:
    """Values (n_losses, n_lams) over a grid, their label, and whether smaller is better."""

    losses: list[Loss]
    lams: list[float]
    values: np.ndarray
    text: str
    is_error: bool

    @classmethod
    def of(cls, source: Any, values: Outputs = None) -> "Surface":
        """Return a surface of a path or of a fitted model selection, by name or from given numbers."""
        if isinstance(source, RegularizationPath):
            losses, lams = source.losses, source.lams
            named = {name: name for name in ("gaps", "sparsity", "primal_objectives", "dual_objectives", "n_iter")}
        elif hasattr(source, "cv_errors_"):
            losses, lams = source.losses_, source.lams_
            named = {"errors": "cv_errors_", "gaps": "cv_gaps_"}
        else:
            raise TypeError(
                "A surface is drawn of what fenchel.path returns, or of a fitted estimator that has cv_errors_. "
                f"Got {type(source).__name__}."
            )
        name = next(iter(named)) if values is None else values
        if isinstance(name, str):
            if name not in named:
                raise ValueError(f"values must be an array or one of {', '.join(map(repr, named))}. Got {name!r}.")
            numbers = np.asarray(getattr(source, named[name]), dtype=np.float64)
            numbers = np.maximum(numbers, _FLOOR) if name == "gaps" else numbers
            text, is_error = _TEXTS.get(name, name.replace("_", " ")), name == "errors"
        else:
            numbers, text, is_error = np.asarray(values, dtype=np.float64), "error", True
        if numbers.shape != (len(losses), len(lams)):
            raise ValueError(f"values must have shape ({len(losses)}, {len(lams)}). Got {numbers.shape} instead.")
        return cls(losses, lams, numbers, text, is_error)

    def loss_names(self) -> tuple[str, list[str]]:
        """Return a label for the losses, and a name for each of them.

        Losses of one class that differ in one parameter are named by its values, others by their ``repr``.
        """
        settings = [loss.get_params() for loss in self.losses]
        if len(self.losses) > 1 and len({type(loss) for loss in self.losses}) == 1:
            varied = [name for name in settings[0] if len({repr(one[name]) for one in settings}) > 1]
            if len(varied) == 1 and all(isinstance(one[varied[0]], int | float) for one in settings):
                p = settings[0].get("p", 2)
                about = "" if p == 2 or varied == ["p"] else f", p={p:g}"
                axis = f"{varied[0]} of {type(self.losses[0]).__name__}{about}"
                return axis, [f"{one[varied[0]]:.3g}" for one in settings]
        return "loss", [repr(loss) for loss in self.losses]
