"""Data sets: loaders of real data, which read a local copy or fetch it, and generators with a known truth.

Each loader returns a ``Bunch`` with ``DESCR``, what the data are, and ``citation``. Files are looked for in the folder
that ``FENCHEL_DATA`` names, else in ``~/fenchel_data``; if ``FENCHEL_DATA_URL`` is the address of a copy, a file that
is absent is fetched from there, and gets its name only if its checksum is right.
"""

from fenchel.data import contamination, files, molecules, synthetic
from fenchel.data.contamination import *  # noqa: F403
from fenchel.data.files import *  # noqa: F403
from fenchel.data.molecules import *  # noqa: F403
from fenchel.data.store import check_files, data_folder, fetch, known_files
from fenchel.data.synthetic import *  # noqa: F403

__all__ = [
    *contamination.__all__,
    *files.__all__,
    *molecules.__all__,
    *synthetic.__all__,
    "check_files",
    "data_folder",
    "fetch",
    "known_files",
]
