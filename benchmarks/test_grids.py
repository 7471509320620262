"""Surfaces of 250 (lam, parameter) points on one factorisation against fits one by one."""

import time

import numpy as np
import pytest
from families import Spec, build, make_loss
from measure import keep

from fenchel.resample.surface import solve_grid
from fenchel.solvers import APGD, Auto, DouglasRachford

LAMS = np.logspace(-2, -6, 25)


def _grid(spec):
    member = build(spec)
    losses = [make_loss(spec.loss, member.loss.kappa * factor) for factor in np.logspace(-0.7, 0.7, 10)]
    return member, losses


def _surface(member, losses):
    best, gaps = np.inf, []
    for _ in range(3):
        start = time.process_time()
        gaps = [s.certificate.relative_gap for _, _, s in solve_grid(member.problem(), losses, LAMS, 1e-6)]
        best = min(best, time.process_time() - start)
    assert len(gaps) == 250
    return best, max(gaps)


def _one_by_one(member, losses, solver, shared, limit=20.0):
    """Return the CPU time of every tenth fit, times ten, and how many of them reached the gap."""
    base, spent, reached = member.problem(), 0.0, 0
    if shared:
        base.shared.factorize()  # not counted
    for k in range(0, 250, 10):
        loss = losses[k // 25].bind(member.Y, None)
        lam = float(LAMS[(k + k // 25) % 25])
        problem = (base if shared else member.problem()).with_(loss=loss, lam=lam)
        start = time.process_time()
        found = solver.solve(problem, 1e-6, callback=lambda i, c, start=start: time.process_time() - start > limit)
        spent += time.process_time() - start
        reached += found.certificate.relative_gap <= 1e-6
    return 10 * spent, reached


@pytest.mark.parametrize("loss", ["huber", "huber-1"])
def test_surface_of_curves(loss):
    member, losses = _grid(Spec("functional", loss, 100, 100, 1e-4, 0.3))
    seconds, gap = _surface(member, losses)
    rival, reached = _one_by_one(member, losses, APGD(), shared=False, limit=5.0)
    keep("grids", {"case": f"surface {loss} 100x100 vs APGD", "seconds": seconds, "gap": gap,
                   "rival": rival, "reached": reached})  # fmt: skip
    assert gap <= 1e-6


@pytest.mark.parametrize("loss", ["huber", "eps-ridge"])
def test_one_output(loss):
    member = build(Spec("vector", loss, 500, 1, 1e-4, 0.5))
    size = getattr(member.loss, "kappa", None) or member.loss.epsilon
    losses = [make_loss(loss, size * factor) for factor in np.logspace(-0.7, 0.7, 10)]
    seconds, gap = _surface(member, losses)
    for name, solver, shared in (("Auto, each afresh", Auto(), False), ("shared eigenbasis", DouglasRachford(), True)):
        rival, reached = _one_by_one(member, losses, solver, shared)
        keep("grids", {"case": f"one output {loss} n500 vs one by one, {name}", "seconds": seconds, "gap": gap,
                       "rival": rival, "reached": reached})  # fmt: skip
    assert gap <= 1e-6
