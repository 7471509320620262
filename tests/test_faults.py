"""The tests that the page on faults names exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_tests_that_the_page_names_exist():
    named = re.findall(r"``(tests/[\w/]+\.py)::(\w+)``", (ROOT / "docs" / "faults.rst").read_text())
    assert len(named) > 20
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (ROOT / file).read_text()]
    assert not missing
