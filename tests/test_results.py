"""The tables of docs/results.md and what README.md says of them."""

import re
from collections import Counter
from pathlib import Path

import pytest

from fenchel.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[1]
VERDICTS = {"PASS": "PASS", "TIE": "TIE", "MISS": "MISS", "reference": "for reference"}


@pytest.fixture(scope="module")
def sections():
    """The lines of every section of the tables, by name; those before the first under an empty name."""
    parts = re.split(r"^## (.*)\n", (ROOT / "docs" / "results.md").read_text(encoding="utf-8"), flags=re.M)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def cells(text):
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith("| quantity |")
    ]


def told(counts):
    """Return the counts as the tables say them; a verdict that no row has may be left out."""
    return {name: counts[verdict] for verdict, name in VERDICTS.items() if counts[verdict]}


def said(text):
    found = re.search(r"(\d+) PASS, (\d+) TIE, (\d+) MISS(?:, (\d+) for reference)?", text)
    numbers = zip(VERDICTS.values(), (int(number or 0) for number in found.groups()), strict=True)
    return {name: number for name, number in numbers if number}


def test_counts_are_those_of_the_rows(sections):
    assert sorted(name for name in sections if name) == sorted(EXPERIMENTS)
    total = Counter()
    for name, text in sections.items():
        if name:
            counts = Counter(row[4] for row in cells(text))
            assert said(text) == told(counts), name
            total += counts
    assert said(sections[""]) == told(total)


def test_the_readme_says_the_same(sections):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert said(readme) == said(sections[""])


def test_every_caveat_of_a_module_is_there(sections):
    """Word by word, but for the marks of the markup."""

    def words(text):
        return re.findall(r"\w+", re.sub(r"\[(\w+)\]_|:math:|``", r"\1", text))

    for name, module in EXPERIMENTS.items():
        assert " ".join(words(module.__doc__)) in " ".join(words(sections[name])), name


def test_marks_have_footnotes(sections):
    marked = 0
    for name, text in sections.items():
        used = {mark for row in cells(text) for mark in re.findall(r"†\d+", row[0])}
        assert used == set(re.findall(r"^(†\d+) \w", text, flags=re.M)), name
        marked += bool(used)
    assert marked >= 8
