"""The tables of docs/results.md and what README.md says of them."""

import re
from collections import Counter
from pathlib import Path

import pytest

from fenchel.papers.catalogue import EXPERIMENTS
from fenchel.papers.comparison import KINDS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def sections():
    """The lines of every section of the tables, by name; those before the first under an empty name."""
    parts = re.split(r"^## (.*)\n", (ROOT / "docs" / "results.md").read_text(encoding="utf-8"), flags=re.M)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def cells(text):
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith(("| quantity |", "| target |"))
    ]


def counted(rows):
    """Return the number of rows of each kind and verdict."""
    return Counter((row[5], row[4]) for row in rows)


def said(text):
    """Return the numbers that a line such as "published: 1 PASS, 0 TIE, 0 MISS; own bar: ..." tells."""
    found = Counter()
    for kind in KINDS:
        told = re.search(rf"(?:^|; ){kind}: ([^;.]*)", text, flags=re.M)
        for number, verdict in re.findall(r"(\d+) (?:for )?(\w+)", told[1]) if told else ():
            found[kind, verdict] = int(number)
    return +found


def headline(text):
    return re.search(r"(\d+) PASS, (\d+) TIE, (\d+) MISS", text).groups()


def test_counts_are_those_of_the_rows(sections):
    assert sorted(name for name in sections if name) == sorted(EXPERIMENTS)
    total = Counter()
    for name, text in sections.items():
        if name:
            counts = counted(cells(text))
            assert said(text) == counts, name
            total += counts
    table = {row[0]: [int(cell) for cell in row[1:]] for row in cells(sections[""])}
    assert table == {
        text: [total[kind, verdict] for verdict in ("PASS", "TIE", "MISS", "reference")] for kind, text in KINDS.items()
    }
    first = next(iter(KINDS))
    assert headline(sections[""]) == tuple(str(total[first, verdict]) for verdict in ("PASS", "TIE", "MISS"))


@pytest.mark.parametrize("page", ["README.md", "docs/published.md"])
def test_other_pages_say_the_same(sections, page):
    assert headline((ROOT / page).read_text(encoding="utf-8")) == headline(sections[""])


def test_a_published_number_counts_once(sections):
    """The two readings of type 3 have the same targets."""
    rows = {row[0].split(" †")[0]: row for row in cells(sections["speech"])}
    twice = [name for name in rows if "type 3," in name and "all" not in name]
    assert len(twice) == 24
    for name in twice:
        other = rows[name.replace("type 3", "type 3, all")]
        assert (rows[name][1], rows[name][4]) == (other[1], "reference") and other[4] != "reference"


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
