"""Data: curves in every form, generators with a known truth, outliers, and loaders of local data sets."""

from fenchel.data import chem, contamination, files, functional, molecules, spectra, store, synthetic
from fenchel.data.chem import *  # noqa: F403
from fenchel.data.contamination import *  # noqa: F403
from fenchel.data.files import *  # noqa: F403
from fenchel.data.functional import *  # noqa: F403
from fenchel.data.molecules import *  # noqa: F403
from fenchel.data.spectra import *  # noqa: F403
from fenchel.data.store import *  # noqa: F403
from fenchel.data.synthetic import *  # noqa: F403

__all__ = [
    *chem.__all__,
    *contamination.__all__,
    *files.__all__,
    *functional.__all__,
    *molecules.__all__,
    *spectra.__all__,
    *store.__all__,
    *synthetic.__all__,
]
