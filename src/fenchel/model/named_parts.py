"""Nested parameters of parts of an estimator that are given by a short name."""

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from fenchel import decoders, losses, representations, solvers, task_losses
from fenchel._component import ShortReprMixin, from_name
from fenchel.kernels import as_scalar_kernel
from fenchel.kernels.operators import as_operator

__all__ = ["NamedPartsMixin"]


def _by_name(room: Any, argument: str) -> Callable[[str], Any]:
    return partial(from_name, room=room, argument=argument)


_PARTS: dict[str, Callable[[str], Any]] = {  # maps the name of a parameter to the meaning of its short names
    "decoder": _by_name(decoders, "decoder"),
    "hidden_kernel": as_scalar_kernel,
    "kernel": as_scalar_kernel,
    "level_kernel": as_scalar_kernel,
    "loss": _by_name(losses, "loss"),
    "operator": as_operator,
    "output_kernel": as_scalar_kernel,
    "representation": _by_name(representations, "representation"),
    "solver": _by_name(solvers, "solver"),
    "surrogate": _by_name(losses, "surrogate"),
    "task_loss": _by_name(task_losses, "task_loss"),
}


class NamedPartsMixin(ShortReprMixin):
    """Mixin that allows setting nested parameters of parts given by a short name."""

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of the estimator or of its parts, as in ``loss__kappa=0.5``.

        A part that is given by its short name becomes an instance when one of its parameters is set.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : estimator
            The estimator.
        """
        parts = self.get_params(deep=False) | params  # type: ignore[attr-defined]
        for name in {key.partition("__")[0] for key in params if "__" in key}:
            if isinstance(parts.get(name), str) and name in _PARTS:
                params[name] = _PARTS[name](parts[name])
        return super().set_params(**params)  # type: ignore[misc]
