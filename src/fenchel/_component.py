"""Base class of all pluggable components: losses, kernels, operators, representations, solvers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isabstract, signature
from types import ModuleType
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from fenchel._array import Outputs, host, is_array
from fenchel._check import Interval, Options, check_parameters, not_times, unmasked

__all__ = ["Component", "ShortReprMixin", "all_or_nothing", "from_name", "parts_of", "state_of", "undone_on_failure"]

E = TypeVar("E")
P = ParamSpec("P")


class ShortReprMixin:
    """The repr of scikit-learn on one line, showing only the ends of arrays with more than six values."""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        with np.printoptions(threshold=6, edgeitems=1, linewidth=1000):
            return str(super().__repr__(N_CHAR_MAX))  # type: ignore[call-arg]


class Component(ShortReprMixin, BaseEstimator):
    """A component with parameters, which supports ``clone``, ``set_params`` and nested grid search.

    ``__init__`` only assigns. ``_limits`` states the allowed values of each parameter; ``validate`` checks them, also
    in nested components, and is called when work starts, never before.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {}
    _has_short_name: ClassVar[bool] = True  # whether it can be given by a short name

    def validate(self) -> Self:
        """Raise if a parameter of this component, or of a nested one, is invalid."""
        check_parameters(self, self._limits)
        for value in self.get_params(deep=False).values():
            for part in value if isinstance(value, list | tuple) else (value,):
                if isinstance(part, Component):
                    part.validate()
        return self

    def set_params(self, **params: object) -> Self:
        """Set parameters of this component, or of a nested component that is an instance."""
        own = self.get_params(deep=False) | params
        for key in params:
            name = key.partition("__")[0]
            if "__" in key and isinstance(own.get(name), str):
                raise ValueError(
                    f"{key!r} needs an instance as the {name!r} of {type(self).__name__}. Got the short name "
                    f"{own[name]!r} instead."
                )
        return super().set_params(**params)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls()]


@contextmanager
def undone_on_failure(estimator: object) -> Iterator[None]:
    """Leave an estimator as it was if the statements of a ``with`` block are interrupted or fail."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


def all_or_nothing(fit: Callable[Concatenate[E, P], E]) -> Callable[Concatenate[E, P], E]:
    """Decorate ``fit`` so that it changes the estimator only on success.

    In masked arrays, masked entries become NaN; outputs that are times are refused.
    """
    names = list(signature(fit).parameters)[1:]

    @wraps(fit)
    def fit_whole(self: E, /, *args: P.args, **kwargs: P.kwargs) -> E:
        plain: Callable[..., E] = fit
        given = [_plain(value, name) for name, value in zip(names, args, strict=False)]
        named = {name: _plain(value, name) for name, value in kwargs.items()}
        with undone_on_failure(self):
            return plain(self, *given, *args[len(given) :], **named)

    return fit_whole


def _plain(value: Outputs, name: str) -> Outputs:
    """Return an argument of ``fit`` without a mask; raise if outputs are times."""
    return unmasked(not_times(value, name) if name == "y" else value, name)


def state_of(value: object) -> object:
    """Return a component's parameters as values that can be compared, with all entries of arrays, unlike its repr."""
    if isinstance(value, BaseEstimator):
        parameters = value.get_params(deep=False).items()
        return type(value).__qualname__, tuple((name, state_of(part)) for name, part in parameters)
    if isinstance(value, list | tuple):
        return tuple(map(state_of, value))
    if is_array(value):
        array = host(value)
        return array.shape, str(array.dtype), array.tobytes()
    return repr(value)


def from_name(value: object, room: ModuleType | tuple[ModuleType, ...], argument: str) -> Any:
    """Return the component with a short name (``"epsilon_svr"`` is ``EpsilonSVR()``); other values pass unchanged.

    ``room`` is the package whose ``__all__`` lists the family, or a tuple of several.
    """
    if not isinstance(value, str):
        return value
    parts = parts_of(room)
    found = {part.__name__.lower(): part for part in parts.values()}.get(value.replace("_", "").lower())
    if found is None:
        known = ", ".join(map(repr, parts))
        raise ValueError(f"Unknown {argument} {value!r}. Known names: {known}; an instance is accepted too.")
    try:
        return found()
    except TypeError as error:
        raise ValueError(
            f"The {argument} {value!r} has parameters without a default; pass an instance of {found.__name__}."
        ) from error


def parts_of(room: ModuleType | tuple[ModuleType, ...]) -> dict[str, type[Component]]:
    """Return the components of a family by their short names, in alphabetical order."""
    rooms = room if isinstance(room, tuple) else (room,)
    parts = {getattr(one, name) for one in rooms for name in one.__all__ if _is_part(getattr(one, name))}
    return {_snake(part.__name__): part for part in sorted(parts, key=lambda part: part.__name__)}


def _is_part(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Component) and value._has_short_name and not isabstract(value)


def _snake(name: str) -> str:
    """Return ``epsilon_svr`` for ``EpsilonSVR``."""
    out = ""
    for before, letter in zip(" " + name, name, strict=False):
        out += "_" + letter if letter.isupper() and before.islower() else letter
    return out.lower()
