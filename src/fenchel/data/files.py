"""Loaders of local data sets."""

import csv
import gzip
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from fenchel.data.store import locate

__all__ = [
    "load_bibtex",
    "load_bike_sharing",
    "load_dti",
    "load_lip_emg",
    "load_massbank",
    "load_metabolite_fp490",
    "load_movielens100k",
    "load_mulan_regression",
    "load_nci_cancer",
    "load_speech",
    "load_usps",
    "load_yeast",
]

_FINGERPRINTS = {
    "morgan": ("morgan2_2048_packed", 2048),
    "maccs": ("maccs_167_packed", 167),
    "path": ("rdkit_path_2048_packed", 2048),
}
_ACTIVE = 60  # least activity score of a molecule that is active
_MULAN = ("atp1d", "edm", "oes97", "osales", "rf1", "sf1", "slump", "wq")

# One row off from the fifth on: by the synthesiser's own table these rows are JAW, VEL, GLO, TTCL.
_PUBLISHED_TRACTS = ("LP", "LA", "TBCL", "TBCD", "VEL", "GLO", "TTCL", "TTCD")


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
    return Bunch(**_arrays(locate("yeast", "yeast.npz"), "X_train", "Y_train", "X_test", "Y_test"))


def load_bibtex() -> Bunch:
    """Load the BIBTEX multi-label set: 7395 references, 1836 words, 159 tags, in its standard split.

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
    names = _stored(path, "feature_names", "label_names")
    return Bunch(**_arrays(path, "X_train", "Y_train", "X_test", "Y_test"), **names)


def load_bike_sharing() -> Bunch:
    """Load the hourly bike rentals: 17379 hours of 2011 and 2012 in Washington D.C., with calendar and weather.

    Returns
    -------
    data : Bunch
        ``X`` (17379, 12) features, ``y`` (17379,) rentals in the hour, both as float64; ``feature_names``. The hour and
        the month are given by their sine and cosine.

    References
    ----------
    H. Fanaee-T and J. Gama, "Event labeling combining ensemble detectors and background knowledge", 2013.
    """
    plain = ("yr", "holiday", "workingday", "weekday", "weathersit", "temp", "hum", "windspeed")
    table = _table("bike_sharing", "hour.csv.gz", *plain, "hr", "mnth", "cnt")
    columns = {name: table[name].astype(np.float64) for name in plain}
    for name, period in (("hr", 24), ("mnth", 12)):
        angle = 2 * np.pi * table[name].astype(np.float64) / period
        columns |= {f"{name}_sin": np.sin(angle), f"{name}_cos": np.cos(angle)}
    X = np.stack(list(columns.values()), axis=1)
    return Bunch(X=X, y=table["cnt"].astype(np.float64), feature_names=tuple(columns))


def load_mulan_regression(name: str) -> Bunch:
    """Load a set with several real targets from the collection of Mulan.

    Parameters
    ----------
    name : {"atp1d", "edm", "oes97", "osales", "rf1", "sf1", "slump", "wq"}
        The set.

    Returns
    -------
    data : Bunch
        ``X`` (n, d) with missing values replaced by the mean of their feature, ``Y`` (n, targets), both as float64;
        ``feature_names`` and ``target_names``. The rows of rf1 are those of its training part, then of its test part.

    References
    ----------
    E. Spyromitros-Xioufis et al., "Multi-target regression via input space expansion: treating targets as inputs",
    Machine Learning 2016.
    """
    if name not in _MULAN:
        raise ValueError(f"name must be one of {', '.join(map(repr, _MULAN))}. Got {name!r}.")
    path = locate("mulan_mtr", f"{name}.npz")
    if name == "rf1":
        parts = _arrays(path, "X_train", "X_test", "Y_train", "Y_test")
        X, Y = (np.vstack([parts[f"{kind}_train"], parts[f"{kind}_test"]]) for kind in "XY")
    else:
        X, Y = _arrays(path, "X", "Y").values()
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    return Bunch(X=X, Y=Y, **_stored(path, "feature_names", "target_names"))


def load_massbank(fingerprint: str | tuple[str, ...] = "morgan") -> Bunch:
    """Load the MassBank set: tandem mass spectra and structures of 4020 molecules, and a pool of candidates.

    Parameters
    ----------
    fingerprint : {"morgan", "maccs"} or a tuple of these, default="morgan"
        Which bits describe a structure: 2048 or 167 of them; several are put side by side.

    Returns
    -------
    data : Bunch
        ``mz`` and ``intensity`` of all peaks end to end, float64, those of molecule i being
        ``[offset[i]:offset[i + 1]]``; ``precursor_mz`` (4020,); ``Y`` (4020, bits) fingerprints, uint8; ``formula``,
        ``inchikey``, ``smiles`` (4020,); ``fold`` (4020,) from 0 to 4, no formula in two of them. The pool:
        ``candidate_Y`` (13289, bits), ``candidate_formula``, ``candidate_inchikey``, ``candidate_smiles`` (13289,); the
        candidates of a molecule are those of its formula, itself among them.

    Notes
    -----
    Merged from MassBank records whose licences allow it; treat the merged spectra as CC BY-SA and cite MassBank.

    References
    ----------
    MassBank-data 2025.05.1; the task is that of [Brouard2016]_.
    """
    wanted = (fingerprint,) if isinstance(fingerprint, str) else tuple(fingerprint)
    unknown = [name for name in wanted if name not in ("morgan", "maccs")]
    if unknown or not wanted:
        raise ValueError(f"fingerprint must be some of 'morgan', 'maccs'. Got {fingerprint!r}.")
    peaks = locate("massbank_msms", "spectra.npz")
    molecules = _table("massbank_msms", "molecules.csv.gz", "inchikey14", "smiles", "formula", "precursor_mz", "fold")
    pool = _table("massbank_msms", "candidates.csv.gz", "inchikey14", "smiles", "formula")
    return Bunch(
        **_arrays(peaks, "mz", "intensity"),
        offset=_stored(peaks, "offset")["offset"].astype(np.int64),
        precursor_mz=molecules["precursor_mz"].astype(np.float64),
        Y=_bits(locate("massbank_msms", "fingerprints.npz"), wanted),
        formula=molecules["formula"],
        inchikey=molecules["inchikey14"],
        smiles=molecules["smiles"],
        fold=molecules["fold"].astype(np.int64),
        candidate_Y=_bits(locate("massbank_msms", "candidate_fingerprints.npz"), wanted),
        candidate_formula=pool["formula"],
        candidate_inchikey=pool["inchikey14"],
        candidate_smiles=pool["smiles"],
    )


def load_metabolite_fp490() -> Bunch:
    """Load the set Fingerprint: a kernel between 490 tandem mass spectra, and 286 bits of each molecule.

    Returns
    -------
    data : Bunch
        ``K`` (490, 490) Gram matrix with diagonal 1, ``Y`` (490, 286) bits, both as float64.

    References
    ----------
    H. Su and J. Rousu, "Multilabel classification through random graph ensembles", Machine Learning 2015;
    M. Heinonen et al., "Metabolite identification and molecular fingerprint prediction through machine learning", 2012.
    """
    return Bunch(**_arrays(locate("metabolite_fp490", "fp490.npz"), "K", "Y"))


def load_movielens100k() -> Bunch:
    """Load MovieLens-100k: 100 000 ratings from 1 to 5 of 1682 films by 943 users, each with at least 20.

    Returns
    -------
    data : Bunch
        ``ratings`` (943, 1682), NaN where a user has not rated a film; of the users ``age`` (943,), ``gender`` (943,),
        ``M`` or ``F``, and ``occupation`` (943,) words; of the films ``title`` (1682,).

    Notes
    -----
    For research only: the data may neither be redistributed nor used for revenue without permission of GroupLens.

    References
    ----------
    F. M. Harper and J. A. Konstan, "The MovieLens datasets: history and context", ACM TiiS 2015.
    """
    users = _table("movielens100k", "users.csv.gz", "user", "age", "gender", "occupation")
    films = _table("movielens100k", "items.csv.gz", "item", "title")
    given = _table("movielens100k", "ratings.csv.gz", "user", "item", "rating")
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


def load_nci_cancer(fingerprint: str = "path") -> Bunch:
    """Load the NCI cancer set: structures of 2102 molecules, and their activities against 59 tumour cell lines.

    These are the molecules that have a structure and are active in at least one line.

    Parameters
    ----------
    fingerprint : {"path", "morgan"}, default="path"
        Which 2048 bits describe a structure: RDKit's paths or Morgan neighbourhoods.

    Returns
    -------
    data : Bunch
        ``X`` (2102, 2048) fingerprints, uint8; ``scores`` (2102, 59) activity scores; ``Y`` (2102, 59), 1 where the
        score is at least 60, as float64; ``smiles`` (2102,); ``cell_lines`` (59,).

    References
    ----------
    H. Su, M. Heinonen and J. Rousu, "Structured output prediction of anti-cancer drug activity", PRIB 2010.
    """
    if fingerprint not in ("path", "morgan"):
        raise ValueError(f"fingerprint must be one of 'path', 'morgan'. Got {fingerprint!r}.")
    lines = tuple(_table("nci_cancer", "cell_lines.csv.gz", "cell_line")["cell_line"].tolist())
    columns = ("smiles", "no_zero_active", *lines)
    table = _table("nci_cancer", "nci_cancer.csv.gz", *columns)
    is_known = table["smiles"] != ""
    is_kept = table["no_zero_active"][is_known] == "1"
    scores = np.column_stack([table[line][is_known][is_kept].astype(np.float64) for line in lines])
    return Bunch(
        X=_bits(locate("nci_cancer", "fingerprints.npz"), (fingerprint,))[is_kept],
        scores=scores,
        Y=(scores >= _ACTIVE).astype(np.float64),
        smiles=table["smiles"][is_known][is_kept],
        cell_lines=np.array(lines),
    )


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
    stored = _arrays(locate("lip_emg", "lip_emg.npz"), "emg", "lip_acc", "t")
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
    path = locate("dti", "dti_ms_first_visit.npz")
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
    path = locate("speech_tada", "speech_ext.npz")
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


def load_usps() -> Bunch:
    """Load the USPS digits: 9298 images of 16 by 16 grey levels, in their standard split.

    Returns
    -------
    data : Bunch
        ``X_train`` (7291, 256) and ``X_test`` (2007, 256), float64 from 0 (background) to 1 (ink), row after row from
        the top of each image; ``y_train`` (7291,) and ``y_test`` (2007,), the digits, as integers.

    References
    ----------
    Y. Le Cun et al., "Handwritten digit recognition with a back-propagation network", NIPS 1989; T. Hastie,
    R. Tibshirani and J. Friedman, "The Elements of Statistical Learning", data set ZIP code.
    """
    path = locate("usps", "usps.npz")
    images, digits = _arrays(path, "X_train", "X_test"), _stored(path, "y_train", "y_test")
    for name, values in images.items():
        if values.ndim != 2 or values.shape[1] != 256 or np.any(np.abs(values) > 1):
            raise ValueError(f"{name} of {path} must hold rows of 256 numbers from -1 to 1. Got shape {values.shape}.")
    return Bunch(
        **{name: (values + 1) / 2 for name, values in images.items()},
        **{name: labels.astype(np.int64) for name, labels in digits.items()},
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


def _bits(path: Path, names: tuple[str, ...]) -> np.ndarray:
    """Return unpacked fingerprints side by side, as uint8."""
    parts = []
    for name in names:
        stored, count = _FINGERPRINTS[name]
        parts.append(np.unpackbits(_stored(path, stored)[stored], axis=1)[:, :count])
    return np.hstack(parts)


def _table(folder: str, name: str, *columns: str) -> dict[str, np.ndarray]:
    """Return the named columns of a compressed table, as words."""
    path = locate(folder, name)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(f"{path} must have the columns {', '.join(columns)}. It lacks {', '.join(missing)}.")
        rows = [[row[column] for column in columns] for row in reader]
    return {column: np.array([row[k] for row in rows]) for k, column in enumerate(columns)}
