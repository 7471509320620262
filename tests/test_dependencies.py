"""The lower bounds of pyproject.toml leave out releases with known security holes in what the library uses."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from fenchel.app.persistence import OLDEST_SKOPS

# package, and the first release in which these are mended
HOLES = {
    "skops": ("0.13", "CVE-2025-54412, CVE-2025-54413 and CVE-2025-54886: a model file runs code"),
    "pyarrow": ("14.0.1", "CVE-2023-47248: a Parquet file runs code"),
    "dask": ("2026.1", "CVE-2026-23528: a link to the dashboard of distributed runs code"),
    "torch": ("2.10", "CVE-2025-32434 and CVE-2026-24747: a file of weights runs code"),
    "scikit-learn": ("1.5", "CVE-2024-5206: a vectorizer keeps the words that it should forget"),
}


@pytest.fixture(scope="module")
def bounds():
    """The lowest release that each requirement admits, by package."""
    file = Path(__file__).parents[1] / "pyproject.toml"
    if not file.exists():
        pytest.skip("pyproject.toml is not beside the tests")
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    found = {}
    for requirement in map(Requirement, texts):
        lowest = [Version(part.version) for part in requirement.specifier if part.operator == ">="]
        if lowest:
            found.setdefault(requirement.name, []).append(max(lowest))
    return {name: min(versions) for name, versions in found.items()}


@pytest.mark.parametrize("package", HOLES)
def test_releases_with_known_holes_are_left_out(package, bounds):
    mended, what = HOLES[package]
    assert bounds[package] >= Version(mended), what


def test_the_bound_of_skops_is_the_one_that_is_held_at_run_time(bounds):
    assert bounds["skops"].release == OLDEST_SKOPS
