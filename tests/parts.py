"""The parts that the contract tests run on: whatever each room's ``__all__`` holds."""

import re
from inspect import isabstract

from fenchel import approximations, decoders, kernels, losses, representations, solvers, task_losses
from fenchel._component import Component
from fenchel.representations import CoordinateSpace


def named(value):
    """Return the ``repr`` of a parameter as the name of a case: the same in every process, without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def examples(room, base):
    """Return the examples of every concrete class of a family in a room."""
    parts = []
    for name in room.__all__:
        value = getattr(room, name)
        if isinstance(value, type) and issubclass(value, base) and not isabstract(value):
            parts += value.examples()
    return parts


def space(representation, Y, weights=None, operator=None):
    """Return training outputs in the coordinates that a representation learns from them."""
    return CoordinateSpace(representation, representation.learn(Y, weights, operator).rows, weights)


APPROXIMATIONS = examples(approximations, approximations.Approximation)
DECODERS = examples(decoders, decoders.Decoder)
LOSSES = examples(losses, losses.Loss)
OPERATOR_KERNELS = examples(kernels, kernels.OperatorKernel)
OUTPUT_OPERATORS = examples(kernels, kernels.OutputOperator)
EVERY_REPRESENTATION = examples(representations, representations.Representation)
REPRESENTATIONS = [part for part in EVERY_REPRESENTATION if not part.is_functional]
CURVE_REPRESENTATIONS = [part for part in EVERY_REPRESENTATION if part.is_functional]
SCALAR_KERNELS = examples(kernels, kernels.ScalarKernel)
SOLVERS = examples(solvers, solvers.Solver)
TASK_LOSSES = examples(task_losses, task_losses.TaskLoss)
ALL = [
    *APPROXIMATIONS,
    *DECODERS,
    *LOSSES,
    *OPERATOR_KERNELS,
    *OUTPUT_OPERATORS,
    *EVERY_REPRESENTATION,
    *SOLVERS,
    *TASK_LOSSES,
    *SCALAR_KERNELS,
]

__all__ = [
    "ALL",
    "APPROXIMATIONS",
    "CURVE_REPRESENTATIONS",
    "DECODERS",
    "LOSSES",
    "OPERATOR_KERNELS",
    "OUTPUT_OPERATORS",
    "REPRESENTATIONS",
    "SCALAR_KERNELS",
    "SOLVERS",
    "TASK_LOSSES",
    "Component",
    "space",
]
