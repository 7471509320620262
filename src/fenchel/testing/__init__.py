"""Contract checks for your own components: losses, kernels, approximations, operators, solvers and decoders."""

from fenchel.testing._checks import checks_of, parametrize_with_checks
from fenchel.testing.approximations import check_approximation
from fenchel.testing.decoders import check_decoder
from fenchel.testing.kernels import check_kernel, check_output_operator
from fenchel.testing.losses import check_loss
from fenchel.testing.representations import check_representation
from fenchel.testing.solvers import check_solver

__all__ = [
    "check_approximation",
    "check_decoder",
    "check_kernel",
    "check_loss",
    "check_output_operator",
    "check_representation",
    "check_solver",
    "checks_of",
    "parametrize_with_checks",
]
