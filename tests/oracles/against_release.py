"""Hold the working tree against another commit: recorded cases, compared by choice, bit and message.

``python -m tests.oracles.against_release record FILE`` records what the cases of ``release_cases`` give on the commit
that is checked out; ``... compare FILE`` runs them again and prints, for each case, the worst of

========================  ==================================================================================
``bits``                  every number has the same bits
``1e-8``                  numbers differ, by at most 1e-8 of the largest of their array
``moved``                 numbers differ by more; how much, for each field
``choice differs``        a kernel, loss, decoder, label, count, shape or dtype is another one
``warning differs``       by category and first sentence
``error text differs``    word by word; also where only one of the two raised
========================  ==================================================================================

and fails if any case is worse than 1e-8. ``--allow TEXT`` accepts what contains the text in ``case/field``. Bits depend
on the processor and on NumPy: record and compare on the same machine.
"""

import argparse
import gzip
import hashlib
import json
import platform
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy import sparse
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from tests.oracles.release_cases import ATTRIBUTES, CASES, Case

AGREEMENT = 1e-8  # of the largest number of an array
SINGLE = 1e-5  # the same in float32, whose last place is 1e-7
LARGER = 1.05  # a saved model may grow by this factor
VERDICTS = ("bits", "1e-8", "moved", "choice differs", "warning differs", "error text differs")
_WHOLE = 8  # arrays with more numbers are recorded by projections
_PROJECTIONS = 3
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d*(?:e[-+]?\d+)?|(?<![\w.])-?\d+e[-+]?\d+")
_SENTENCE = re.compile(r"(?<=[.])\s")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+|/tmp/\S+")
_PASSING = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)
Facts = dict[str, Any]


def facts_of(value: Any, name: str) -> Facts:
    """Return what is compared of a value: words, or arrays of numbers with their bits."""
    if isinstance(value, Mapping):
        return {
            key: fact
            for part, inner in value.items()
            if part != "seconds"
            for key, fact in facts_of(inner, f"{name}.{part}").items()
        }
    if sparse.issparse(value):
        return facts_of(value.toarray(), f"{name}.sparse")
    if hasattr(value, "data_matrix"):  # of scikit-fda
        return facts_of([value.argument_names, value.coordinate_names], f"{name}.names") | facts_of(
            {"values": value.data_matrix, "points": np.concatenate(value.grid_points)}, name
        )
    if hasattr(value, "columns"):  # a frame
        index = list(map(str, value.index)) if hasattr(value, "index") else None
        return facts_of([list(value.columns), index, type(value).__module__], f"{name}.names") | facts_of(
            {str(column): np.asarray(value[column]) for column in value.columns}, name
        )
    if isinstance(value, list | tuple) and any(isinstance(part, np.ndarray) for part in value):
        return {key: fact for i, part in enumerate(value) for key, fact in facts_of(part, f"{name}.{i}").items()}
    if isinstance(value, bool | int | float | np.ndarray | np.generic) or (
        isinstance(value, list | tuple) and all(isinstance(part, bool | int | float | np.generic) for part in value)
    ):
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return {name: numbers(array)}
        value = array.tolist()
    return {name: words(value)}


def words(value: Any) -> Facts:
    """Return a text without its decimal numbers, and these."""
    text = value if isinstance(value, str) else " ".join(repr(value).split())
    text = _ADDRESS.sub("", text)
    fact = {"words": _NUMBER.sub("#", text), "numbers": [float(number) for number in _NUMBER.findall(text)]}
    return fact if len(text) < 2000 else {"words": hashlib.sha256(text.encode()).hexdigest()[:16]}


def numbers(array: np.ndarray) -> Facts:
    """Return form, digest and numbers of an array; of a large one fixed random projections."""
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:10]
    if array.dtype.kind != "f" and array.size <= _WHOLE:
        digest = str(array.tolist())
    form = f"{array.dtype}{list(array.shape)}"
    if array.dtype.kind != "f":
        return {"form": form, "digest": digest}
    values = array.astype(np.float64).ravel()
    finite = np.isfinite(values)
    if not finite.all():
        form += hashlib.sha256(np.where(finite, "0", values.astype(str)).astype("U4").tobytes()).hexdigest()[:6]
    values = np.where(finite, values, 0.0)
    largest = float(np.abs(values).max(initial=0.0))
    if values.size > _WHOLE:
        directions = np.random.default_rng(0).standard_normal((_PROJECTIONS, values.size))
        values = directions @ values / np.sqrt(values.size)
    return {"form": form, "digest": digest, "largest": largest, "numbers": [float(f"{x:.12g}") for x in values]}


def run(case: Case) -> Facts:
    """Return the facts of one case: attributes, answers, warnings and errors."""
    facts: Facts = {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            sample, fitted = case.fit()
        except Exception as error:
            facts |= _raised("fit", error)
        else:
            facts |= _attributes(fitted, "")
            for name, question in case.questions():
                try:
                    facts |= facts_of(question(fitted, sample), name)
                except Exception as error:
                    facts |= _raised(name, error)
    sentences = {
        f"{one.category.__name__}: {_SENTENCE.split(' '.join(str(one.message).split()))[0]}"
        for one in told
        if not issubclass(one.category, _PASSING)
    }
    return facts | {"warnings": {"warning": sorted(_ADDRESS.sub("", sentence) for sentence in sentences)}}


def _raised(name: str, error: Exception) -> Facts:
    text = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    return {name: {"error": _ADDRESS.sub("", text)}}


def _attributes(fitted: Any, prefix: str) -> Facts:
    facts: Facts = {}
    for name in ATTRIBUTES:
        value = getattr(fitted, name, None)
        if value is not None:
            facts |= facts_of(value, prefix + name)
    inner = getattr(fitted, "estimator_", None)
    return facts | (_attributes(inner, f"{prefix}estimator_.") if isinstance(inner, BaseEstimator) else {})


def verdict(name: str, old: Facts | None, new: Facts | None) -> tuple[str, str]:
    """Return how two facts differ, and by how much."""
    if old is None or new is None:
        found = old or new or {}
        kind = "error text differs" if "error" in found else "choice differs"
        return kind, f"{'is new' if old is None else 'is gone'}: {_shown(found)}"
    if old == new:
        return "bits", ""
    for key, kind in (("error", VERDICTS[5]), ("warning", VERDICTS[4])):
        if key in old or key in new:
            return kind, f"{_shown(old)} -> {_shown(new)}"
    if name.endswith("bytes"):
        ratio = new["numbers"][0] / old["numbers"][0]
        return ("moved" if ratio > LARGER else "bits"), f"{ratio:.3f} times as large"
    same = ("words", "form") if "largest" in old or "words" in old else ("form", "digest")
    if any(old.get(key) != new.get(key) for key in same) or len(old["numbers"]) != len(new["numbers"]):
        return "choice differs", f"{_shown(old)} -> {_shown(new)}"
    before, after = np.array(old["numbers"]), np.array(new["numbers"])
    # a gap is a difference of objectives, which are of size one
    size = (
        max(old.get("largest", 0.0), 1.0)
        if "gap" in name or "optimization" in name
        else old.get("largest", np.maximum(np.abs(before), 1e-300))
    )
    moved = float(np.max(np.abs(after - before) / (size if np.any(size) else 1.0), initial=0.0))
    return (
        "1e-8" if moved <= (SINGLE if old.get("form", "").startswith("float32") else AGREEMENT) else "moved"
    ), f"{moved:.1e}"


def _shown(fact: Facts) -> str:
    for key in ("error", "warning"):
        if key in fact:
            return repr(fact[key])
    if "words" in fact:
        values = iter(fact.get("numbers", ()))
        return re.sub("#", lambda _: f"{next(values, '#')}", fact["words"])
    return f"{fact.get('form', '')} {fact.get('numbers', fact.get('digest', ''))}"


def compare(
    old: Mapping[str, Facts], new: Mapping[str, Facts], allowed: Iterable[str] = ()
) -> list[tuple[str, str, list[str]]]:
    """Return for each case its worst verdict that is not allowed, and the lines that explain it."""
    found = []
    for case in dict.fromkeys([*old, *new]):
        worst, lines = 0, []
        before, after = old.get(case, {}), new.get(case, {})
        for name in dict.fromkeys([*before, *after]):
            if name not in before and name in ATTRIBUTES:
                continue  # an attribute that was added
            kind, amount = verdict(name, before.get(name), after.get(name))
            is_allowed = any(text in f"{case}/{name}" for text in allowed)
            if kind not in VERDICTS[:2]:
                lines.append(f"{'allowed: ' * is_allowed}{name}: {kind} {amount}")
            worst = max(worst, min(VERDICTS.index(kind), 1 if is_allowed else len(VERDICTS)))
        found.append((case, VERDICTS[worst], lines))
    return found


def recorded(cases: Iterable[Case], progress: bool = False) -> dict[str, Facts]:
    """Run cases and return their facts by name."""
    found, started = {}, time.process_time()
    with threadpool_limits(1):
        for place, case in enumerate(cases):
            np.random.seed(0)
            before = time.process_time()
            found[case.name] = run(case)
            if progress and time.process_time() - before > 3:
                print(f"{time.process_time() - before:5.1f} s  {place} {case.name}", file=sys.stderr)
    if progress:
        print(f"{len(found)} cases, {time.process_time() - started:.0f} s of CPU", file=sys.stderr)
    return found


def _machine() -> dict[str, str]:
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return {"commit": commit.stdout.strip(), "numpy": np.__version__, "scipy": scipy.__version__} | {
        "processor": platform.processor() or platform.machine()
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.oracles.against_release", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains the text")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="TEXT", help="accept what contains it in case/field"
    )
    given = parser.parse_args(arguments)
    found = recorded([case for case in CASES if given.only in case.name], progress=True)
    if given.action == "record":
        with gzip.open(given.file, "wt", encoding="utf-8") as file:
            json.dump({"machine": _machine(), "cases": found}, file, separators=(",", ":"))
        print(f"{given.file}: {given.file.stat().st_size / 1000:.0f} kB")
        return 0
    with gzip.open(given.file, "rt", encoding="utf-8") as file:
        old = json.load(file)
    results = compare(
        {name: facts for name, facts in old["cases"].items() if given.only in name},
        json.loads(json.dumps(found)),
        given.allow,
    )
    for case, worst, lines in results:
        if worst not in VERDICTS[:2] or lines:
            print("\n    ".join([f"{worst}: {case}", *lines]))
    counts = Counter(worst for _, worst, _ in results)
    print(f"recorded on {old['machine']}\ncompared on {_machine()}")
    print(", ".join(f"{counts[kind]} {kind}" for kind in VERDICTS if counts[kind]))
    return int(any(counts[kind] for kind in VERDICTS[2:]))


if __name__ == "__main__":
    sys.exit(main())
