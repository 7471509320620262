"""What a warning or an error means and what to do: the entries of the troubleshooting page, as plain text."""

import difflib
import re
from importlib.resources import files

__all__ = ["explain", "explanations"]

_ENTRY = re.compile(r"^\.\. _([\w-]+):\n\n(.*?)(?=^\.\. _[\w-]+:\n|\Z)", flags=re.MULTILINE | re.DOTALL)
_ROLE = re.compile(r":\w+:`(?:([^`<]+) <[^`>]+>|([^`]+))`")


def explanations() -> dict[str, str]:
    """Return the entries by the codes with which warnings and errors name them."""
    page = files("fenchel.app").joinpath("troubleshooting.rst").read_text(encoding="utf-8")
    return {code: _plain(text) for code, text in _ENTRY.findall(page)}


def explain(code: str | None = None) -> str:
    """Return the entry of a code, or the list of all codes."""
    known = explanations()
    if code is None:
        titles = {code: text.partition("\n")[0] for code, text in known.items()}
        return "\n".join(f"{code:24}{title}" for code, title in titles.items())
    if code not in known:
        near = difflib.get_close_matches(code, known, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else "Leave it out for a list of all codes."
        raise ValueError(f"There is no entry {code!r}. {remedy}")
    return known[code]


def _plain(text: str) -> str:
    """Return reStructuredText without the marks that a terminal cannot show."""
    return _ROLE.sub(lambda role: f"'{role[1] or role[2]}' in the documentation", text).replace("``", "`").strip()
