"""Models in files: saved and loaded through skops, which runs no code of the file."""

import io
import json
import os
import pkgutil
import platform
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from inspect import isclass, signature
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn import gaussian_process, model_selection
from sklearn import metrics as sklearn_metrics
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import kernel_metrics
from sklearn.utils.validation import check_is_fitted

import fenchel
from fenchel import decoders, estimators, kernels, losses, representations, solvers, tables, task_losses
from fenchel._check import require
from fenchel.exceptions import ModelFileError
from fenchel.report import labels, metrics, quantiles

__all__ = ["describe", "load", "save", "versions", "write_whole"]

FORMAT = 1  # of the file; raised when files of this release cannot be read by an older one

_HEADER = "fenchel.json"
_MAGIC = b"PK\x03\x04"
_SCORES = (labels, metrics, quantiles)
_ROOMS = (decoders, estimators, kernels, losses, representations, solvers, tables, task_losses, *_SCORES)
_SCORE_ENDINGS = ("_score", "_error", "_loss", "_deviance", "_corrcoef")
_HELPERS = {"fenchel.representations.kernel_outputs._Pivots", "fenchel.task_losses.base.TaskSpace"}
# what reading a zip archive, its JSON and its arrays raises when bytes are wrong
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, KeyError, TypeError,
           AttributeError, ImportError, NotImplementedError, IndexError)  # fmt: skip


def save(model: Any, path: Any, trusted: Sequence[type | Callable[..., Any]] = ()) -> None:
    """Save a fitted model to a file.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, or one of scikit-learn (a pipeline, a grid search) around one.
    path : str or path
        The file; one that is there is replaced, whole or not at all.
    trusted : sequence of types and functions, default=()
        Classes and functions of your own that the model holds, such as a loss that you wrote. They are saved by name,
        not with their code, and ``load`` must be given them too.

    Raises
    ------
    TypeError
        If the model holds a function or an object that is neither this library's nor scikit-learn's nor NumPy's; the
        message names the parameter.

    See Also
    --------
    load : The other way.

    Notes
    -----
    The file is a zip archive as skops writes it, with a description (format, versions, name of the estimator) as its
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
    known = _trusted_names() | {_name_of(one) for one in trusted}
    content = _dumped(model, known)
    header = {"format": FORMAT, "estimator": type(model).__name__, **versions()}
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as source,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        target.writestr(_HEADER, json.dumps(header, indent=1))  # first: a file that is cut off can still be recognised
        for name in dict.fromkeys(source.namelist()):
            target.writestr(name, source.read(name))
    write_whole(path, buffer.getvalue())


def load(path: Any, trusted: Sequence[type | Callable[..., Any]] = ()) -> Any:
    """Load a model that ``save`` wrote; no code of the file is run.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : sequence of types and functions, default=()
        Classes and functions of your own that the model may hold. Those of this library, of scikit-learn and of NumPy
        that a model needs are known.

    Returns
    -------
    model : estimator
        The fitted model.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    ModelFileError
        If the file is no model of this library, is damaged or cut off, was written by a newer release, or holds types
        that are not trusted. A ``ValueError``.

    See Also
    --------
    save : The other way.
    """
    header, data = _read(path)
    _check_versions(path, header)
    skops = require("skops.io", extra="persist")
    names = _trusted_names() | {_name_of(one) for one in trusted}
    try:
        unknown = sorted(set(skops.get_untrusted_types(data=data)) - names)
    except _DAMAGE as error:
        raise _damaged(path, error) from error
    if unknown:
        raise ModelFileError(
            f"{path} was not loaded: it holds {', '.join(unknown)}, which fenchel does not trust. If these are yours "
            "and you know where the file comes from, pass them: load(path, trusted=[...])."
        )
    try:
        return skops.loads(data, trusted=sorted(names))
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def describe(path: Any) -> dict[str, Any]:
    """Return the description in a model file: format, estimator, versions. The model is not loaded.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    description : dict
        ``format``, ``estimator``, ``fenchel``, ``scikit-learn``, ``numpy`` and ``python``.
    """
    return _read(path)[0]


def versions() -> dict[str, str]:
    """Return the versions of what a model depends on, by name."""
    return {
        "fenchel": fenchel.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def write_whole(path: Any, content: bytes) -> None:
    """Write a file, whole or not at all: a reader sees the old file or the new one, never a part."""
    file = Path(path)
    partial = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with open(partial, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)


def _dumped(model: Any, known: frozenset[str]) -> bytes:
    """Return what skops writes of a model, or raise with the name of the parameter that cannot be saved."""
    skops = require("skops.io", extra="persist")
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
            f"{owner} cannot be saved: its {name!r} is {_one_line(repr(value), 80)}, which is not fenchel's, "
            f"scikit-learn's or NumPy's. A file holds no code: use a part of fenchel, or set {name!r} to None if the "
            "model can do without it. A class or function of a module of yours can be passed as trusted=[...]."
        )
    return content


def _culprit(skops: Any, model: Any, known: frozenset[str]) -> tuple[str, Any] | None:
    """Return the name and the value of the innermost parameter, else of the fitted attribute, that cannot be saved."""
    parameters = model.get_params(deep=True)
    for values in (dict(sorted(parameters.items(), key=lambda item: -item[0].count("__"))), vars(model)):
        for name, value in values.items():
            try:
                is_fine = set(skops.get_untrusted_types(data=skops.dumps(value))) <= known
            except Exception:  # whatever skops makes of it, it is this value that it cannot save
                is_fine = False
            if not is_fine:
                return name, value
    return None


def _read(path: Any) -> tuple[dict[str, Any], bytes]:
    """Return the description and the bytes of a model file, or raise."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"There is no model file {path}.")
    data = file.read_bytes()
    is_ours = data[: len(_MAGIC)] == _MAGIC and data[30 : 30 + len(_HEADER)] == _HEADER.encode()
    if not is_ours:
        raise ModelFileError(f"{path} is not a model file of fenchel (written by fenchel.save).")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            header = json.loads(archive.read(_HEADER))
            bad = archive.testzip()
    except _DAMAGE as error:
        raise _damaged(path, error) from error
    if bad is not None or not isinstance(header, dict) or not {"format", "fenchel"} <= set(header):
        raise _damaged(path, bad or "its description is not whole")
    return header, data


def _check_versions(path: Any, header: dict[str, Any]) -> None:
    """Raise if the file is of a newer release; warn if it is of an older one."""
    theirs, ours = str(header["fenchel"]), fenchel.__version__
    is_newer = _release(theirs) > _release(ours)
    if header["format"] != FORMAT or is_newer:
        advice = f"Upgrade fenchel to {theirs}" if is_newer else f"Load it with fenchel {theirs}"
        raise ModelFileError(
            f"{path} was written by fenchel {theirs} in format {header['format']}; this is fenchel {ours}, which reads "
            f"format {FORMAT}. {advice}, or fit the model again."
        )
    if _release(theirs)[:2] != _release(ours)[:2]:
        warnings.warn(
            f"{path} was written by fenchel {theirs}, and this is {ours}: predictions may differ. Fit the model again.",
            UserWarning,
            stacklevel=3,
        )


def _release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version."""
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def _damaged(path: Any, reason: Any) -> ModelFileError:
    text = _one_line(str(reason) or type(reason).__name__, 200)
    return ModelFileError(f"{path} is damaged or cut off and was not loaded ({text}). Copy or save it again.")


def _one_line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}..."


@cache
def _trusted_names() -> frozenset[str]:
    """Return the full names of what a model may hold beside what skops trusts by itself.

    Single names, of classes that hold parameters and numbers and of functions of two samples: to trust a module as a
    whole would let a file call any function that the module imports.
    """
    names = set(_HELPERS)
    for room in _ROOMS:
        for module in _modules(room):
            own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
            classes = [value for value in own if isclass(value)]
            names |= {_name_of(one) for one in classes if issubclass(one, BaseEstimator) or is_dataclass(one)}
    for module in _SCORES:
        names |= {_name_of(getattr(module, name)) for name in module.__all__}
    names |= {_name_of(function) for function in kernel_metrics().values()}
    names |= {_name_of(type(scorer)) for scorer in _sklearn_scorers()}
    names |= {_name_of(function) for function in _sklearn_scores()}
    for module in (gaussian_process.kernels, model_selection):
        names |= {_name_of(one) for one in vars(module).values() if isclass(one) and _is_sklearn(one)}
    return frozenset(names)


def _sklearn_scorers() -> list[Any]:
    """Return the scorer that a search makes of a name, and the one that stands for the estimator's own score."""
    return [sklearn_metrics.get_scorer("r2"), sklearn_metrics.check_scoring(estimators.OperatorKernelRegressor())]


def _sklearn_scores() -> list[Callable[..., Any]]:
    """Return scikit-learn's functions of true and predicted outputs whose value is one number."""
    functions = [getattr(sklearn_metrics, name) for name in sklearn_metrics.__all__ if name.endswith(_SCORE_ENDINGS)]
    return [function for function in functions if next(iter(signature(function).parameters)) == "y_true"]


def _modules(room: Any) -> Iterator[Any]:
    """Yield a module, and those below it if it is a package."""
    yield room
    for info in pkgutil.walk_packages(getattr(room, "__path__", []), f"{room.__name__}."):
        yield import_module(info.name)


def _is_sklearn(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "sklearn"


def _name_of(value: Any) -> str:
    return f"{value.__module__}.{value.__name__}"
