"""A self-contained HTML page, without requests, and without scripts unless one is passed."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape

from fenchel.app.printable import printable

__all__ = ["figures", "items", "page", "table"]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; }
p, li { max-width: 46rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid #8884; white-space: nowrap; }
th.text, td.text { text-align: left; }
tr.first td { border-top: 2px solid #888a; }
.scroll { overflow-x: auto; }
.figures { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); }
.figures { margin: 1.5rem 0; }
figure { margin: 0; background: #fff; border: 1px solid #8884; border-radius: 6px; padding: .75rem; }
figure img { width: 100%; height: auto; }
figcaption { color: #444; font-size: .9rem; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; }
  h1 { font-size: 1.5rem; }
  ul { padding-left: 1.2rem; }
  table { font-size: .8rem; line-height: 1.3; }
  th, td { padding: .25rem; }
  th, td.text { white-space: normal; }
}
"""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], n_texts: int = 2) -> str:
    """Return an HTML table whose first columns are text; a line separates rows that differ in the first column."""
    kinds = [' class="text"' if k < n_texts else "" for k in range(len(header))]
    head = "".join(f"<th{kind}>{escape(cell)}</th>" for kind, cell in zip(kinds, header, strict=True))
    body, last = "", None
    for row in rows:
        cells = "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        body += ("<tr>" if row[0] == last else '<tr class="first">') + cells + "</tr>"
        last = row[0]
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def items(lines: Sequence[str]) -> str:
    """Return an HTML list."""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def figures(drawings: Sequence[tuple[str, str]]) -> str:
    """Return drawings, given as pairs of SVG text and caption, side by side if there is room."""
    parts = []
    for svg, caption in drawings:
        # as an image, not inline, since ids may repeat between files
        source = "data:image/svg+xml;base64," + b64encode(svg.encode()).decode("ascii")
        text = escape(caption)
        parts.append(f'<figure><img src="{source}" alt="{text}"><figcaption>{text}</figcaption></figure>')
    return f'<div class="figures">{"".join(parts)}</div>'


def page(title: str, intro: str, *blocks: str, style: str = "", script: str = "") -> str:
    """Return the whole page with ``style`` and ``script``; its policy forbids loading anything else."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    tail = f"<script>{script}</script>" if script else ""
    return printable(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{_STYLE}{style}</style></head>'
        f"<body><h1>{escape(title)}</h1><p>{escape(intro)}</p>{''.join(blocks)}{tail}</body></html>\n"
    )
