"""Loaders of local data sets."""

import os
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

__all__ = ["data_folder", "load_dti", "load_lip_emg", "load_speech", "load_yeast"]

# One row off from the fifth on: by the synthesiser's own table these rows are JAW, VEL, GLO, TTCL.
_PUBLISHED_TRACTS = ("LP", "LA", "TBCL", "TBCD", "VEL", "GLO", "TTCL", "TTCD")


def data_folder() -> Path:
    """Return the folder that holds the data sets: ``FENCHEL_DATA``, else ``~/fenchel_data``."""
    return Path(os.environ.get("FENCHEL_DATA", "~/fenchel_data")).expanduser()


def load_yeast() -> Bunch:
    """Load the YEAST multi-label set: 2417 genes, 103 features, 14 classes, in its official split.

    Returns
    -------
    data : Bunch
        ``X_train`` (1500, 103), ``Y_train`` (1500, 14), ``X_test`` (917, 103), ``Y_test`` (917, 14), as float64.

    References
    ----------
    A. Elisseeff and J. Weston, "A kernel method for multi-labelled classification", NIPS 2001.
    """
    return Bunch(**_arrays(_file("yeast", "yeast.npz"), "X_train", "Y_train", "X_test", "Y_test"))


def load_lip_emg() -> Bunch:
    """Load the lip records: electromyography and lip acceleration of 32 utterances, 641 points each.

    Returns
    -------
    data : Bunch
        ``X`` (32, 641) muscle activity, ``Y`` (32, 641) lip acceleration, ``t`` (641,) time in [0, 1].

    References
    ----------
    J. O. Ramsay and B. W. Silverman, "Applied Functional Data Analysis", Springer 2002, chapter 10.
    """
    stored = _arrays(_file("lip_emg", "lip_emg.npz"), "emg", "lip_acc", "t")
    return Bunch(X=stored["emg"], Y=stored["lip_acc"], t=stored["t"] / 0.64)


def load_dti() -> Bunch:
    """Load the tract profiles: fractional anisotropy along two tracts, first scans of 100 multiple-sclerosis patients.

    Returns
    -------
    data : Bunch
        ``X`` (100, 93) corpus callosum, gaps filled by linear interpolation; ``Y`` (100, 55) right corticospinal tract,
        NaN where it was not observed, and ``Y_interpolated`` with the gaps filled; ``t_in`` (93,) and ``t_out`` (55,)
        places along the tracts in [0, 1]; ``pasat`` (100,) test scores; ``sex`` (100,) words.

    Notes
    -----
    The MRI/DTI data were collected at Johns Hopkins University and the Kennedy-Krieger Institute.

    References
    ----------
    The R package refund, data set DTI; [Lambert2022]_, Sec. 5.2.
    """
    path = _file("dti", "dti_ms_first_visit.npz")
    stored = _arrays(path, "cca", "rcst_raw", "rcst", "pasat")
    X, Y = stored["cca"], stored["rcst_raw"]
    return Bunch(
        X=X,
        Y=Y,
        Y_interpolated=stored["rcst"],
        t_in=np.linspace(0, 1, X.shape[1]),
        t_out=np.linspace(0, 1, Y.shape[1]),
        pasat=stored["pasat"],
        sex=_stored(path, "sex")["sex"],
    )


def load_speech(published_names: bool = False) -> Bunch:
    """Load the words: sound and vocal-tract functions of 413 synthetic words, extended by reflection to the longest.

    Parameters
    ----------
    published_names : bool, default=False
        Whether to name the curves as the loader published with the papers does, which seems to be one row off from the
        fifth on (it knows 8 of the 10 curves). Use its names to compare with published numbers only.

    Returns
    -------
    data : Bunch
        ``X`` (413, 290, 13) cepstral coefficients; ``Y`` a dictionary of (413, 290) curves by name; ``t`` (290,) time
        in [0, 1]; ``valid_len`` (413,) number of points of each word before it was extended; ``names`` of the curves;
        ``words`` (413,).

    References
    ----------
    V. Mitra et al., "From acoustics to vocal tract time functions", ICASSP 2009; [Lambert2022]_, Sec. 5.3.
    """
    path = _file("speech_tada", "speech_ext.npz")
    reals = _arrays(path, "mfcc", "tv", "t")
    labels = _stored(path, "valid_len", "keep413", "tv_names", "words")
    kept = labels["keep413"].astype(bool)
    names = _PUBLISHED_TRACTS if published_names else tuple(str(name) for name in labels["tv_names"])
    Y = {name: reals["tv"][kept, row] for row, name in enumerate(names)}
    return Bunch(
        X=reals["mfcc"][kept],
        Y=Y,
        t=reals["t"],
        valid_len=labels["valid_len"][kept],
        names=names,
        words=labels["words"][kept],
    )


def _arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Return the named arrays of a file as float64."""
    return {name: array.astype(np.float64) for name, array in _stored(path, *names).items()}


def _stored(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Return the named arrays of a file as they are."""
    with np.load(path, allow_pickle=False) as stored:
        missing = [name for name in names if name not in stored]
        if missing:
            raise ValueError(f"{path} must hold the arrays {', '.join(names)}. It lacks {', '.join(missing)}.")
        return {name: stored[name] for name in names}


def _file(*parts: str) -> Path:
    path = data_folder().joinpath(*parts)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no data file {path}. Put it there, or set FENCHEL_DATA to the folder that holds it as "
            f"{'/'.join(parts)}."
        )
    return path
