"""The table and the plot of a run, in .benchmarks/fenchel/."""

import math
import platform
from collections import defaultdict
from datetime import date

from measure import FOLDER, GAPS, kept


def start() -> None:
    """Forget the records of earlier runs."""
    for path in FOLDER.glob("*.jsonl"):
        path.unlink()


def write() -> None:
    """Write table.rst, and benchmarks.svg if matplotlib is there."""
    groups = _members()
    if not (groups or kept("claims") or kept("peers") or kept("grids")):
        return
    lines = [f"Run on {date.today().isoformat()}, Python {platform.python_version()}, one thread, CPU time.", ""]
    lines += _families(groups) + _claims() + _peers() + _grids()
    (FOLDER / "table.rst").write_text("\n".join(lines) + "\n")
    if groups:
        _plot(groups)


def _members() -> dict[str, dict[str, dict]]:
    groups: dict[str, dict[str, dict]] = defaultdict(dict)
    for row in kept("families"):
        groups[row["member"]][row["solver"]] = row
    return groups


def regret(rows: dict[str, dict], gap: float) -> tuple[float, str]:
    """Return Auto's time to a gap over the least of the named solvers', and which one that is."""
    key = f"{gap:.0e}"
    auto = rows["Auto"]["times"][key]
    others = {name: row["times"][key] for name, row in rows.items() if row["times"][key] is not None and name != "Auto"}
    if not others:
        return (1.0, "Auto") if auto is not None else (math.nan, "none")
    name = min(others, key=others.get)
    if auto is None:
        return math.inf, name
    return (auto / others[name], name) if others[name] < auto else (1.0, "Auto")


def _families(groups: dict[str, dict[str, dict]]) -> list[str]:
    kinds: dict[tuple[str, str], list[dict[str, dict]]] = defaultdict(list)
    for rows in groups.values():
        spec = rows["Auto"]["extra"]["spec"]
        kinds[spec["kind"], spec["loss"]].append(rows)
    out = []
    for (kind, loss), members in sorted(kinds.items()):
        reached = [sum(rows["Auto"]["gap"] <= gap for rows in members) for gap in GAPS]
        ratios = [regret(rows, 1e-6)[0] for rows in members]
        times = sorted(rows["Auto"]["times"]["1e-06"] or math.inf for rows in members)
        out.append([
            f"{kind}, {loss}", str(len(members)), *(str(number) for number in reached),
            f"{times[len(times) // 2]:.3f}", f"{sorted(ratios)[len(ratios) // 2]:.2f}", f"{max(ratios):.2f}",
        ])  # fmt: skip
    header = ["family", "members", *(f"≤ {gap:.0e}" for gap in GAPS), "median s", "median ratio", "worst ratio"]
    return _table(header, out) if out else []


def _claims() -> list[str]:
    cases: dict[str, list[dict]] = defaultdict(list)
    for row in kept("claims"):
        cases[row["extra"]["case"]].append(row)
    out = []
    for case, (auto, other) in cases.items():
        out.append(
            [case, auto["member"], auto["chosen"], f"{auto['seconds']:.3f}", other["solver"], *_against(auto, other)]
        )
    return _table(["case", "problem", "Auto chose", "s", "other", "ratio", "gap of the other"], out) if out else []


def _peers() -> list[str]:
    out, auto = [], None
    for row in kept("peers"):
        if row["solver"] == "Auto":
            auto = row
        elif auto is not None:
            out.append([row["member"], f"{auto['seconds']:.3f}", row["solver"], *_against(auto, row)])
    return _table(["problem", "Auto, s", "other solver", "ratio", "gap of the other"], out) if out else []


def _against(auto: dict, other: dict) -> list[str]:
    """Return the rival's time to 1e-6 over Auto's (or what it was given), and the gap it reached."""
    found = other["times"]["1e-06"]
    ratio = f"{found / auto['seconds']:.2f}" if found is not None else f"> {other['seconds'] / auto['seconds']:.0f}"
    return [ratio, f"{other['gap']:.1e}"]


def _grids() -> list[str]:
    out = [
        [row["case"], f"{row['seconds']:.2f}", f"{row['gap']:.1e}", f"{row['rival'] / row['seconds']:.1f}",
         f"{row['reached']} of 25"]
        for row in kept("grids")
    ]  # fmt: skip
    return _table(["grid of 250", "s", "worst gap", "ratio", "fits that reached 1e-6"], out) if out else []


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    rule = "  ".join("=" * width for width in widths)
    body = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    head = "  ".join(cell.ljust(width) for cell, width in zip(header, widths, strict=True)).rstrip()
    return ["", rule, head, rule, *body, rule, ""]


def _plot(groups: dict[str, dict[str, dict]]) -> None:
    """Draw the share of members that each solver has solved within a multiple of the best time."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return
    figure, axes = plt.subplots(1, len(GAPS), figsize=(11, 3.2), sharey=True, layout="constrained")
    for ax, gap in zip(axes, GAPS, strict=True):
        key = f"{gap:.0e}"
        ratios: dict[str, list[float]] = defaultdict(list)
        for rows in groups.values():
            times = {name: row["times"][key] for name, row in rows.items()}
            times.setdefault(rows["Auto"]["chosen"], times["Auto"])
            best = min((t for t in times.values() if t is not None), default=None)
            for name, found in times.items():
                if found is not None:
                    ratios[name].append(found / best)
        for name, values in ratios.items():
            if name in ("Auto", "DouglasRachford", "RowNewton", "APGD", "BCD", "PGD"):
                share = [(k + 1) / len(groups) for k in range(len(values))]
                ax.step([1.0, *sorted(values)], [0, *share], where="post", label=name)
        ax.set(xscale="log", xlim=(1, 20), xlabel="CPU time / best", title=f"gap {gap:.0e}")
    axes[0].set_ylabel("share of problems")
    axes[-1].legend(loc="lower right")
    figure.savefig(FOLDER / "benchmarks.svg")
    plt.close(figure)
