"""Help comes at once: nothing is imported that it does not need."""

import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

COMMANDS = ("datasets", "demo", "explain", "fit", "outliers", "predict", "report", "reproduce")
HEAVY = ("numpy", "scipy", "sklearn", "pandas", "matplotlib", "rich")


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["nothing"], ["datasets", "list", "--help"], *([name, "--help"] for name in COMMANDS)],
)
def test_help_imports_no_library_of_numbers(words):
    code = (
        "import sys\n"
        "from fenchel.app.cli import main\n"
        "try:\n"
        f"    main({words!r}, prog_name='fenchel')\n"
        "except SystemExit:\n"
        f"    print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_import_fenchel_loads_no_other_library():
    code = f"import sys, fenchel; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_command_that_is_listed_is_there(fenchel):
    from fenchel.app.cli import main

    listed = fenchel("--help").out
    assert set(main.commands) == set(COMMANDS)
    for name, command in main.commands.items():
        assert f"  {name:<9}  {command.short_help}" in listed
        assert getattr(import_module(f"fenchel.app.cli.{name}"), f"{name}_command").name == name
        assert fenchel(name, "--help").code == 0


def commands(group, path=()):
    """Yield each command and subcommand with the words that call it."""
    for name, command in group.commands.items():
        if not path:
            command = getattr(import_module(f"fenchel.app.cli.{name}"), f"{name}_command")
        yield (*path, name), command
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))


def test_every_command_has_examples_that_parse(fenchel):
    from fenchel.app.cli import main

    for path, command in commands(main):
        text = fenchel(*path, "--help").out.split("Options:")[0].replace("\\\n", " ")
        examples = [shlex.split(line) for line in text.splitlines() if line.strip().startswith("fenchel ")]
        assert examples, path
        for words in examples:
            assert words[: len(path) + 1] == ["fenchel", *path]
            if hasattr(command, "commands"):
                rest, one = words[len(path) + 2 :], command.commands[words[len(path) + 1]]
            else:
                rest, one = words[len(path) + 1 :], command
            rest = rest[: rest.index("|")] if "|" in rest else rest
            one.make_context(path[-1], rest)  # an unknown option or a wrong value raises


def test_the_names_of_reproduce_are_those_of_the_experiments():
    from fenchel import papers
    from fenchel.app.cli.reproduce import EXPERIMENT_NAMES

    files = [
        file for file in Path(papers.__path__[0]).glob("*.py") if "\ndef units(" in file.read_text(encoding="utf-8")
    ]
    assert list(EXPERIMENT_NAMES) == sorted(file.stem.replace("_", "-") for file in files)


def test_fit_without_a_target_names_the_columns(fenchel, csv_file):
    assert fenchel("fit", csv_file).line.endswith("data.csv has 6: x, z, side, unit, y_a, y_b.")
