"""Every package of the library has tests that ``make test ROOM=...`` finds."""

from pathlib import Path

import pytest

import fenchel
from tests.rooms import TESTS, files_of

PACKAGES = [path.name for path in Path(fenchel.__file__).parent.iterdir() if (path / "__init__.py").exists()]


@pytest.mark.parametrize("room", sorted(PACKAGES))
def test_each_package_has_tests(room):
    assert files_of(room)


def test_the_losses_have_theirs_and_not_those_of_others():
    names = {path.relative_to(TESTS).as_posix() for path in files_of("losses")}
    assert {"contracts/test_losses.py", "contracts/test_pnorm_losses.py", "oracles/test_cvxpy.py"} <= names
    assert not {"contracts/test_decoders.py", "cli/test_fit.py"} & names


def test_a_room_that_is_not_there_has_none():
    assert files_of("astronomy") == set()
