"""Reader of ARFF files with numeric and nominal attributes, dense and sparse."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Relation", "read_arff"]

_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s+(.*\S)", re.IGNORECASE)


@dataclass(frozen=True)
class Relation:
    """The content of an ARFF file.

    Attributes
    ----------
    names : list of str
        Names of the attributes.
    values : ndarray of shape (n, d)
        Numbers. A nominal value becomes the number that it spells, or its position in the declaration if some values of
        the attribute are not numbers; a missing value is NaN.
    nominal : ndarray of bool, shape (d,)
        Mask of the nominal attributes.
    """

    names: list[str]
    values: np.ndarray
    nominal: np.ndarray


def read_arff(path: Path) -> Relation:
    """Read an ARFF file; attributes that are neither numeric nor nominal raise an error."""
    header, _, data = re.split(r"^(@data)[ \t]*$", path.read_text(encoding="utf-8"), maxsplit=1, flags=re.I | re.M)
    names, codes = [], []
    for line in header.splitlines():
        if found := _ATTRIBUTE.match(line.strip()):
            names.append(_unquoted(found[1]))
            codes.append(_codes(found[2], path))
    lines = [line.strip() for line in data.splitlines()]
    lines = [line for line in lines if line and not line.startswith("%")]
    values = np.array([_row(line, codes) for line in lines]).reshape(len(lines), len(names))
    return Relation(names, values, np.array([code is not None for code in codes]))


def _codes(kind: str, path: Path) -> dict[str, float] | None:
    """Return the numbers of nominal values, or ``None`` for a numeric attribute."""
    if kind.lower() in ("numeric", "real", "integer"):
        return None
    if not kind.startswith("{"):
        raise ValueError(f"{path} has an attribute of type {kind!r}; only numeric and nominal ones are read.")
    words = [_unquoted(word) for word in kind.strip("{}").split(",")]
    try:
        return {word: float(word) for word in words}
    except ValueError:
        return {word: float(k) for k, word in enumerate(words)}


def _row(line: str, codes: list[dict[str, float] | None]) -> list[float]:
    if not line.startswith("{"):
        (words,) = csv.reader([line], skipinitialspace=True)
        return [_number(word, code) for word, code in zip(words, codes, strict=True)]
    row = [0.0 if code is None else next(iter(code.values())) for code in codes]  # values omitted in a sparse line
    for entry in filter(None, (part.strip() for part in line.strip("{}").split(","))):
        place, word = entry.split(None, 1)
        row[int(place)] = _number(word, codes[int(place)])
    return row


def _number(word: str, code: dict[str, float] | None) -> float:
    word = _unquoted(word)
    if word == "?":
        return float("nan")
    return float(word) if code is None else code[word]


def _unquoted(word: str) -> str:
    word = word.strip()
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        word = re.sub(r"\\(.)", r"\1", word[1:-1])
    return word
