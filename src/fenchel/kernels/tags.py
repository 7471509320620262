"""Facts about kernels as one value that combines, and the attributes in which they were stated before."""

import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from fenchel.exceptions import see

if TYPE_CHECKING:
    from fenchel.kernels.scalar_kernel import ScalarKernel

__all__ = ["KernelTags", "former", "former_attribute", "former_flags", "former_method"]

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class KernelTags:
    """Facts about a kernel that do not depend on its inputs.

    Parameters
    ----------
    is_pairwise : bool, default=False
        Whether inputs are Gram matrices rather than points.
    is_trusted : bool, default=True
        Whether the kernel is positive semidefinite by construction; the matrix of another kernel is checked.
    takes_objects : bool, default=False
        Whether inputs may be arbitrary objects, not only numeric arrays.
    takes_missing : bool, default=False
        Whether inputs may contain NaN.
    has_features : bool, default=False
        Whether ``features`` returns an array.
    diag_bound : float, default=inf
        Supremum of k(x, x) over all inputs.
    sees_outputs : bool, default=False
        Whether the kernel was learned from the outputs of a sample, so that errors of held-out samples are not honest
        unless it is learned again without these.

    Examples
    --------
    >>> from fenchel.kernels import Gaussian, Linear
    >>> Gaussian().tags.diag_bound, (Gaussian().tags & Linear().tags).has_features
    (1.0, False)
    """

    is_pairwise: bool = False
    is_trusted: bool = True
    takes_objects: bool = False
    takes_missing: bool = False
    has_features: bool = False
    diag_bound: float = math.inf
    sees_outputs: bool = False

    def __and__(self, other: "KernelTags") -> "KernelTags":
        """Return the facts about a kernel made of two; its bound depends on how, and whoever makes it states it."""
        return KernelTags(
            self.is_pairwise or other.is_pairwise,
            self.is_trusted and other.is_trusted,
            self.takes_objects and other.takes_objects,
            self.takes_missing and other.takes_missing,
            self.has_features and other.has_features,
            sees_outputs=self.sees_outputs or other.sees_outputs,
        )


_FLAGS = tuple(field.name for field in fields(KernelTags))
_FUNCTIONS: dict[str, Callable[..., object]] = {}


def former(function: F) -> F:
    """Register a function of a kernel that was a method of the same name."""
    _FUNCTIONS[function.__name__] = function
    return function


def former_flags(kernel: object) -> KernelTags:
    """Return the tags of a kernel whose class states them as attributes, with a warning if it does."""
    stated = [name for name in _FLAGS if hasattr(type(kernel), name) or name in vars(kernel)]
    if stated:
        _warn(f"{type(kernel).__name__} states {', '.join(stated)}. Define tags = KernelTags(...) instead")
    return KernelTags(**{name: getattr(kernel, name) for name in stated})


def former_method(kernel: object, name: str) -> Callable[..., object] | None:
    """Return the method that is a function of the kernel now, with a warning; ``None`` if its class has none."""
    if not hasattr(type(kernel), name):
        return None
    _warn(f"{type(kernel).__name__} defines {name}. Register it with the function of this name instead")
    method: Callable[..., object] = getattr(kernel, name)
    return method


def former_attribute(kernel: "ScalarKernel", name: str) -> object:
    """Return what was an attribute of kernels, with a warning, or raise ``AttributeError``."""
    if name in _FLAGS:
        _warn(f"kernel.{name} was read. Read kernel.tags.{name} instead")
        return asdict(kernel.tags)[name]
    if name in _FUNCTIONS:
        _warn(f"kernel.{name}(...) was called. Call {_FUNCTIONS[name].__module__}.{name}(kernel, ...) instead")
        return partial(_FUNCTIONS[name], kernel)
    raise AttributeError(f"{type(kernel).__name__!r} object has no attribute {name!r}")


def _warn(what: str) -> None:
    text = f"{what}; the old way ends with the next release. {see('former-attributes')}"
    warnings.warn(text, FutureWarning, stacklevel=4)
