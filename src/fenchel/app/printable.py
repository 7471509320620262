"""Text from files and users, safe to show."""

import unicodedata

__all__ = ["printable"]

_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of Unicode


def printable(text: str) -> str:
    """Return a text with control and invisible characters as their escapes, but for line ends and tabs.

    A name from a file could otherwise clear a terminal, change its title or reverse the order of what follows.
    """
    kinds = map(unicodedata.category, text)
    return "".join(
        char.encode("unicode_escape").decode() if kind in _INVISIBLE and char not in "\n\t" else char
        for char, kind in zip(text, kinds, strict=True)
    )
