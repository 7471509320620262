"""Saving and loading models through skops, which runs no code from the file."""

import io
import json
import platform
import zipfile
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import is_dataclass
from inspect import isclass
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import fenchel
from fenchel._check import Interval, check_parameter, require
from fenchel.app.trusted import name_of, trusted_names
from fenchel.data.files import DAMAGE, MeteredBytes, SizeError, unpacked, write_whole
from fenchel.exceptions import ModelFileError, warn_user

__all__ = ["describe", "load", "save", "versions"]

FORMAT = 3  # of the file; increased when older releases cannot read the files of this one

MAX_SIZE = 2**31  # default limit on the size of the content of a file, in bytes
OLDEST_SKOPS = (0, 13)  # first release without known vulnerabilities; same bound as in pyproject.toml

_HEADER = "fenchel.json"
_SCHEMA = "schema.json"  # of skops
_HEADER_SIZE = 2**16  # maximum number of bytes of a description that are read
_DIGITS = 9  # maximum number of digits of each part of a version
_END = 2**10  # bytes at the end of an archive, which are read more than once
_MAGIC = b"PK\x03\x04"


def save(model: object, path: str | PathLike[str], trusted: Sequence[type | Callable[..., object]] = ()) -> None:
    """Save a fitted model to a file.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, or a scikit-learn estimator (a pipeline, a grid search) that contains one.
    path : str or path
        The file; an existing file is replaced atomically.
    trusted : sequence of types and functions, default=()
        Your own classes and functions in the model, such as a loss that you wrote. They are saved by name, not with
        their code, and must be passed to ``load`` too.

    Raises
    ------
    TypeError
        If the model contains a function or an object that does not come from this library, scikit-learn or NumPy; the
        message names the parameter.

    See Also
    --------
    load : Load a saved model.

    Notes
    -----
    The file is a zip archive as written by skops, with a description (format, versions, name of the estimator) as its
    first entry. Arrays are stored bit for bit, and predictions of the loaded model agree bit for bit with those of the
    saved one, on the same machine with the same libraries.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import fenchel
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> model = fenchel.OperatorKernelRegressor(loss="huber").fit(X, np.sin(X))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fenchel.save(model, Path(folder) / "sine.fenchel")
    ...     same = fenchel.load(Path(folder) / "sine.fenchel")
    >>> bool(np.array_equal(model.predict(X), same.predict(X)))
    True
    """
    if not isinstance(model, BaseEstimator) or isclass(model):
        raise TypeError(f"save takes a fitted estimator of fenchel or scikit-learn. Got {model!r} instead.")
    check_is_fitted(model)
    known, model = trusted_names() | {name_of(one) for one in trusted}, copy(model)
    vars(model).pop("_skl_callbacks", None)  # they belong to the session, not to the model
    content = _dumped(model, known)
    header = {"format": FORMAT, "estimator": type(model).__name__, **versions()}
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as source,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        target.writestr(_HEADER, json.dumps(header, indent=1))  # first, so that a truncated file can be recognised
        for name in dict.fromkeys(source.namelist()):
            entry = source.read(name)
            if name == _SCHEMA:  # skops indents it, which is more than a third of it once compressed
                entry = json.dumps(json.loads(entry), separators=(",", ":")).encode()
            target.writestr(name, entry)
    write_whole(path, buffer.getvalue())


def load(
    path: str | PathLike[str], trusted: Sequence[type | Callable[..., object]] = (), *, max_size: float = MAX_SIZE
) -> Any:
    """Load a model written by ``save`` without running code from the file.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : sequence of types and functions, default=()
        Your own classes and functions that the model may contain. Those of this library, scikit-learn and NumPy that a
        model needs are trusted already.
    max_size : float, default=2**31
        Maximum size in bytes of the decompressed content of the file; ``float("inf")`` means no limit. A small file can
        have a large content: do not raise the limit for a file of unknown origin. The description of the objects, which
        is JSON, counts as much as the objects take in memory.

    Returns
    -------
    model : estimator
        The fitted model.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is not a model of this library, is damaged or truncated, was written by a newer release, holds more
        than ``max_size``, or holds types that are not trusted. This is a ``ValueError``.

    See Also
    --------
    save : Save a model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor, load, save
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor().fit(X, np.sin(X))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "model.fenchel")
    ...     same = load(Path(folder) / "model.fenchel")
    >>> bool(np.all(same.predict(X) == model.predict(X)))
    True
    """
    check_parameter("load", "max_size", max_size, Interval(0, float("inf"), "right"))
    skops = _skops()
    names = trusted_names() | {name_of(one) for one in trusted}
    with _opened(path) as stream:
        _check_versions(path, _header(path, stream))
        try:
            content = unpacked(stream, max_size)
            limit = max(max_size, len(content)) + _END  # bytes that skops reads repeatedly count each time
            unknown = sorted(set(skops.get_untrusted_types(file=MeteredBytes(content, limit))) - names)
            if not unknown:
                return skops.load(MeteredBytes(content, limit), trusted=sorted(names))
        except SizeError as error:
            raise ModelFileError(
                f"{path} was not loaded: its content takes {error.size / 2**30:.3g} GiB or more, and max_size is "
                f"{max_size / 2**30:.3g} GiB. If you know where the file comes from, raise the limit: "
                "load(path, max_size=...)."
            ) from error
        except DAMAGE as error:
            raise _damaged(path, error) from error
    raise ModelFileError(
        f"{path} was not loaded: it holds {', '.join(unknown)}, which fenchel does not trust. If these are yours "
        "and you know where the file comes from, pass them: load(path, trusted=[...])."
    )


def describe(path: str | PathLike[str]) -> dict[str, object]:
    """Return the description in a model file (format, estimator, versions) without loading the model.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    description : dict
        ``format``, ``estimator``, ``fenchel``, ``scikit-learn``, ``numpy`` and ``python``. Nothing else in the file is
        decompressed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor, save
    >>> from fenchel.app.persistence import describe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(OperatorKernelRegressor().fit(np.eye(3), np.ones(3)), Path(folder) / "model.fenchel")
    ...     describe(Path(folder) / "model.fenchel")["estimator"]
    'OperatorKernelRegressor'
    """
    with _opened(path) as stream:
        return _header(path, stream)


def versions() -> dict[str, str]:
    """Return the versions of the libraries that a model depends on, by name.

    Returns
    -------
    versions : dict
        Version of each library by name.

    Examples
    --------
    >>> from fenchel.app.persistence import versions
    >>> "numpy" in versions()
    True
    """
    return {
        "fenchel": fenchel.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _dumped(model: object, known: frozenset[str]) -> bytes:
    """Return the bytes that skops writes for a model, or raise with the name of the parameter that cannot be saved."""
    skops = _skops()
    try:
        content: bytes = skops.dumps(model)
        unknown = sorted(set(skops.get_untrusted_types(data=content)) - known)
    except (TypeError, ValueError, RuntimeError, AttributeError, skops.exceptions.UnsupportedTypeException) as error:
        content, unknown = b"", [str(error)]
    if unknown:
        owner = type(model).__name__
        where = _culprit(skops, model, known)
        if where is None:
            raise TypeError(f"{owner} cannot be saved: it holds {', '.join(unknown)}.")
        name, value = where
        raise TypeError(
            f"{owner} cannot be saved: its {name!r} is {_one_line(repr(value), 80)}, which is or contains an "
            f"object from outside fenchel, scikit-learn and NumPy. A file contains no code: use a part of fenchel, "
            f"or set {name!r} to None if the model can do without it. Pass your own classes and functions as "
            "trusted=[...]."
        )
    return content


def _culprit(skops: ModuleType, model: BaseEstimator, known: frozenset[str]) -> tuple[str, object] | None:
    """Return the name and value of the innermost parameter, or else fitted attribute, that cannot be saved."""
    parameters = sorted(
        model.get_params(deep=True).items(),
        key=lambda item: (-item[0].count("__"), isinstance(item[1], list)),  # a step comes before the list of steps
    )
    return _first_unsaved(skops, dict(parameters), known) or _first_unsaved(skops, vars(model), known)


def _first_unsaved(skops: ModuleType, values: Mapping[str, object], known: frozenset[str]) -> tuple[str, object] | None:
    """Return the name and value of the first value that cannot be saved; of a fitted value, that of its field."""
    for name, value in values.items():
        try:
            is_fine = set(skops.get_untrusted_types(data=skops.dumps(value))) <= known
        except Exception:  # whatever skops raises, this value is the one that it cannot save
            is_fine = False
        if not is_fine:
            fields = vars(value) if is_dataclass(value) else {}
            return _first_unsaved(skops, fields, known) or (name, value)
    return None


def _skops() -> ModuleType:
    """Import skops, or raise if it is missing or has known vulnerabilities."""
    skops = require("skops.io", extra="persist")
    release = require("skops", extra="persist").__version__
    if _release(release) < OLDEST_SKOPS:
        oldest = ".".join(map(str, OLDEST_SKOPS))
        raise ImportError(
            f"skops {release} has known vulnerabilities (CVE-2025-54412, CVE-2025-54413, CVE-2025-54886); fenchel "
            f"needs skops {oldest} or newer. Run: pip install 'fenchel[persist]'"
        )
    return skops


def _opened(path: str | PathLike[str]) -> BinaryIO:
    """Return a model file opened at its beginning, or raise."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"There is no model file {path}.")
    if not file.is_file():
        raise _foreign(path)
    return open(file, "rb")


def _header(path: str | PathLike[str], stream: BinaryIO) -> dict[str, object]:
    """Return the description in a model file without reading anything else, or raise."""
    start = stream.read(30 + len(_HEADER))
    if not (start.startswith(_MAGIC) and start.endswith(_HEADER.encode())):
        raise _foreign(path)
    try:
        with zipfile.ZipFile(stream) as archive, archive.open(_HEADER) as entry:
            header = json.loads(entry.read(_HEADER_SIZE))
    except DAMAGE as error:
        raise _damaged(path, error) from error
    if not isinstance(header, dict) or not {"format", "fenchel"} <= set(header):
        raise _damaged(path, "its description is incomplete")
    return header


def _foreign(path: str | PathLike[str]) -> ModelFileError:
    return ModelFileError(f"{path} is not a model file of fenchel (written by fenchel.save).")


def _check_versions(path: str | PathLike[str], header: dict[str, object]) -> None:
    """Raise if the file was written by a newer release; warn if by an older one."""
    theirs, ours = str(header["fenchel"]), fenchel.__version__
    if not _release(theirs):
        raise _damaged(path, f"its release is {theirs!r}, which is no version")
    is_newer = _release(theirs) > _release(ours)
    if header["format"] != FORMAT or is_newer:
        advice = f"Upgrade fenchel to {theirs}" if is_newer else f"Load it with fenchel {theirs}"
        raise ModelFileError(
            f"{path} was written by fenchel {theirs} in format {header['format']}; this is fenchel {ours}, which reads "
            f"format {FORMAT}. {advice}, or fit the model again."
        )
    if _release(theirs)[:2] != _release(ours)[:2]:
        warn_user(
            f"{path} was written by fenchel {theirs}, and this is {ours}: predictions may differ. Fit the model again.",
            UserWarning,
            "older-file",
        )


def _release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; longer ones than any release has are not numbers."""
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdecimal() or len(part) > _DIGITS:
            break
        numbers.append(int(part))
    return tuple(numbers)


def _damaged(path: str | PathLike[str], reason: object) -> ModelFileError:
    text = _one_line(str(reason) or type(reason).__name__, 200)
    return ModelFileError(f"{path} is damaged or truncated and was not loaded ({text}). Copy or save it again.")


def _one_line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}..."
