"""The tests of one package of the library: ``make test ROOM=losses``."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
FOLDERS = {"contracts", "oracles"}  # where a file tests what it imports


def files_of(room):
    """Return the files that are about a package, or that use it if none is about it."""
    files = sorted(TESTS.rglob("test_*.py"))
    about = {path for path in files if is_about(path, room)}
    return about or {path for path in files if room in packages(path)}


def is_about(path, room):
    """Whether a file is named after a package, lies in a folder of its name, or checks what it imports from it."""
    words = {stem(word) for word in (*path.relative_to(TESTS).parts, *path.stem.split("_"))}
    return stem(room) in words or (path.parent.name in FOLDERS and room in packages(path) and len(packages(path)) <= 4)


def packages(path):
    """Return the packages of the library that a file imports from."""
    return set(re.findall(r"^(?:from|import) fenchel\.(\w+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE))


def stem(word):
    """Return a name without the ending of its plural."""
    return word.removesuffix("es").removesuffix("s")
