"""The page that leads from the papers to the library: the files, tests and classes that it names are there."""

import re
from pathlib import Path

import pytest

import fenchel

ROOT = Path(__file__).parents[1]
SOURCE = Path(fenchel.__file__).parent


@pytest.fixture(scope="module")
def page():
    file = ROOT / "docs" / "papers.rst"
    if not file.exists():
        pytest.skip("no pages beside the tests")
    return file.read_text(encoding="utf-8")


def rows(page):
    """Return the cells of each row of the tables, three of them."""
    body = re.findall(r"^   \* - (.*(?:\n     .*)*)", page, flags=re.M)
    return [re.split(r"\n     - ", row) for row in body if not row.startswith("paper")]


def test_each_row_names_files_and_tests_that_are_there(page):
    found = rows(page)
    assert len(found) > 40
    for paper, library, test in found:
        files = re.findall(r"``([\w/]+\.py)``", library)
        assert files, paper
        assert [file for file in files if not (SOURCE / file).is_file()] == []
        tests = re.findall(r"``(tests/[\w/]+\.py)(?:::(\w+))?``", test)
        assert tests, paper
        for file, name in tests:
            text = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^ *(?:def|class) {name}\b", text, flags=re.M) if name else "def test_" in text, (
                file,
                name,
            )


def test_other_names_are_there(page):
    outside = re.sub(r"^   \* - .*(?:\n     .*)*", "", page, flags=re.M)
    names = set(re.findall(r"``([A-Z]\w+)(?:\([^`]*\))?``", outside))
    rooms = [fenchel, fenchel.losses, fenchel.representations, fenchel.kernels]
    assert {name for name in names if not any(hasattr(room, name) for room in rooms)} == set()
    assert names
    files = re.findall(r"``([\w/]+\.py)``", outside)
    assert [file for file in files if not (SOURCE / file).is_file()] == []


def test_keys_of_papers_are_in_the_bibliography(page):
    keys = set(re.findall(r"\[(\w+)\]_", page))
    known = set(
        re.findall(r"^@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text(encoding="utf-8"), flags=re.M)
    )
    assert len(keys) == 4 and keys <= known
