"""Kernels and operators as parameters of estimators: what they may be, and what is known before they are parsed."""

from collections.abc import Callable

from fenchel._array import Array
from fenchel.kernels.scalar_kernel import OperatorKernel, OutputOperator, ScalarKernel

__all__: list[str] = ["KernelLike", "OperatorLike", "is_pairwise", "takes_missing"]

KernelLike = ScalarKernel | OperatorKernel | str | Callable[..., Array]
OperatorLike = OutputOperator | Array | str | None


def is_pairwise(kernel: object) -> bool:
    """Whether a parameter is a kernel whose inputs are Gram matrices.

    Parameters
    ----------
    kernel : object
        The parameter of an estimator, which need not be valid.

    Returns
    -------
    is_pairwise : bool
        ``False`` for values that are not a kernel.

    Examples
    --------
    >>> from fenchel.kernels import is_pairwise
    >>> is_pairwise("precomputed"), is_pairwise("gaussian"), is_pairwise(3)
    (True, False, False)
    """
    return kernel == "precomputed" if isinstance(kernel, str) else _has(kernel, "is_pairwise")


def takes_missing(kernel: object) -> bool:
    """Whether a parameter is a kernel whose inputs may contain NaN.

    Parameters
    ----------
    kernel : object
        The parameter of an estimator, which need not be valid.

    Returns
    -------
    takes_missing : bool
        ``False`` for values that are not a kernel.

    Examples
    --------
    >>> from fenchel.kernels import takes_missing
    >>> takes_missing("gaussian")
    False
    """
    return _has(kernel, "takes_missing")


def _has(kernel: object, fact: str) -> bool:
    if isinstance(kernel, ScalarKernel):
        return bool(getattr(kernel.tags, fact))
    return isinstance(kernel, OperatorKernel) and bool(getattr(kernel, fact, False))
