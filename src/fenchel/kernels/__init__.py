"""Scalar kernels on inputs, operators on outputs, and the operator-valued kernels built from them."""

from fenchel.kernels import (
    aligned,
    blocks,
    categories,
    columns,
    combined,
    completed,
    equivariant,
    fingerprints,
    functional,
    invariant,
    leaves,
    multiple,
    operators,
    parameters,
    projected,
    scalar,
    separable,
    square,
    standardized,
    wrapped,
)
from fenchel.kernels.aligned import *  # noqa: F403
from fenchel.kernels.blocks import *  # noqa: F403
from fenchel.kernels.categories import *  # noqa: F403
from fenchel.kernels.columns import *  # noqa: F403
from fenchel.kernels.combined import *  # noqa: F403
from fenchel.kernels.completed import *  # noqa: F403
from fenchel.kernels.equivariant import *  # noqa: F403
from fenchel.kernels.fingerprints import *  # noqa: F403
from fenchel.kernels.functional import *  # noqa: F403
from fenchel.kernels.invariant import *  # noqa: F403
from fenchel.kernels.leaves import *  # noqa: F403
from fenchel.kernels.multiple import *  # noqa: F403
from fenchel.kernels.operators import *  # noqa: F403
from fenchel.kernels.parameters import *  # noqa: F403
from fenchel.kernels.projected import *  # noqa: F403
from fenchel.kernels.scalar import *  # noqa: F403
from fenchel.kernels.scalar_kernel import OperatorKernel, OutputOperator, ScalarKernel
from fenchel.kernels.separable import *  # noqa: F403
from fenchel.kernels.square import *  # noqa: F403
from fenchel.kernels.standardized import *  # noqa: F403
from fenchel.kernels.tags import KernelTags
from fenchel.kernels.wrapped import *  # noqa: F403

__all__ = [
    *aligned.__all__,
    *blocks.__all__,
    *categories.__all__,
    *columns.__all__,
    *combined.__all__,
    *completed.__all__,
    *equivariant.__all__,
    *fingerprints.__all__,
    *functional.__all__,
    *invariant.__all__,
    *leaves.__all__,
    *multiple.__all__,
    *operators.__all__,
    *parameters.__all__,
    *projected.__all__,
    *scalar.__all__,
    *separable.__all__,
    *square.__all__,
    *standardized.__all__,
    *wrapped.__all__,
    "KernelTags",
    "OperatorKernel",
    "OutputOperator",
    "ScalarKernel",
]
