"""Datasets: loaders of real data, generators, and conversion of curves between formats.

Each loader returns a ``Bunch`` with a description, ``DESCR``, and a ``citation``. Files are looked up in the folder
named by ``FENCHEL_DATA``, else in ``~/fenchel_data``. If ``FENCHEL_DATA_URL`` is the address of a copy, a missing file
is downloaded from there and kept only if its checksum is right.
"""

from fenchel.data import functional
from fenchel.data.functional import *  # noqa: F403
from fenchel.datasets import (
    chem,
    contamination,
    darcy,
    files,
    molecules,
    operators,
    spectra,
    synthetic,
    tables,
)
from fenchel.datasets.chem import *  # noqa: F403
from fenchel.datasets.contamination import *  # noqa: F403
from fenchel.datasets.darcy import *  # noqa: F403
from fenchel.datasets.files import *  # noqa: F403
from fenchel.datasets.molecules import *  # noqa: F403
from fenchel.datasets.operators import *  # noqa: F403
from fenchel.datasets.spectra import *  # noqa: F403
from fenchel.datasets.store import check_files, data_folder, fetch, known_files
from fenchel.datasets.synthetic import *  # noqa: F403
from fenchel.datasets.tables import *  # noqa: F403

__all__ = [
    *chem.__all__,
    *contamination.__all__,
    *darcy.__all__,
    *files.__all__,
    *functional.__all__,
    *molecules.__all__,
    *operators.__all__,
    *spectra.__all__,
    *synthetic.__all__,
    *tables.__all__,
    "check_files",
    "data_folder",
    "fetch",
    "known_files",
]
