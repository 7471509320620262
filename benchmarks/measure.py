"""Time to a gap: CPU time, one thread, everything built afresh; records go to .benchmarks/fenchel/,
or to FENCHEL_BENCH_DIR."""

import json
import math
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from families import Member

from fenchel.problem import Certificate
from fenchel.solvers import APGD, BCD, PGD, Auto, DouglasRachford, RowNewton, Solver

GAPS = (1e-3, 1e-6, 1e-9)
LONG = 0.5  # CPU seconds of a solve that is not repeated
SOLVERS: dict[str, Solver] = {
    "Auto": Auto(),
    "DouglasRachford": DouglasRachford(),
    "RowNewton": RowNewton(max_iter=2000),
    "APGD": APGD(max_iter=10**7),
    "BCD": BCD(max_iter=10**7),
    "PGD": PGD(max_iter=10**7),
}
FOLDER = Path(os.environ.get("FENCHEL_BENCH_DIR", Path(__file__).parent.parent / ".benchmarks" / "fenchel"))


@dataclass
class Run:
    """One solver on one member: CPU seconds to each gap (None where it was not reached), and how it ended."""

    member: str
    solver: str
    chosen: str = ""
    times: dict[str, float | None] = field(default_factory=dict)
    seconds: float = math.inf
    gap: float = math.inf
    status: str = ""
    n_iter: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    def time(self, gap: float) -> float:
        found = self.times.get(f"{gap:.0e}")
        return math.inf if found is None else found


def run(member: Member, name: str, tol: float = 1e-9, limit: float = 60.0, repeats: int = 3) -> Run:
    """Solve until ``tol`` or ``limit`` CPU seconds; short solves are repeated and the least times are kept.

    The gap is the one recomputed from the duals, not the one that the solver claims.
    """
    best = Run(member.name, name)
    for _ in range(repeats):
        problem = member.problem()
        marks: dict[float, float] = {}
        start = time.process_time()

        def watch(n_iter: int, found: Certificate, start: float = start, marks: dict[float, float] = marks) -> bool:
            spent = time.process_time() - start
            _mark(marks, found.relative_gap, spent)
            return spent > limit

        solution = SOLVERS[name].solve(problem, tol=tol, callback=watch)
        spent = time.process_time() - start
        _mark(marks, solution.certificate.relative_gap, spent)
        best.times = {f"{gap:.0e}": _least(marks.get(gap), best.times.get(f"{gap:.0e}")) for gap in GAPS}
        best.seconds = min(best.seconds, spent)
        best.chosen, best.status, best.n_iter = solution.solver, solution.status.name, solution.n_iter
        best.gap = problem.certificate(solution.duals, problem.predictions(solution.duals)).relative_gap
        best.extra["claimed"] = solution.certificate.relative_gap
        best.extra["predictions"] = solution.predictions
        if spent > LONG:
            break
    return best


def keep(name: str, record: Run | dict[str, Any]) -> None:
    """Append a record to .benchmarks/fenchel/<name>.jsonl."""
    row = asdict(record) if isinstance(record, Run) else dict(record)
    row.get("extra", {}).pop("predictions", None)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.jsonl").open("a") as stream:
        stream.write(json.dumps(row) + "\n")


def kept(name: str) -> list[dict[str, Any]]:
    path = FOLDER / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _mark(marks: dict[float, float], found: float, spent: float) -> None:
    for gap in GAPS:
        if found <= gap:
            marks.setdefault(gap, spent)


def _least(one: float | None, other: float | None) -> float | None:
    both = [number for number in (one, other) if number is not None]
    return min(both) if both else None
