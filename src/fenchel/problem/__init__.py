"""The dual problem, and the certificate on which every solver stops."""

from fenchel.problem.dual_problem import Certificate, DualProblem, Shared

__all__ = ["Certificate", "DualProblem", "Shared"]
