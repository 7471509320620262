"""Auto against other libraries, each given 60 times Auto's time to gap 1e-6, and as many repetitions."""

import peers
import pytest
from families import FULL, Member, Spec, build
from measure import keep, run

from fenchel.losses import Square

CASES = [
    (Spec("vector", "eps-ridge", 500, 100, 1e-6, 0.5), ("celer mtl_path", "sklearn MultiTaskLasso")),
    (Spec("vector", "eps-ridge", 500, 14, 1e-3, 0.05), ("celer mtl_path", "sklearn MultiTaskLasso")),
    (Spec("vector", "eps-ridge", 200, 14, 1e-4, 0.5), ("celer mtl_path", "sklearn MultiTaskLasso")),
    (Spec("vector", "eps-svr", 500, 1, 1e-5, 0.5), ("sklearn SVR",)),
]
CASES += [
    (Spec("vector", "eps-svr", n, 1, lam, share), ("sklearn SVR",))
    for n in (500, 1000)
    for lam in (1e-2, 1e-3)
    for share in (0.1, 0.5, 0.9)
]
if FULL:
    CASES += [
        (Spec("vector", "eps-ridge", 2000, 100, 1e-6, 0.5), ("celer mtl_path", "sklearn MultiTaskLasso")),
        (Spec("vector", "eps-svr", 2000, 1, 1e-4, 0.5), ("sklearn SVR",)),
    ]
# one cone program is enough to see its place; it cannot be stopped, so it is small and has no limit
CASES += [(Spec("vector", "eps-ridge", 100, 5, 1e-4, 0.5), ("cvxpy Clarabel",))]


@pytest.mark.parametrize(("spec", "names"), CASES, ids=[str(spec) for spec, _ in CASES])
def test_peers(spec, names):
    member = build(spec)
    auto = run(member, "Auto", tol=1e-6)
    keep("peers", auto)
    assert auto.gap <= 1e-6
    for name in names:
        keep("peers", peers.run(member, name, 60 * auto.seconds))


def test_kernel_ridge():
    other = build(Spec("vector", "huber", 500, 14, 1e-4, 0.5))
    member = Member("vector-square-n500-r14-lam1e-04", other.K, None, other.Y, Square(), other.lam)
    run(member, "Auto", tol=1e-6), peers.run(member, "sklearn KernelRidge", 10.0)  # both warm
    keep("peers", run(member, "Auto", tol=1e-6, repeats=10))
    keep("peers", peers.run(member, "sklearn KernelRidge", 10.0, repeats=10))
