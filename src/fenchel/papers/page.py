"""HTML page and Markdown tables that compare published numbers with ours."""

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from fenchel.app.pages import page as pages
from fenchel.app.pages.assets import STYLE
from fenchel.papers.comparison import KINDS, VERDICTS, Comparison

__all__ = [
    "HEADER",
    "Finished",
    "by_kind",
    "footnotes",
    "headline",
    "markdown",
    "origin",
    "reproduction_page",
    "row_cells",
    "tally",
    "told",
]

HEADER = ["quantity", "target", "ours", "tolerance", "", "kind", "note"]
_KIND_HEADER = ["target", "PASS", "TIE", "MISS", "for reference"]
_STYLE = """
td.note { white-space: normal; text-align: left; font-size: .85rem; min-width: 16rem; overflow-wrap: anywhere; }
.PASS { color: var(--good); font-weight: 600; } .MISS { color: var(--bad); font-weight: 700; }
.TIE { font-weight: 600; } .reference { font-size: .85rem; }
.figures { grid-template-columns: 1fr; } figure { background: #fff; justify-self: start; }
figure img { width: auto; max-width: 100%; } figcaption, figcaption a { color: #444; }
p.about { white-space: pre-line; }
nav a { margin-right: .8rem; color: var(--blue); white-space: nowrap; }
@media (max-width: 40rem) {
  .scroll table, .scroll thead, .scroll tbody { display: block; }
  .scroll tr { display: grid; grid-template-columns: 1fr 3.8rem 3.5rem 6.2rem 2.8rem;
    border-bottom: 1px solid var(--line); }
  .scroll td, .scroll th { border: 0; padding: .25rem .15rem; min-width: 0; overflow-wrap: anywhere;
    white-space: normal; }
  .scroll td.kind, .scroll td.note { grid-column: 1 / -1; } .scroll td.note { padding-bottom: .5rem; }
  .scroll th:nth-child(n + 6) { display: none; }
}
"""


_RULES = (
    "The target is a published number, a bar set for this project, or the result of a competing method. A tolerance is "
    "relative; 'at most +x' means that ours may exceed the target by at most x and may be lower by any amount. A "
    "number after ± in the column 'ours' is a standard error; where two methods are compared, it is that of their "
    "difference on the same trials. TIE: ours is within two standard errors of the limit set by target and tolerance. "
    "Rows marked 'reference' are not counted: a baseline that ignores the inputs passes them too, or another row has "
    "the same target. Rows marked † depend on a choice made after seeing test data, or on one that the target is "
    "defined by, such as the lowest test error. The kind says where a target comes from."
)


@dataclass(frozen=True)
class Finished:
    """A finished experiment: its name, the docstring of its module, its rows, its figure and its raw results."""

    name: str
    about: str
    rows: Sequence[Comparison]
    svg: str
    results: Mapping[str, object]
    seconds: float
    reused: dict[str, str] = field(default_factory=dict)  # parts of earlier runs, and when they ran


def tally(rows: Sequence[Comparison]) -> dict[str, int]:
    """Count the rows by verdict."""
    return {verdict: sum(row.verdict == verdict for row in rows) for verdict in VERDICTS}


def by_kind(rows: Sequence[Comparison]) -> dict[str, dict[str, int]]:
    """Count the rows of each kind by verdict; the kinds that no row has are left out, but for the first."""
    kept = {kind: [row for row in rows if row.kind == kind] for kind in KINDS}
    return {kind: tally(some) for kind, some in kept.items() if some or kind == next(iter(KINDS))}


def told(rows: Sequence[Comparison]) -> str:
    """Return the counts of verdicts as text, for each kind of row on its own."""
    return "; ".join(f"{kind}: {_counted(counts)}" for kind, counts in by_kind(rows).items())


def _counted(counts: dict[str, int]) -> str:
    text = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS[:3])
    return text + (f", {counts['reference']} for reference" if counts["reference"] else "")


def headline(rows: Sequence[Comparison]) -> str:
    """Return what the rows of the first kind say."""
    (kind, counts), *_ = by_kind(rows).items()
    return f"{_counted(counts)} ({KINDS[kind]})"


def origin(done: Sequence[Finished]) -> str:
    """Return a sentence that says which parts were computed by this run, and when the others were."""
    times = sorted(time for one in done for time in one.reused.values())
    if not times:
        return "This run computed all parts."
    total = sum(len(one.results) for one in done)
    span = times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"
    is_all = len(times) == total
    return (
        f"{len(times)} of {total} parts were reused from earlier runs of the same code on the "
        f"same data ({span}); this run computed {'none' if is_all else 'the others'}."
    )


def footnotes(rows: Sequence[Comparison]) -> dict[str, str]:
    """Return the footnote mark of each choice made after seeing test data."""
    choices = dict.fromkeys(row.looked_at_test for row in rows if row.looked_at_test)
    return {choice: f"†{k}" for k, choice in enumerate(choices, 1)}


def row_cells(row: Comparison, marks: dict[str, str]) -> list[str]:
    """Format a comparison, one string for each column of the header."""
    error = "" if row.standard_error is None else f" ± {row.standard_error:.2g}"
    blind = "" if row.trivial is None else f"baseline without inputs {row.trivial:.4g}"
    return [
        " ".join(filter(None, (row.name, marks.get(row.looked_at_test)))),
        f"{row.published:.4g}",
        f"{row.ours:.4g}{error}",
        f"at most +{row.tolerance:g}" if row.at_most else f"{row.tolerance:g}",
        row.verdict,
        row.kind,
        "; ".join(filter(None, (row.note, blind))),
    ]


def reproduction_page(done: Sequence[Finished], facts: dict[str, str]) -> str:
    """Return a self-contained HTML page about all finished experiments.

    Parameters
    ----------
    done : sequence of Finished
        The experiments.
    facts : dict
        Other facts of the run, such as versions and the date.

    Returns
    -------
    html : str
        The page. It makes no requests.
    """
    rows = [row for one in done for row in one.rows]
    links = " ".join(  # lines break at the spaces
        f'<a href="#{escape(one.name)}">{escape(one.name)}</a>' for one in done
    )
    table = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in facts.items())
    return pages.page(
        "fenchel: reproduction of published results",
        f"{headline(rows)}. {_RULES} {origin(done)}",
        pages.table(_KIND_HEADER, _kind_rows(rows), 1),
        f"<nav>{links}</nav>",
        *(_section(one) for one in done),
        f'<section><h2>This run</h2><table class="facts"><tbody>{table}</tbody></table></section>',
        style=STYLE + _STYLE,
    )


def _kind_rows(rows: Sequence[Comparison]) -> list[list[str]]:
    """Return the counts of each kind of row as cells."""
    return [[KINDS[kind], *map(str, counts.values())] for kind, counts in by_kind(rows).items()]


def _section(one: Finished) -> str:
    head = "".join(f"<th{'' if name in HEADER[1:4] else ' class=text'}>{escape(name)}</th>" for name in HEADER)
    body, marks = "", footnotes(one.rows)
    for row in one.rows:
        *cells, verdict, kind, note = row_cells(row, marks)
        numbers = "".join(f"<td{' class=text' if k == 0 else ''}>{escape(cell)}</td>" for k, cell in enumerate(cells))
        body += f'<tr>{numbers}<td class="{verdict}">{verdict}</td><td class="text kind">{escape(kind)}</td>'
        body += f'<td class="note">{escape(note)}</td></tr>'
    remarks = "".join(f"<p>{mark} {escape(choice)}</p>" for choice, mark in marks.items())
    title, _, more = _plain(one.about).partition("\n")
    image = "data:image/svg+xml;base64," + b64encode(one.svg.encode()).decode("ascii")
    data = "data:application/json;base64," + b64encode(json.dumps(one.results).encode()).decode("ascii")
    caption = f"{escape(one.name)}, computing time {one.seconds:.0f} s. {escape(origin([one]))}"
    return (
        f'<section id="{escape(one.name)}"><h2>{escape(one.name)}</h2><p>{escape(told(one.rows))}.</p>'
        f"<p>{escape(title)}</p><details><summary>Protocol</summary>"
        f'<p class="about">{escape(more.strip())}</p></details>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{remarks}'
        f'<div class="figures"><figure><img src="{image}" alt="figure of {escape(one.name)}"><figcaption>{caption} '
        f'<a download="{escape(one.name)}.svg" href="{image}">figure</a>, '
        f'<a download="{escape(one.name)}.json" href="{data}">data</a></figcaption></figure></div></section>'
    )


def _plain(text: str) -> str:
    """Return a docstring without reStructuredText markup."""
    return re.sub(r"\[(\w+)\]_|:math:`([^`]*)`|``([^`]*)``", lambda found: "".join(filter(None, found.groups())), text)


def markdown(done: Sequence[Finished], facts: dict[str, str]) -> str:
    """Return Markdown with the docstring and the table of each finished experiment."""
    rows = [row for one in done for row in one.rows]
    lines = [
        "# Reproduction of published results",
        "",
        f"{headline(rows)}. Written by `fenchel reproduce --markdown`.",
        "",
    ]
    lines += [f"| {' | '.join(_KIND_HEADER)} |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(cells)} |" for cells in _kind_rows(rows)]
    lines += ["", _RULES, "", origin(done), ""]
    lines += [f"- {key}: {value}" for key, value in facts.items()]
    for one in done:
        marks = footnotes(one.rows)
        lines += ["", f"## {one.name}", "", _plain(one.about), ""]
        lines += [f"{told(one.rows)}. Computing time {one.seconds:.0f} s. {origin([one])}", ""]
        lines += [f"| {' | '.join(HEADER)} |", "|" + "---|" * len(HEADER)]
        cells = (row_cells(row, marks) for row in one.rows)
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
        lines += [line for choice, mark in marks.items() for line in ("", f"{mark} {choice}")]
    return "\n".join(lines) + "\n"
