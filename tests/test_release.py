"""The files of a release agree with each other."""

import importlib.util
import re
import tomllib
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


def metadata_with(tmp_path, **places):
    """Return the metadata of the package if it were published at some places."""
    hook = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(hook)
    hook.loader.exec_module(module)
    known = tomllib.loads(text("places.toml"))
    assert set(places) <= set(known)
    lines = [f'{name} = "{value}"' for name, value in {**known, **places}.items()]
    (tmp_path / "places.toml").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "README.md").write_text(text("README.md"), encoding="utf-8")
    metadata = {}
    module.PlacesHook(str(tmp_path), {}).update(metadata)
    return metadata


RELATIVE = re.compile(r"\]\((?!https?://|#)[^)]*\)")


def test_the_readme_of_the_wheel_has_no_relative_links(tmp_path):
    text("places.toml")
    assert RELATIVE.search(text("README.md"))
    for places in ({}, {"repository": "https://example.org/fenchel", "issues": "https://example.org/issues"}):
        metadata = metadata_with(tmp_path, **places)
        assert not RELATIVE.search(metadata["readme"]["text"])
        assert metadata["urls"] == ({"Source": places["repository"], "Issues": places["issues"]} if places else {})
    assert "(https://example.org/fenchel/raw/main/docs/_static/curves.png)" in metadata["readme"]["text"]
    assert "(https://example.org/fenchel/blob/main/docs/defaults.rst)" in metadata["readme"]["text"]


def test_links_of_the_readme_lead_to_files():
    for target in re.findall(r"\]\(((?!https?://|#)[^)]+)\)", text("README.md")):
        assert (ROOT / target).exists(), target
