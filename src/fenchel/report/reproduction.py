"""The page and the table of published numbers beside ours."""

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fenchel.report import page as pages
from fenchel.report.assets import STYLE

__all__ = ["HEADER", "Finished", "markdown", "reproduction_page", "row_cells"]

HEADER = ["number", "wanted", "ours", "tolerance", "", "note"]
_STYLE = """
td.note { white-space: normal; text-align: left; font-size: .85rem; min-width: 16rem; overflow-wrap: anywhere; }
.PASS { color: var(--good); font-weight: 600; } .MISS { color: var(--bad); font-weight: 700; }
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
  .scroll td.note { grid-column: 1 / -1; padding-bottom: .5rem; } .scroll th:last-child { display: none; }
}
"""


@dataclass(frozen=True)
class Finished:
    """An experiment that is done: its name, what its module says, its rows, its figure and its raw results."""

    name: str
    about: str
    rows: Sequence[Any]
    svg: str
    results: dict[str, Any]
    seconds: float

    @property
    def n_passed(self) -> int:
        """How many numbers are within their tolerance."""
        return sum(row.passes for row in self.rows)


def row_cells(row: Any) -> list[str]:
    """Return a comparison as texts, one for each column of the header."""
    return [
        row.name,
        f"{row.published:.4g}",
        f"{row.ours:.4g}",
        f"at most +{row.tolerance:g}" if row.at_most else f"{row.tolerance:g}",
        "PASS" if row.passes else "MISS",
        row.note,
    ]


def reproduction_page(done: Sequence[Finished], facts: dict[str, str]) -> str:
    """Return one self-contained page about all finished experiments.

    Parameters
    ----------
    done : sequence of Finished
        The experiments.
    facts : dict
        What else is to be told, such as versions and the date.

    Returns
    -------
    html : str
        The page; no request leaves it.
    """
    total, passed = sum(len(one.rows) for one in done), sum(one.n_passed for one in done)
    intro = (
        f"{passed} of {total} numbers are within their tolerance. A tolerance is relative, or where it says 'at most' "
        "an absolute amount by which ours may lie above; what is better passes. Every number of ours was computed by "
        "this run."
    )
    links = " ".join(  # lines break at the spaces
        f'<a href="#{escape(one.name)}">{escape(one.name)} {one.n_passed}/{len(one.rows)}</a>' for one in done
    )
    told = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in facts.items())
    return pages.page(
        "fenchel: published numbers, and ours",
        intro,
        f"<nav>{links}</nav>",
        *(_section(one) for one in done),
        f'<section><h2>This run</h2><table class="facts"><tbody>{told}</tbody></table></section>',
        style=STYLE + _STYLE,
    )


def _section(one: Finished) -> str:
    head = "".join(f"<th{'' if name in HEADER[1:4] else ' class=text'}>{escape(name)}</th>" for name in HEADER)
    body = ""
    for row in one.rows:
        *cells, state, note = row_cells(row)
        numbers = "".join(f"<td{' class=text' if k == 0 else ''}>{escape(cell)}</td>" for k, cell in enumerate(cells))
        body += f'<tr>{numbers}<td class="{state}">{state}</td><td class="note">{escape(note)}</td></tr>'
    title, _, more = _plain(one.about).partition("\n")
    image = "data:image/svg+xml;base64," + b64encode(one.svg.encode()).decode("ascii")
    data = "data:application/json;base64," + b64encode(json.dumps(one.results).encode()).decode("ascii")
    caption = f"{escape(one.name)}, {one.seconds:.0f} s of computing"
    return (
        f'<section id="{escape(one.name)}"><h2>{escape(one.name)}: {one.n_passed} of {len(one.rows)}</h2>'
        f"<p>{escape(title)}</p><details><summary>How it is done</summary>"
        f'<p class="about">{escape(more.strip())}</p></details>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f'<div class="figures"><figure><img src="{image}" alt="figure of {escape(one.name)}"><figcaption>{caption}; '
        f'<a download="{escape(one.name)}.svg" href="{image}">figure</a>, '
        f'<a download="{escape(one.name)}.json" href="{data}">data</a></figcaption></figure></div></section>'
    )


def _plain(text: str) -> str:
    """Return a docstring without the marks of its markup."""
    return re.sub(r"\[(\w+)\]_|:math:`([^`]*)`|``([^`]*)``", lambda found: "".join(filter(None, found.groups())), text)


def markdown(done: Sequence[Finished], facts: dict[str, str]) -> str:
    """Return the tables of all finished experiments in Markdown."""
    total, passed = sum(len(one.rows) for one in done), sum(one.n_passed for one in done)
    lines = ["# Published numbers, and ours", ""]
    lines += [f"{passed} of {total} numbers are within their tolerance. Written by `fenchel reproduce --markdown`.", ""]
    lines += [f"- {key}: {value}" for key, value in facts.items()]
    for one in done:
        lines += ["", f"## {one.name}", "", _plain(one.about).partition("\n")[0], ""]
        lines += [f"{one.n_passed} of {len(one.rows)}, {one.seconds:.0f} s of computing.", ""]
        lines += ["| number | wanted | ours | tolerance | | note |", "|---|---|---|---|---|---|"]
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row_cells(row)) + " |" for row in one.rows]
    return "\n".join(lines) + "\n"
