"""Recipes that turn public originals into the arrays and tables that the loaders read."""

import csv
import gzip
import io
from pathlib import Path

import numpy as np
from scipy.io import wavfile

from fenchel.papers.datasets.arff import Relation, read_arff
from fenchel.papers.datasets.cepstra import mel_cepstra

__all__ = [
    "air_quality",
    "bike_sharing",
    "dti",
    "fp490",
    "lip_emg",
    "movielens_films",
    "movielens_ratings",
    "movielens_users",
    "multi_label",
    "multi_target",
    "river_flow",
    "speech",
    "usps",
]

Columns = dict[str, np.ndarray]

_GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
_SENSORS = {
    "NO2": "PT08.S4(NO2)",
    "CO": "PT08.S1(CO)",
    "NMHC": "PT08.S2(NMHC)",
    "NOx": "PT08.S3(NOx)",
    "C6H6": "PT08.S5(O3)",  # the name used by the R package
}
_FAILED = -200  # code for a failed sensor
_RIVER_FLOW_TRAINING = 4108
_TRACTS = (
    "LP",
    "LA",
    "TBCL",
    "TBCD",
    "JAW",
    "VEL",
    "GLO",
    "TTCL",
    "TTCD",
    "TTCR",
)  # the four further rows are constant
_TRACT_STEP = 0.005  # seconds between the points of a curve


def bike_sharing(hours: Path) -> Columns:
    """Return the columns of ``hour.csv``."""
    return _table(_text(hours), ",")


def dti(table: Path) -> Columns:
    """Return the first scans of the patients from ``write.csv(refund::DTI)``."""
    scans = _table(_text(table), ",")
    is_kept = (_numbers(scans["case"]) == 1) & (_numbers(scans["visit"]) == 1)
    found = {"ID": _numbers(scans["ID"])[is_kept].astype(np.int64)}
    for tract in ("cca", "rcst"):
        curves = np.stack([_numbers(column) for name, column in scans.items() if name.startswith(tract)], axis=1)
        found[f"{tract}_raw"] = curves[is_kept]
        found[tract] = np.stack([_interpolated(curve) for curve in curves[is_kept]])
    return found | {"pasat": _numbers(scans["pasat"])[is_kept], "sex": scans["sex"][is_kept]}


def air_quality(table: Path) -> Columns:
    """Return daily curves for the days of ``AirQualityUCI.csv`` on which no sensor failed."""
    hours = _table(_text(table).replace(",", "."), ";")
    is_read = hours["Date"] != ""
    days, place = np.unique([_iso(day) for day in hours["Date"][is_read]], return_inverse=True)
    hour = np.array([int(time[:2]) for time in hours["Time"][is_read]])
    curves = {}
    for name, column in (_SENSORS | {"temperature": "T", "humidity": "RH"}).items():
        curves[name] = np.full((len(days), 24), np.nan)
        values = _numbers(hours[column][is_read])
        curves[name][place, hour] = np.where(values == _FAILED, np.nan, values)
    is_whole = ~np.any([np.isnan(values).any(axis=1) for values in curves.values()], axis=0)
    whole = {name: values[is_whole] for name, values in curves.items()}
    return {"hour": np.arange(24.0)} | {name: np.log(v) if name in _SENSORS else v for name, v in whole.items()}


def lip_emg(emg: Path, acceleration: Path, position: Path) -> Columns:
    """Return the 32 recordings as measured, and at steps of 1 ms with the delay of 50 ms removed."""
    raw = {
        name: np.loadtxt(path, delimiter=",").T
        for name, path in (("emg_raw", emg), ("lip_acc_raw", acceleration), ("lip_pos_raw", position))
    }
    t_raw, t = np.linspace(0, 0.69, raw["emg_raw"].shape[1]), np.linspace(0, 0.64, 641)
    return {
        "t": t,
        "emg": np.stack([np.interp(t, t_raw, record) for record in raw["emg_raw"]]),
        "lip_acc": np.stack([np.interp(t + 0.05, t_raw, record) for record in raw["lip_acc_raw"]]),
        "t_raw": t_raw,
        **raw,
    }


def fp490(kernel: Path, targets: Path) -> Columns:
    """Return the Gram matrix and the bits of the fingerprints, which are -1 and 1 in the original."""
    return {"K": np.loadtxt(kernel), "Y": (np.loadtxt(targets) > 0).astype(np.uint8)}


def movielens_users(users: Path) -> Columns:
    """Return the columns of ``u.user``."""
    return _piped(users, ("user", "age", "gender", "occupation", "zip"))


def movielens_films(films: Path) -> Columns:
    """Return the columns of ``u.item`` without its links."""
    found = _piped(films, ("item", "title", "release_date", "video_release_date", "link", *_GENRES))
    return {name: column for name, column in found.items() if name not in ("video_release_date", "link")}


def movielens_ratings(ratings: Path, *tests: Path) -> Columns:
    """Return ``u.data`` by user and film, with the folds of ``u1.test`` to ``u5.test`` and two further test parts."""
    rows = np.loadtxt(ratings, dtype=np.int64, ndmin=2)
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    keys = rows[:, 0] * 10**6 + rows[:, 1]
    given = [np.loadtxt(path, dtype=np.int64, ndmin=2) for path in tests]
    parts = [np.isin(keys, part[:, 0] * 10**6 + part[:, 1]) for part in given]
    found = dict(zip(("user", "item", "rating", "timestamp"), rows.T, strict=True))
    folds = np.sum([k * part for k, part in enumerate(parts[:5], start=1)], axis=0)
    columns = found | {"fold": folds, "ua_test": parts[5].astype(int), "ub_test": parts[6].astype(int)}
    return {name: column.astype(str) for name, column in columns.items()}


def multi_label(train: Path, test: Path, n_labels: int, is_binary: bool) -> Columns:
    """Return the parts of a multi-label dataset whose last attributes are the labels."""
    parts = {"train": read_arff(train), "test": read_arff(test)}
    found: Columns = {}
    for part, relation in parts.items():
        X, Y = relation.values[:, :-n_labels], relation.values[:, -n_labels:]
        found |= {f"X_{part}": X.astype(np.uint8) if is_binary else X, f"Y_{part}": Y.astype(np.uint8)}
    return found | _names(parts["train"], n_labels, "label_names")


def multi_target(whole: Path, n_targets: int) -> Columns:
    """Return a dataset whose last attributes are the targets."""
    relation = read_arff(whole)
    found = {"X": relation.values[:, :-n_targets], "Y": relation.values[:, -n_targets:]}
    return found | _names(relation, n_targets, "target_names") | {"nominal": relation.nominal[:-n_targets]}


def river_flow(whole: Path) -> Columns:
    """Return rf1, whose first rows are the training part."""
    found, n = multi_target(whole, 8), _RIVER_FLOW_TRAINING
    parts = {f"{k}_train": found[k][:n] for k in "XY"} | {f"{k}_test": found[k][n:] for k in "XY"}
    return parts | {name: found[name] for name in ("feature_names", "target_names")}


def speech(*files: Path) -> Columns:
    """Return cepstra and vocal-tract curves of the words that have a ``.wav`` and a ``.csv``, extended to the longest.

    Sounds and curves are extended by reflection. ``keep413`` leaves out copies of an earlier word.
    """
    by_name = {path.name: path for path in files}
    words = sorted(path.stem for path in files if path.suffix == ".wav" and f"{path.stem}.csv" in by_name)
    if not words:
        raise ValueError("No word has both a .wav and a .csv file.")
    rates, sounds = zip(*(wavfile.read(by_name[f"{word}.wav"]) for word in words), strict=True)
    curves = [np.loadtxt(by_name[f"{word}.csv"], delimiter=",", ndmin=2)[: len(_TRACTS)] for word in words]
    n_samples, n_points = max(map(len, sounds)), max(curve.shape[1] for curve in curves)
    duration = n_samples / rates[0] - _TRACT_STEP
    seen = [sound.tobytes() + curve.tobytes() for sound, curve in zip(sounds, curves, strict=True)]
    cepstra = [
        mel_cepstra(_reflected(sound, n_samples), rate, 2 * _TRACT_STEP, _TRACT_STEP)
        for rate, sound in zip(rates, sounds, strict=True)
    ]
    return {
        "words": np.array(words),
        "keep413": np.array([seen.index(one) == place for place, one in enumerate(seen)]),
        "mfcc": np.stack(cepstra).astype(np.float32),
        "tv": np.stack([_reflected(curve, n_points) for curve in curves]).astype(np.float32),
        "t": np.arange(n_points) * _TRACT_STEP / duration,
        "valid_len": np.array([curve.shape[1] for curve in curves]),
        "tv_names": np.array(_TRACTS),
    }


def usps(train: Path, test: Path) -> Columns:
    """Return the images and digits of ``zip.train`` and ``zip.test``."""
    found: Columns = {}
    for part, path in (("train", train), ("test", test)):
        rows = np.loadtxt(io.StringIO(_text(path)), ndmin=2)
        found |= {f"X_{part}": rows[:, 1:].astype(np.float32), f"y_{part}": rows[:, 0].astype(np.uint8)}
    return found


def _names(relation: Relation, n_targets: int, targets: str) -> Columns:
    return {"feature_names": np.array(relation.names[:-n_targets]), targets: np.array(relation.names[-n_targets:])}


def _text(path: Path, encoding: str = "utf-8-sig") -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode(encoding)


def _table(text: str, separator: str) -> Columns:
    header, *rows = (row for row in csv.reader(io.StringIO(text), delimiter=separator) if row)
    return _columns(header, rows)


def _piped(path: Path, header: tuple[str, ...]) -> Columns:
    return _columns(header, [line.split("|") for line in _text(path, "latin-1").splitlines() if line])


def _columns(header: "tuple[str, ...] | list[str]", rows: list[list[str]]) -> Columns:
    return {name: np.array(column) for name, column in zip(header, zip(*rows, strict=True), strict=True) if name}


def _numbers(words: np.ndarray) -> np.ndarray:
    return np.where((words == "NA") | (words == ""), "nan", words).astype(np.float64)


def _interpolated(curve: np.ndarray) -> np.ndarray:
    """Fill the gaps of a curve by linear interpolation over the index, constant at the ends."""
    places = np.flatnonzero(~np.isnan(curve))
    return np.interp(np.arange(len(curve)), places, curve[places])


def _reflected(values: np.ndarray, length: int) -> np.ndarray:
    """Extend the last axis by reflection, as often as it takes; the last value is repeated."""
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, length - values.shape[-1])], mode="symmetric")


def _iso(day: str) -> str:
    """Return DD/MM/YYYY as YYYY-MM-DD."""
    return "-".join(reversed(day.split("/")))
