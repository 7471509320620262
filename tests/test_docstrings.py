"""The examples in docstrings run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import fenchel

MODULES = [
    info.name
    for info in pkgutil.walk_packages(fenchel.__path__, "fenchel.")
    if not info.name.startswith(("fenchel.app.cli", "fenchel.__main__", "fenchel.kernels._triton"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) >= 5
