"""Validate the docstring of every public class and function with numpydoc: ``make lint`` runs it.

Public are the names in ``__all__`` of the modules that ``conf.py`` gives an API page. The checks are those of
``[tool.numpydoc_validation]`` in pyproject.toml. A method needs a summary; its parameters are checked where it
documents them. The fields of a dataclass may be documented under Attributes. Classes and functions need an example,
but for abstract classes, exceptions, results, plots, and loaders, which need data.
"""

import ast
import dataclasses
import importlib
import inspect
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

ROOT = Path(__file__).parents[1]
ONLY_CLASSES_AND_FUNCTIONS = ("PR01", "RT01", "YD01", "EX01")
WITHOUT_EXAMPLE = ("fenchel.report.", "fenchel.app.pages.", "fenchel.datasets.files.", "fenchel.datasets.molecules.")


def rooms() -> tuple[str, ...]:
    """Return the modules with an API page, without importing Sphinx's settings."""
    for node in ast.parse((ROOT / "docs" / "conf.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ROOMS":
            return tuple(ast.literal_eval(node.value))
    raise LookupError("docs/conf.py has no ROOMS.")


def public() -> Iterator[tuple[str, Any, bool]]:
    """Yield the name of each public object, the object, and whether it is a method or a property."""
    seen = set()
    for room in rooms():
        module = importlib.import_module(room)
        for part in (getattr(module, name) for name in module.__all__):
            if id(part) in seen or not (inspect.isclass(part) or inspect.isroutine(part)):
                continue
            seen.add(id(part))
            name = f"{part.__module__}.{part.__qualname__}"
            yield name, part, False
            for member, value in vars(part).items() if inspect.isclass(part) else ():
                if not member.startswith("_") and isinstance(value, property | classmethod | staticmethod | FUNCTION):
                    yield f"{name}.{member}", value, True


FUNCTION = type(public)


def has_attributes(part: Any) -> bool:
    """Whether every field of a dataclass is documented under Attributes, or the class is an enumeration."""
    if not dataclasses.is_dataclass(part):
        return inspect.isclass(part) and hasattr(part, "__members__")
    documented = {name for entry in get_doc_object(part)["Attributes"] for name in entry.name.split(", ")}
    return {one.name for one in dataclasses.fields(part) if not one.name.startswith("_")} <= documented


def left_out(name: str, part: Any, is_member: bool) -> set[str]:
    """Return the checks that do not apply to an object."""
    if is_member:
        return set(ONLY_CLASSES_AND_FUNCTIONS)
    codes = {"PR01"} if has_attributes(part) else set()
    if inspect.isabstract(part) or dataclasses.is_dataclass(part) or name.startswith(WITHOUT_EXAMPLE):
        codes.add("EX01")
    if inspect.isclass(part) and issubclass(part, BaseException):
        codes |= {"EX01", "PR01"}  # their one argument is the message
    return codes


def main() -> int:
    """Print each failed check, and return 1 if there is one."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["numpydoc_validation"]
    checks, count, failures = set(settings["checks"]), 0, []
    for name, part, is_member in public():
        count += 1
        wanted = checks - left_out(name, part, is_member)
        failures += [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code in wanted]
    print("\n".join([*failures, f"{count} public docstrings, {len(failures)} failed checks"]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
