"""The files of a release agree with each other."""

import re
from pathlib import Path

import pytest

import fenchel

ROOT = Path(__file__).parents[1]


def text(name):
    file = ROOT / name
    if not file.exists():
        pytest.skip(f"{name} is not beside the tests")
    return file.read_text(encoding="utf-8")


def test_one_version():
    assert re.search(r"^version: (.*)$", text("CITATION.cff"), re.M)[1] == fenchel.__version__
    assert re.search(r"^## (\S+) \(", text("CHANGELOG.md"), re.M)[1] == fenchel.__version__


def test_the_workflow_runs_what_ci_runs():
    workflow, script = text(".github/workflows/ci.yml"), text(".ci/run")
    assert "run: .ci/run" in workflow
    for target in ("test", "test-all", "lint", "dist-check", "docs", "demo"):
        assert f"make {target}" in script
    for part in ("macos-latest", "windows-latest", "lowest-direct", "--upgrade"):
        assert part in workflow
