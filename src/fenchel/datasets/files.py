"""Loaders of local datasets."""

import numpy as np
from sklearn.utils import Bunch

from fenchel.datasets.readers import arrays, stored_arrays, table
from fenchel.datasets.store import described, locate

__all__ = [
    "load_air_quality",
    "load_bibtex",
    "load_bike_sharing",
    "load_corel5k",
    "load_dti",
    "load_lip_emg",
    "load_movielens100k",
    "load_mulan_regression",
    "load_speech",
    "load_usps",
    "load_yeast",
]

_MULAN = ("atp1d", "edm", "oes97", "osales", "rf1", "sf1", "slump", "wq")

# The published names are off by one from the fifth row on: by the synthesiser's table these are JAW, VEL, GLO, TTCL.
_PUBLISHED_TRACTS = ("LP", "LA", "TBCL", "TBCD", "VEL", "GLO", "TTCL", "TTCD")


@described
def load_yeast() -> Bunch:
    """Load the YEAST multi-label dataset: 2417 genes, 103 features, 14 classes, in its official split.

    Returns
    -------
    data : Bunch
        ``X_train`` (1500, 103), ``Y_train`` (1500, 14), ``X_test`` (917, 103), ``Y_test`` (917, 14), as float64.

    References
    ----------
    A. Elisseeff and J. Weston, "A kernel method for multi-labelled classification", NIPS 2001.
    """
    return Bunch(**arrays(locate("yeast", "yeast.npz"), "X_train", "Y_train", "X_test", "Y_test"))


@described
def load_bibtex() -> Bunch:
    """Load the BIBTEX multi-label dataset: 7395 references, 1836 words, 159 tags, in its standard split.

    Returns
    -------
    data : Bunch
        ``X_train`` (4880, 1836), ``Y_train`` (4880, 159), ``X_test`` (2515, 1836), ``Y_test`` (2515, 159), 0 or 1 as
        float64; ``feature_names`` and ``label_names``.

    References
    ----------
    I. Katakis, G. Tsoumakas and I. Vlahavas, "Multilabel text classification for automated tag suggestion", 2008.
    """
    path = locate("mulan_multilabel", "bibtex.npz")
    names = stored_arrays(path, "feature_names", "label_names")
    return Bunch(**arrays(path, "X_train", "Y_train", "X_test", "Y_test"), **names)


@described
def load_corel5k() -> Bunch:
    """Load the COREL5K multi-label dataset: 5000 images, 499 visual words, 374 labels, in its standard split.

    Returns
    -------
    data : Bunch
        ``X_train`` (4500, 499), ``Y_train`` (4500, 374), ``X_test`` (500, 499), ``Y_test`` (500, 374), 0 or 1 as
        float64; ``feature_names`` and ``label_names``.

    References
    ----------
    P. Duygulu, K. Barnard, J. de Freitas and D. Forsyth, "Object recognition as machine translation", ECCV 2002.
    """
    path = locate("mulan_multilabel", "corel5k.npz")
    names = stored_arrays(path, "feature_names", "label_names")
    return Bunch(**arrays(path, "X_train", "Y_train", "X_test", "Y_test"), **names)


@described
def load_air_quality() -> Bunch:
    """Load daily curves of air quality in an Italian city: 355 days, 24 hours.

    Returns
    -------
    data : Bunch
        ``X`` (355, 24, 6) the curves of ``channels`` (CO, NMHC, NOx, C6H6, temperature, humidity), ``Y`` (355, 24) the
        curves of NO2, ``t`` (24,) hours. Curves of gases are logarithms of sensor responses.

    Notes
    -----
    Days with missing values are excluded, so days are not all consecutive.

    References
    ----------
    S. De Vito et al., "On field calibration of an electronic nose for benzene estimation", Sensors and Actuators B
    2008; the task is that of X. Qi and R. Luo, "Nonlinear function-on-function additive model", Statistica Sinica 2019.
    """
    channels = ("CO", "NMHC", "NOx", "C6H6", "temperature", "humidity")
    stored = arrays(locate("fda_air_quality", "air_quality.npz"), "NO2", "hour", *channels)
    curves = np.stack([stored[name] for name in channels], axis=2)
    return Bunch(X=curves, Y=stored["NO2"], t=stored["hour"], channels=np.array(channels))


@described
def load_bike_sharing() -> Bunch:
    """Load hourly bike rentals: 17379 hours of 2011 and 2012 in Washington D.C., with calendar and weather.

    Returns
    -------
    data : Bunch
        ``X`` (17379, 12) features, ``y`` (17379,) rentals in the hour, both as float64; ``feature_names``. The hour and
        the month are encoded by their sine and cosine.

    References
    ----------
    H. Fanaee-T and J. Gama, "Event labeling combining ensemble detectors and background knowledge", 2013.
    """
    plain = ("yr", "holiday", "workingday", "weekday", "weathersit", "temp", "hum", "windspeed")
    hours = table("bike_sharing", "hour.csv.gz", *plain, "hr", "mnth", "cnt")
    columns = {name: hours[name].astype(np.float64) for name in plain}
    for name, period in (("hr", 24), ("mnth", 12)):
        angle = 2 * np.pi * hours[name].astype(np.float64) / period
        columns |= {f"{name}_sin": np.sin(angle), f"{name}_cos": np.cos(angle)}
    X = np.stack(list(columns.values()), axis=1)
    return Bunch(X=X, y=hours["cnt"].astype(np.float64), feature_names=tuple(columns))


@described
def load_mulan_regression(name: str) -> Bunch:
    """Load a multi-target regression dataset of the Mulan collection.

    Parameters
    ----------
    name : {"atp1d", "edm", "oes97", "osales", "rf1", "sf1", "slump", "wq"}
        Name of the dataset.

    Returns
    -------
    data : Bunch
        ``X`` (n, d) with missing values replaced by the mean of their feature, ``Y`` (n, targets), both as float64;
        ``feature_names`` and ``target_names``. The rows of rf1 are its training part followed by its test part.

    References
    ----------
    E. Spyromitros-Xioufis et al., "Multi-target regression via input space expansion: treating targets as inputs",
    Machine Learning 2016.
    """
    if name not in _MULAN:
        raise ValueError(f"name must be one of {', '.join(map(repr, _MULAN))}. Got {name!r}.")
    path = locate("mulan_mtr", f"{name}.npz")
    if name == "rf1":
        parts = arrays(path, "X_train", "X_test", "Y_train", "Y_test")
        X, Y = (np.vstack([parts[f"{kind}_train"], parts[f"{kind}_test"]]) for kind in "XY")
    else:
        X, Y = arrays(path, "X", "Y").values()
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    return Bunch(X=X, Y=Y, **stored_arrays(path, "feature_names", "target_names"))


@described
def load_movielens100k() -> Bunch:
    """Load MovieLens-100k: 100 000 ratings from 1 to 5 of 1682 films by 943 users, at least 20 per user.

    Returns
    -------
    data : Bunch
        ``ratings`` (943, 1682), NaN where a user has not rated a film; for the users ``age`` (943,), ``gender`` (943,),
        ``M`` or ``F``, and ``occupation`` (943,) as words; for the films ``title`` (1682,).

    Notes
    -----
    For research only: the data may not be redistributed or used commercially without permission from GroupLens.

    References
    ----------
    F. M. Harper and J. A. Konstan, "The MovieLens datasets: history and context", ACM TiiS 2015.
    """
    users = table("movielens100k", "users.csv.gz", "user", "age", "gender", "occupation")
    films = table("movielens100k", "items.csv.gz", "item", "title")
    given = table("movielens100k", "ratings.csv.gz", "user", "item", "rating")
    rows, columns = ({name: k for k, name in enumerate(names)} for names in (users["user"], films["item"]))
    ratings = np.full((len(rows), len(columns)), np.nan)
    places = [rows[user] for user in given["user"]], [columns[item] for item in given["item"]]
    ratings[places] = given["rating"].astype(np.float64)
    return Bunch(
        ratings=ratings,
        age=users["age"].astype(np.float64),
        gender=users["gender"],
        occupation=users["occupation"],
        title=films["title"],
    )


@described
def load_lip_emg() -> Bunch:
    """Load the lip recordings: electromyography and lip acceleration of 32 utterances, 641 points each.

    Returns
    -------
    data : Bunch
        ``X`` (32, 641) muscle activity, ``Y`` (32, 641) lip acceleration, ``t`` (641,) time in [0, 1].

    References
    ----------
    J. O. Ramsay and B. W. Silverman, "Applied Functional Data Analysis", Springer 2002, chapter 10.
    """
    stored = arrays(locate("lip_emg", "lip_emg.npz"), "emg", "lip_acc", "t")
    return Bunch(X=stored["emg"], Y=stored["lip_acc"], t=stored["t"] / 0.64)


@described
def load_dti() -> Bunch:
    """Load DTI tract profiles: fractional anisotropy along two tracts, first scans of 100 multiple-sclerosis patients.

    Returns
    -------
    data : Bunch
        ``X`` (100, 93) corpus callosum, gaps filled by linear interpolation; ``Y`` (100, 55) right corticospinal tract,
        NaN where it was not observed, and ``Y_interpolated`` with the gaps filled; ``t_in`` (93,) and ``t_out`` (55,)
        positions along the tracts in [0, 1]; ``pasat`` (100,) test scores; ``sex`` (100,) as words.

    Notes
    -----
    The MRI/DTI data were collected at Johns Hopkins University and the Kennedy-Krieger Institute.

    References
    ----------
    The R package refund, data set DTI; [Lambert2022]_, Sec. 5.2.
    """
    path = locate("dti", "dti_ms_first_visit.npz")
    stored = arrays(path, "cca", "rcst_raw", "rcst", "pasat")
    X, Y = stored["cca"], stored["rcst_raw"]
    return Bunch(
        X=X,
        Y=Y,
        Y_interpolated=stored["rcst"],
        t_in=np.linspace(0, 1, X.shape[1]),
        t_out=np.linspace(0, 1, Y.shape[1]),
        pasat=stored["pasat"],
        sex=stored_arrays(path, "sex")["sex"],
    )


@described
def load_speech(published_names: bool = False) -> Bunch:
    """Load speech data: sound and vocal-tract functions of 413 synthetic words, extended by reflection to the longest.

    Parameters
    ----------
    published_names : bool, default=False
        Whether to name the curves as the loader published with the papers does, which seems to be off by one row from
        the fifth on (it knows 8 of the 10 curves). Use these names only to compare with published numbers.

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
    path = locate("speech_tada", "speech_ext.npz")
    reals = arrays(path, "mfcc", "tv", "t")
    labels = stored_arrays(path, "valid_len", "keep413", "tv_names", "words")
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


@described
def load_usps() -> Bunch:
    """Load the USPS digits: 9298 images of 16 by 16 grey levels, in their standard split.

    Returns
    -------
    data : Bunch
        ``X_train`` (7291, 256) and ``X_test`` (2007, 256), float64 from 0 (background) to 1 (ink), row by row from the
        top of each image; ``y_train`` (7291,) and ``y_test`` (2007,), the digits, as integers.

    References
    ----------
    Y. Le Cun et al., "Handwritten digit recognition with a back-propagation network", NIPS 1989; T. Hastie,
    R. Tibshirani and J. Friedman, "The Elements of Statistical Learning", data set ZIP code.
    """
    path = locate("usps", "usps.npz")
    images, digits = arrays(path, "X_train", "X_test"), stored_arrays(path, "y_train", "y_test")
    for name, values in images.items():
        if values.ndim != 2 or values.shape[1] != 256 or np.any(np.abs(values) > 1):
            raise ValueError(f"{name} of {path} must hold rows of 256 numbers from -1 to 1. Got shape {values.shape}.")
    return Bunch(
        **{name: (values + 1) / 2 for name, values in images.items()},
        **{name: labels.astype(np.int64) for name, labels in digits.items()},
    )
