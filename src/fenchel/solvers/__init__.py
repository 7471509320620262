"""Solvers for the dual problem; all stop on the relative duality gap."""

from fenchel.solvers import auto, box, closed_form, coordinate, krylov, newton, proximal, splitting
from fenchel.solvers.auto import *  # noqa: F403
from fenchel.solvers.box import *  # noqa: F403
from fenchel.solvers.closed_form import *  # noqa: F403
from fenchel.solvers.coordinate import *  # noqa: F403
from fenchel.solvers.krylov import *  # noqa: F403
from fenchel.solvers.loop import IterativeSolver, ProblemwiseSolver
from fenchel.solvers.newton import *  # noqa: F403
from fenchel.solvers.proximal import *  # noqa: F403
from fenchel.solvers.solver import Solution, Solver, Status, watched
from fenchel.solvers.splitting import *  # noqa: F403

__all__ = [
    *auto.__all__,
    *box.__all__,
    *closed_form.__all__,
    *coordinate.__all__,
    *krylov.__all__,
    *newton.__all__,
    *proximal.__all__,
    *splitting.__all__,
    "IterativeSolver",
    "ProblemwiseSolver",
    "Solution",
    "Solver",
    "Status",
    "watched",
]
