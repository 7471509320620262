"""Loaders of local data sets."""

import os
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

__all__ = ["data_folder", "load_lip_emg", "load_yeast"]


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


def _arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Return the named arrays of a file as float64."""
    with np.load(path, allow_pickle=False) as stored:
        missing = [name for name in names if name not in stored]
        if missing:
            raise ValueError(f"{path} must hold the arrays {', '.join(names)}. It lacks {', '.join(missing)}.")
        return {name: stored[name].astype(np.float64) for name in names}


def _file(*parts: str) -> Path:
    path = data_folder().joinpath(*parts)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no data file {path}. Put it there, or set FENCHEL_DATA to the folder that holds it as "
            f"{'/'.join(parts)}."
        )
    return path
