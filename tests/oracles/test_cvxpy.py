"""Every loss × kernel family × random problem against cvxpy, by every solver that takes it."""

import math
import warnings
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from fenchel import losses
from fenchel.losses import Ball
from fenchel.solvers import APGD, BCD, PGD, Auto, ClosedForm, DouglasRachford, Status
from tests.oracles import forms
from tests.oracles.forms import FORMS, optimum
from tests.oracles.problems import PROBLEMS, Problem
from tests.parts import LOSSES

TOL = 5e-7
AGREEMENT = 1e-6

# The papers' solvers need about 1 / lam iterations: where they run out of these, the certificate must still hold.
SOLVERS = [Auto(), ClosedForm(), DouglasRachford(), PGD(max_iter=200), APGD(max_iter=200), BCD(max_iter=20)]

# Losses whose class has no cvxpy form; some that have one show that the search is an oracle too.
BY_SEARCH = [
    *(loss for loss in LOSSES if type(loss) not in FORMS),
    losses.Huber(0.3),
    losses.EpsilonSVR(0.2),
    losses.Pinball(0.3),
]


def reference(problem, gram, size, best):
    """The optimum by cvxpy, and what cvxpy says of it.

    An optimum far below the targets is at the edge of cvxpy's tolerance. Which of its two forms of a p-norm gets there,
    and in which unit of the objective, differs from problem to problem: the best one counts, and the first one that is
    between our two bounds is the best.
    """
    weights = None if problem.root is None else problem.root[:, 0] ** 2
    found = []
    is_tiny = size < 1e-4
    for power_cones, unit in product((True, False), (1.0, 0.9, 1.2)) if is_tiny else [(True, 1.0)]:
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore")  # cvxpy says "may be inaccurate" at its last digit
            patch.setattr(forms, "POWER_CONES", [power_cones])
            targets = problem.unscale(problem.targets)
            value, status = optimum(gram, targets, problem.loss, problem.lam, unit * size, weights)
            found.append((value * unit, status))
        if max(best.primal / size - value * unit, value * unit - best.dual / size) <= AGREEMENT:
            break
    return min(found, key=lambda pair: pair[0])


@pytest.mark.parametrize("drawn", PROBLEMS, ids=str)
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if type(loss) in FORMS], ids=repr)
def test_optimum(loss, drawn):
    problem, gram = drawn.build(loss)
    solutions = {type(s).__name__: s.solve(problem, tol=TOL) for s in SOLVERS if s.why_not(problem) is None}
    best = solutions["Auto"].certificate
    zero = problem.value_at_zero if math.isfinite(problem.value_at_zero) else 1.0
    size = abs(best.primal) if math.isfinite(best.primal) else zero
    size = max(size, 1e-10 * abs(zero)) or 1.0
    value, status = reference(problem, gram, size, best)
    if status in ("infeasible", "infeasible_inaccurate"):
        assert all(s.status is not Status.CONVERGED for s in solutions.values())
        return
    # a hard constraint on a singular kernel may be met without our finding a point that meets it: it is said so
    if not isinstance(loss, Ball):
        assert solutions["Auto"].status is Status.CONVERGED, best
    for name, solution in solutions.items():
        found = solution.certificate
        slack = AGREEMENT * max(1.0, abs(value))
        assert found.primal / size >= value - slack, (name, found, value)
        assert found.dual / size <= value + slack, (name, found, value)
        if solution.status is Status.CONVERGED:
            assert found.relative_gap <= TOL
            assert abs(found.primal / size - value) <= slack, (name, found, value)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_each_solver_converges_somewhere(solver):
    """The test above would be empty for a solver that never converges."""
    loss = losses.Square() if isinstance(solver, ClosedForm) else losses.EpsilonRidge(0.3)
    reached = 0
    for drawn in PROBLEMS:
        problem, _ = drawn.build(loss)
        if drawn.k in (3, 6, 7, 8) and solver.why_not(problem) is None:
            reached += solver.solve(problem, tol=TOL).status is Status.CONVERGED
    assert reached >= 8


def brute_force(gram, targets, loss, lam, start):
    """The least primal value that a search along directions finds, over coefficients of the representer theorem."""
    bound, n = loss.bind(targets), len(targets)

    def primal(coefficients):
        predictions = (gram @ coefficients).reshape(targets.shape)
        return float(np.mean(bound.value(targets - predictions)) + lam / 2 * coefficients @ gram @ coefficients)

    scaled = start.ravel() / (lam * n)
    options = {"xtol": 1e-10, "ftol": 1e-14, "maxfev": 40000}
    return min(minimize(primal, begin, method="Powell", options=options).fun for begin in (scaled, 0 * scaled))


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("loss", BY_SEARCH, ids=repr)
def test_optimum_by_brute_force(loss, k):
    """A loss needs no cvxpy form: then no search over the primal variables may beat the certificate."""
    problem, gram = Problem("separable", k).build(loss)
    solution = Auto().solve(problem, tol=TOL)
    best, size = solution.certificate, max(abs(solution.certificate.primal), 1e-10)
    value = brute_force(gram, problem.unscale(problem.targets), loss, problem.lam, problem.unscale(solution.duals))
    assert best.dual <= value + AGREEMENT * size
    assert best.primal <= value + AGREEMENT * size
