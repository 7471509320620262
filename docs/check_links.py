"""Find links of the built pages that lead nowhere: ``make docs`` runs it after Sphinx.

Sphinx warns about a role whose target is missing, but not about a plain link, raw HTML, the links that a theme or the
gallery writes, or an anchor that a page no longer has. Each ``href``, ``src`` and ``srcset`` must lead to a file, and
to an element with that id where it has a fragment. Links to other sites are not followed.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

BUILT = Path(__file__).parent / "_build" / "html"
NO_PAGES = {"_static", "_modules"}  # files of themes; source, whose links Sphinx writes


class Page(HTMLParser):
    """The ids of a page and where its links lead, with the line of each."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = {"", "top"}  # both are the top of any page
        self.links: list[tuple[int, str]] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element's id and its links."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.ids.add(value)
            elif name in ("href", "src"):
                self.links.append((self.getpos()[0], value))
            elif name == "srcset":
                self.links += [(self.getpos()[0], one.split()[0]) for one in value.split(",") if one.strip()]


def faults(built: Path) -> tuple[int, list[str]]:
    """Return the number of local links below a folder, and a line about each that leads nowhere."""
    paths = [path for path in sorted(built.rglob("*.html")) if not NO_PAGES & {*path.relative_to(built).parts}]
    pages = {path.resolve(): Page(path) for path in paths}
    count, lines = 0, []
    for path, page in pages.items():
        for line, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            fragment = unquote(parts.fragment)
            if not target.is_file():
                lines.append(f"{path.relative_to(built.resolve())}:{line}: {link}: no such file")
            elif target in pages and fragment not in pages[target].ids:
                lines.append(f"{path.relative_to(built.resolve())}:{line}: {link}: no such anchor")
    return count, lines


def main() -> int:
    """Print each link that leads nowhere, and return 1 if there is one or if there are no pages."""
    count, lines = faults(Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT)
    print("\n".join([*lines, f"{count} links within the pages, {len(lines)} lead nowhere"]))
    if lines:
        print("If a page that it names is gone from docs/, an earlier build left it: run make clean first.")
    return 1 if lines or not count else 0


if __name__ == "__main__":
    sys.exit(main())
