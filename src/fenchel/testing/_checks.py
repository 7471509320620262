"""Shared parts of the checks: an assertion, the check of parameters, and the registry of checks by family."""

from collections.abc import Callable, Iterable, Sequence
from inspect import signature

import numpy as np
from sklearn.base import clone

from fenchel._component import Component
from fenchel._optional import require

__all__ = ["SEEDS", "Check", "check_parameters", "checks_of", "expect", "parametrize_with_checks", "register", "run"]

Check = Callable[..., None]

SEEDS = range(15)  # seeds of the randomised checks
_FAMILIES: list[tuple[type[Component], Sequence[Check]]] = []


def expect(condition: bool | np.bool_ | np.ndarray, message: str) -> None:
    """Raise ``AssertionError`` with a message unless the condition holds, even under ``python -O``."""
    if not bool(np.all(condition)):
        raise AssertionError(message)


def check_parameters(part: Component) -> None:
    """Check that examples are valid and that ``clone``, ``repr`` and ``set_params`` work: ``__init__`` only assigns."""
    part.validate()
    copy = clone(part)
    expect(copy is not part and repr(copy) == repr(part), f"{part!r}: clone returns {copy!r}.")
    parameters = part.get_params(deep=False)
    expect(set(parameters) == set(signature(type(part)).parameters), f"{part!r}: a parameter is not an attribute.")
    copy.set_params(**parameters)
    for name, value in parameters.items():
        expect(getattr(copy, name) is value, f"{part!r}: __init__ or set_params changes {name!r}.")


def register(family: type[Component], *checks: Check) -> None:
    """Register the checks of a family of components."""
    _FAMILIES.append((family, (check_parameters, *checks)))


def checks_of(part: Component) -> list[Check]:
    """Return the checks for a component, determined by its family.

    Parameters
    ----------
    part : Loss, ScalarKernel, Approximation, OutputOperator, Representation, Solver or Decoder
        An instance.

    Returns
    -------
    list of callable
        Each takes the component alone, and raises ``AssertionError`` if it breaks the contract.

    Examples
    --------
    >>> from fenchel.losses import Huber
    >>> from fenchel.testing import checks_of
    >>> [check.__name__ for check in checks_of(Huber(0.5))][:2]
    ['check_parameters', 'check_fenchel_young']
    """
    for family, checks in _FAMILIES:
        if isinstance(part, family):
            return list(checks)
    known = ", ".join(family.__name__ for family, _ in _FAMILIES)
    raise TypeError(f"There are checks for instances of {known}. Got {part!r} instead.")


def run(part: Component, family: type[Component], **options: object) -> None:
    """Run every check of a component, passing options to the checks that take them."""
    if not isinstance(part, family):
        raise TypeError(f"A {family.__name__} is needed here. Got {part!r} instead.")
    for check in checks_of(part):
        taken = signature(check).parameters
        check(part, **{name: value for name, value in options.items() if name in taken and value is not None})


def parametrize_with_checks(parts: Iterable[Component]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a pytest mark that runs a test of ``(part, check)`` for every check of every component.

    Parameters
    ----------
    parts : iterable of parts
        Instances; ``MyLoss.examples()`` returns those that the class itself provides.

    Returns
    -------
    mark : callable
        A decorator of test functions.

    Examples
    --------
    ::

        @parametrize_with_checks(MyLoss.examples())
        def test_contract(part, check):
            check(part)
    """
    pytest = require("pytest", extra="test")
    cases = [
        pytest.param(part, check, id=f"{_label(part)}-{check.__name__}") for part in parts for check in checks_of(part)
    ]
    return pytest.mark.parametrize(("part", "check"), cases)


def _label(part: Component) -> str:
    """Return a label that is the same in every process, with names of functions instead of addresses."""
    words = repr(part).split(" at 0x")
    return " ".join([words[0], *(word.partition(">")[2] for word in words[1:])])
