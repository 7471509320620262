"""Losses, kernels and grids given as text: ``huber:kappa=0.5``, ``gaussian:gamma=median``, ``1e-6:1:13``."""

import ast
from collections.abc import Callable
from difflib import get_close_matches
from inspect import signature
from types import ModuleType

import numpy as np

from fenchel import losses
from fenchel._component import Component, from_name, parts_of
from fenchel.app.cli.groups import ParamType, click, shell_completion
from fenchel.kernels import as_scalar_kernel, fingerprints, functional, scalar

__all__ = ["GridType", "PartType", "grid_type", "kernel_type", "loss_type"]


class PartType(ParamType):
    """A part given by its short name and optional parameters: ``name`` or ``name:a=1,b=2``."""

    def __init__(self, what: str, rooms: tuple[ModuleType, ...], by_name: Callable[[str], Component]) -> None:
        self.name = what
        self.rooms = rooms
        self.by_name = by_name

    def convert(self, value: object, param: "click.Parameter | None", ctx: "click.Context | None") -> object:
        """Return the instance that the text stands for."""
        if not isinstance(value, str):
            return value
        name, colon, rest = value.partition(":")
        try:
            part = self._named(name, _settings(rest) if colon else {})
            return part.validate()
        except (TypeError, ValueError) as error:
            raise click.BadParameter(str(error), ctx=ctx, param=param) from error

    def shell_complete(
        self, ctx: "click.Context", param: "click.Parameter", incomplete: str
    ) -> "list[shell_completion.CompletionItem]":
        """Return the names that begin with the incomplete text."""
        return [shell_completion.CompletionItem(name) for name in parts_of(self.rooms) if name.startswith(incomplete)]

    def _named(self, name: str, settings: dict[str, object]) -> Component:
        if not settings:
            return self._default(name)
        kind = parts_of(self.rooms).get(name) or type(self._default(name))
        known = sorted(set(signature(kind).parameters))
        for key in settings:
            if key not in known:
                near = get_close_matches(key, known, n=1, cutoff=0.4)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise ValueError(
                    f"{kind.__name__} has no parameter {key!r}.{hint} It has {', '.join(known) or 'none'}."
                )
        return kind(**settings)

    def _default(self, name: str) -> Component:
        """Return the part of that name with its default parameters, or raise with the nearest name."""
        parts = parts_of(self.rooms)
        try:
            return self.by_name(name)
        except ValueError as error:
            near = get_close_matches(name, parts, n=1)
            if name in parts or not near:
                raise
            raise ValueError(
                f"Unknown {self.name} {name!r}. Did you mean {near[0]!r}? Known names: {', '.join(parts)}."
            ) from error


class GridType(ParamType):
    """Positive numbers: a list ``1e-4,1e-2,1``, or a geometric range ``from:to:count``, ``1e-6:1:13``."""

    name = "numbers"

    def convert(self, value: object, param: "click.Parameter | None", ctx: "click.Context | None") -> object:
        """Return the list of numbers."""
        if not isinstance(value, str):
            return value
        try:
            if ":" in value:
                low, high, count = value.split(":")
                # twelve digits: 1e-05 instead of 9.999999999999999e-06
                numbers = [float(f"{x:.12g}") for x in np.geomspace(float(low), float(high), int(count))]
            else:
                numbers = [float(part) for part in value.split(",")]
        except ValueError:
            numbers = []
        if not numbers or not all(0 < number < np.inf for number in numbers):
            self.fail(f"{value!r} is neither positive numbers '1e-4,1e-2' nor a range 'from:to:count'.", param, ctx)
        return numbers


def _settings(text: str) -> dict[str, object]:
    """Parse parameters ``a=1,b=x``; values that are Python literals are converted."""
    found: dict[str, object] = {}
    for piece in text.split(","):
        key, equals, value = piece.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{piece!r} is not a parameter; write name:parameter=value,parameter=value.")
        found[key.strip()] = _value(value.strip())
    return found


def _value(text: str) -> object:
    try:
        return float(text) if text.lower().lstrip("+-") in ("inf", "nan") else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


loss_type = PartType("loss", (losses,), lambda name: from_name(name, losses, "loss"))
kernel_type = PartType("kernel", (scalar, fingerprints, functional), as_scalar_kernel)
grid_type = GridType()
