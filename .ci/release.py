"""What a release needs: ``release.py check`` lists what is open, ``release.py build`` makes the files and the tag.

Nothing is signed, pushed or uploaded: that is for whoever publishes.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def open_places() -> list[str]:
    """Return a line for each place that nobody has filled in."""
    places = tomllib.loads((ROOT / "places.toml").read_text(encoding="utf-8"))
    return [f"places.toml: {name} is empty" for name, value in places.items() if not value]


def version() -> str:
    """Return the version of the package, as its source has it."""
    source = (ROOT / "src/fenchel/__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.*)"$', source, re.M)[1]  # type: ignore[index]


def open_files() -> list[str]:
    """Return a line for each file that does not fit a release of this version."""
    found = []
    if fragments := [file for file in (ROOT / "changes").glob("*.md") if file.name != "README.md"]:
        found.append(f"changes/: {len(fragments)} fragments are not in CHANGELOG.md: run towncrier build")
    for name, pattern in (("CITATION.cff", r"^version: (.*)$"), ("CHANGELOG.md", r"^## (\S+) \(")):
        stated = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.M)
        if stated is None or stated[1] != version():
            found.append(f"{name}: it has {stated[1] if stated else 'no version'}, the package {version()}")
    return found


def open_changes() -> list[str]:
    """Return a line if the checkout differs from its commit, or if the version is tagged already."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout

    found = ["git: there are changes that are not committed"] if git("status", "--porcelain") else []
    return found + ([f"git: v{version()} is tagged already"] if git("tag", "--list", f"v{version()}") else [])


def main(what: str) -> int:
    """List what is open; with ``build``, and if only places are open, build, try and tag."""
    blocking = open_files() + open_changes()
    for line in open_places() + blocking:
        print(line)
    if what == "check":
        print("Nothing is open." if not open_places() + blocking else "The lines above are open.")
        return 0
    if blocking:
        print("Not built.", file=sys.stderr)
        return 1
    subprocess.run([ROOT / ".ci/try-dist", sys.executable, "dist"], cwd=ROOT, check=True)
    tag = ["git", "tag", "--annotate", f"v{version()}", "--message", f"fenchel {version()}"]
    subprocess.run(tag, cwd=ROOT, check=True)
    print(f"dist/ has the files of v{version()}, which is tagged here. Nothing was signed, pushed or uploaded.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "check"))
