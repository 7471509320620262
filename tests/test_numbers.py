"""Pages quote the values of docs/numbers.toml, and README.md no other results."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "numbers.toml"
NUMBERS = tomllib.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
NO_VALUES = {"quotes", "command", "commit", "date", "machine"}


class Value(float):
    """A number that is written as on the pages: .92, not 0.92."""

    def __format__(self, form):
        return re.sub(r"^0\.", ".", super().__format__(form))


def quoted(entry, page):
    """Return what a page has to say, with the values."""
    values = {name: Value(value) if isinstance(value, float) else value for name, value in entry.items()}
    return entry["quotes"][page].format(**{name: values[name] for name in values if name not in NO_VALUES})


def plain(page):
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("name", "page"), [(name, page) for name, entry in NUMBERS.items() for page in entry["quotes"]]
)
def test_a_page_quotes_the_value(name, page):
    assert quoted(NUMBERS[name], page) in plain(page)


@pytest.mark.parametrize("name", NUMBERS)
def test_each_number_has_its_source(name):
    entry = NUMBERS[name]
    assert entry["command"] and entry["machine"] and entry["date"] and re.fullmatch("[0-9a-f]{7}", entry["commit"])
    files = re.findall(r"benchmarks/\w+\.py", entry["command"])
    assert all((ROOT / file).exists() for file in files)
    assert files or entry["command"].startswith("fenchel ")
    names = set(re.findall(r"{(\w+)", " ".join(entry["quotes"].values())))
    assert names == set(entry) - NO_VALUES  # a value that no page quotes is not kept


def test_the_readme_has_no_other_results():
    if not NUMBERS:
        pytest.skip("no pages beside the tests")
    text = plain("README.md")
    rows = re.findall(r"\| (.*?) \|(?= \||$)", text[text.index("## Results") : text.index("## Documentation")])
    rest = " ".join(rows)
    for entry in NUMBERS.values():
        if "README.md" in entry["quotes"]:
            rest = rest.replace(quoted(entry, "README.md"), "")
    assert len(rows) >= 5 and re.findall(r"\d[\d .]*", re.sub(r"\]\([^)]*\)", "]", rest)) == []


def test_another_value_is_seen():
    """By the comparison of a page with an entry whose value has moved."""
    if not NUMBERS:
        pytest.skip("no pages beside the tests")
    entry = NUMBERS["million"] | {"seconds": 19.8}
    assert quoted(entry, "README.md") not in plain("README.md")
