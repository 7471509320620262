"""Draw peers.svg from the tables of docs/benchmarks.rst: python docs/_static/peers.py."""

import re
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
RATIO = re.compile(r"(> )?(\d+(?:\.\d+)?)")


def rows_of(title):
    """Return the cells of the table in a section of the page."""
    text = (HERE.parent / "benchmarks.rst").read_text(encoding="utf-8")
    section = text.partition(f"\n{title}\n---")[2]
    rule = re.search(r"^=+(?:  =+)+$", section, flags=re.MULTILINE)[0]
    body = section.split(rule)[2]
    return [re.split(r" {2,}", line.strip()) for line in body.strip().splitlines()]


def draw(ax, bars, title):
    """Draw how many times as long each rival takes; hatched where it was stopped before it arrived."""
    for place, (_, text) in enumerate(reversed(bars)):
        stopped, ratio = RATIO.fullmatch(text).groups()
        value = float(ratio)
        color = "C0" if value > 1 else "C3"
        ax.barh(place, value - 1, left=1, color=color, alpha=0.6 if stopped else 1, hatch="//" if stopped else None)
        ax.annotate(
            f"{'more than ' if stopped else ''}{ratio} ×",
            (max(value, 1), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    ax.axvline(1, color="0.3", linewidth=1)
    ax.set_yticks(range(len(bars)), [name for name, _ in reversed(bars)], fontsize=8)
    ax.set(xscale="log", xlim=(0.1, 1000), title=title)


peers = [
    (f"{peer}\n{member.removeprefix('vector-')}", ratio) for member, _, peer, ratio, _ in rows_of("Other libraries")
]
solvers = [(f"{rival}\n{case}", ratio) for case, _, _, _, rival, ratio, _ in rows_of("First-order solvers")]
plt.rcParams["svg.hashsalt"] = "fenchel"
fig, (top, bottom) = plt.subplots(2, 1, figsize=(7.5, 8.5), layout="constrained", height_ratios=(11, 6), sharex=True)
draw(top, peers, "Other libraries")
draw(bottom, solvers, "Solvers of this library, named")
bottom.set_xlabel("time of the rival over that of Auto, to a gap of 1e-6")
plt.rcParams["svg.fonttype"] = "none"
fig.savefig(HERE / "peers.svg", metadata={"Date": None})
