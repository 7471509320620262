"""Run cases: ``python -m tests.fuzz --cases 10000``, or one of them: ``python -m tests.fuzz --case 17``."""

import argparse
import os
import signal
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed

KINDS = ("certified", "not converged and said so", "refused with a clear error", "defect")
_CHUNK = 20
SLOW = 10  # seconds of CPU of a case that is shown
_LIMIT = 90  # seconds of CPU after which a case is given up


class _TimeOut(BaseException):
    pass


def run(number):
    """Return the verdict on one case; one that does not end is a defect."""
    from tests.fuzz.cases import case
    from tests.fuzz.judge import DEFECT, Verdict, judged

    def give_up(*_):
        raise _TimeOut

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, _LIMIT)
    try:
        drawn = case(number)
        return judged(drawn), str(drawn)
    except _TimeOut:
        return Verdict(DEFECT, f"no end after {_LIMIT} s", _LIMIT), str(drawn)
    except Exception:
        return Verdict(DEFECT, f"the judge failed: {traceback.format_exc()}"), f"case {number}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def run_all(numbers):
    """Return the verdicts on some cases."""
    return [(number, *run(number)) for number in numbers]


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--case", type=int, help="run one case only, and show it")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.case is not None:
        verdict, shown = run(arguments.case)
        print(f"{shown}\n    {verdict.kind} in {verdict.seconds:.2f} s: {verdict.reason}")
        sys.exit(verdict.kind == "defect")
    numbers = range(arguments.first, arguments.first + arguments.cases)
    chunks = [numbers[first : first + _CHUNK] for first in range(0, len(numbers), _CHUNK)]
    counts, started, seconds = Counter(), time.monotonic(), 0.0
    with ProcessPoolExecutor(arguments.workers) as pool:
        for done in as_completed([pool.submit(run_all, chunk) for chunk in chunks]):
            for _, verdict, shown in done.result():
                counts.update([verdict.kind, *(["recomputed"] if verdict.is_recomputed else [])])
                seconds += verdict.seconds
                if verdict.seconds > SLOW:
                    counts["slow"] += 1
                    print(f"{shown}\n    slow: {verdict.seconds:.0f} s, {verdict.reason}", flush=True)
                if verdict.kind == "defect":
                    print(f"{shown}\n    DEFECT: {verdict.reason}", flush=True)
            if sum(map(counts.__getitem__, KINDS)) % 1000 == 0:
                print({kind: counts[kind] for kind in KINDS}, f"{seconds:.0f} s of CPU", flush=True)
    print(f"{len(numbers)} cases in {time.monotonic() - started:.0f} s ({seconds:.0f} s of CPU)")
    for kind in KINDS:
        print(f"{counts[kind]:7d} {kind}")
    print(f"{counts['recomputed']:7d} certificates were recomputed")
    print(f"{counts['slow']:7d} cases took more than {SLOW:.0f} s of CPU")
    sys.exit(counts["defect"] > 0)


if __name__ == "__main__":
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    main()
