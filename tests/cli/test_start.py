"""Help comes at once: nothing is imported that it does not need."""

import subprocess
import sys
from importlib import import_module

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "matplotlib", "rich")


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["nothing"], *([name, "--help"] for name in ("demo", "fit", "predict", "report"))],
)
def test_help_imports_no_library_of_numbers(words):
    code = (
        "import sys\n"
        "from fenchel.cli import main\n"
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
    from fenchel.cli import main

    listed = fenchel("--help").out
    assert set(main.commands) == {"datasets", "demo", "fit", "outliers", "predict", "report", "reproduce"}
    for name, command in main.commands.items():
        assert f"  {name:<9}  {command.short_help}" in listed
        assert getattr(import_module(f"fenchel.cli.{name}"), f"{name}_command").name == name
        assert fenchel(name, "--help").code == 0
