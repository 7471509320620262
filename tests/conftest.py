import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("fenchel", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("fenchel")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=["numpy", "array_api_strict", "torch"])
def xp(request):
    """Each array library in turn; those that are not installed are skipped."""
    return pytest.importorskip(
        f"array_api_compat.{request.param}" if request.param != "array_api_strict" else request.param
    )


@pytest.fixture
def data_folder():
    """The local copy of the real data sets, or a skip."""
    folder = Path(os.environ.get("FENCHEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data folder at FENCHEL_DATA ({folder})")
    return folder
