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


def test_actions_of_the_workflows_are_pinned_by_digest():
    """A tag can be moved to other code, a commit cannot; the comment names the release for the reader."""
    for file in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for line in re.findall(r"^.*\buses:.*$", file.read_text(encoding="utf-8"), re.M):
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line
