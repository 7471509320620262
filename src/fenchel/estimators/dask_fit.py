"""Fits of Dask arrays: the rows stay on the workers of a cluster, in their chunks."""

from collections.abc import Sequence
from copy import copy
from typing import Any
from uuid import uuid4

import numpy as np
from sklearn.base import clone

from fenchel._array import Array
from fenchel._check import check_array
from fenchel._optional import require
from fenchel.approximations import Approximation
from fenchel.estimators.fitted_dual import KernelExpansion, expose_certificate, warn_unless_converged
from fenchel.estimators.validation import DualSettings
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import OperatorKernel, ScalarKernel
from fenchel.kernels.separable import BoundTerms
from fenchel.losses import Loss
from fenchel.operators import Thin
from fenchel.problem import DualProblem
from fenchel.representations import Euclidean
from fenchel.solvers import Auto, DouglasRachford
from fenchel.solvers.chunked import solve_chunks

__all__ = ["fit_chunks", "is_chunked", "predict_chunks"]


def is_chunked(X: object) -> bool:
    """Whether X is an array of Dask."""
    return type(X).__module__.startswith("dask.array")


def fit_chunks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, kernel: OperatorKernel, settings: DualSettings
) -> None:
    """Fit an estimator of vectors on Dask arrays, and set its attributes.

    The loss, the state of the solver and the dual variables stay on the workers of the ambient client.
    """
    approximation, solver = _checked(estimator, kernel, settings)
    client = _client()
    X, y, weights = _in_chunks(X, y, sample_weight)
    bound = _bound(kernel, approximation, X, y, settings.lam)
    chunks = _problems(client, bound.terms[0][0], X, y, weights, settings)
    solution = solve_chunks(client, chunks, solver, settings.tol)
    warn_unless_converged(solution, settings.lam, settings.tol)
    coef = solution.predictions.result()
    for name in ("support_", "sparsity_", "outlier_score_", "point_outlier_score_"):
        estimator.__dict__.pop(name, None)  # of an earlier fit: these would have a number for each sample
    estimator.n_features_in_ = int(X.shape[1])
    estimator._is_flat = y.ndim == 1
    estimator.center_ = estimator.scale_ = None
    estimator.loss_ = clone(settings.loss)
    estimator.representation_ = Euclidean().fit(np.zeros((1, coef.shape[1])))
    estimator.X_fit_ = np.zeros((0, int(X.shape[1])), dtype=coef.dtype)
    estimator._expansion = KernelExpansion(bound, estimator.X_fit_, coef, None, coef)
    estimator.approximation_ = clone(approximation).set_params(n_components=coef.shape[0])
    estimator.certificate_ = "approximate"
    estimator.dual_coef_ = _duals(client, chunks, solution.duals, X, coef, estimator._is_flat)
    expose_certificate(estimator, solution)


def predict_chunks(estimator: Any, X: Any) -> Any:
    """Return predictions for a Dask array as one, chunk by chunk."""
    if X.ndim != 2 or X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has shape {X.shape}, but the model was fitted with {estimator.n_features_in_} features.")
    X, is_flat, n_outputs = X.rechunk({1: -1}), estimator._is_flat, estimator._expansion.coef.shape[1]
    return require("dask.array", extra="dask").map_blocks(
        _predicted,
        X,
        predict=_Predict(estimator),
        drop_axis=[1] if is_flat else None,
        chunks=X.chunks[:1] if is_flat else (X.chunks[0], (n_outputs,)),
        meta=np.empty((0,) if is_flat else (0, 0), dtype=X.dtype),
    )


class _Predict:
    """A model as far as it is needed to predict: without arrays that have a row for each sample."""

    def __init__(self, estimator: Any) -> None:
        self.model = copy(estimator)
        self.model.__dict__.pop("dual_coef_", None)

    def __dask_tokenize__(self) -> str:
        return uuid4().hex


def _predicted(X: Array, predict: _Predict) -> Array:
    return predict.model.predict(X)


def _checked(estimator: Any, kernel: OperatorKernel, settings: DualSettings) -> tuple[Approximation, DouglasRachford]:
    """Return the approximation and the solver, or say what a fit of chunks does not take."""
    problems = {
        "approximation=Nystrom(500, 'uniform') or another one": settings.approximation is None,
        "center=False and scale=False": bool(estimator.center or estimator.scale),
        "representation=None": estimator.representation is not None,
        "a loss with numbers as parameters": settings.loss.is_relative,
        "a loss that is finite everywhere": not np.isinf(_radius(settings.loss)),
        "solver='auto' or DouglasRachford()": not isinstance(settings.solver, Auto | DouglasRachford),
        "a kernel on points": kernel.is_pairwise,
    }
    wrong = [use for use, is_wrong in problems.items() if is_wrong]
    if wrong or settings.approximation is None:
        raise IncompatibleError(f"Dask arrays need {', '.join(wrong)}.")
    solver = settings.solver if isinstance(settings.solver, DouglasRachford) else DouglasRachford()
    return settings.approximation, solver


def _radius(loss: Loss) -> float:
    return float("inf") if loss.profile is None else float(loss.profile.radius)


def _client() -> Any:
    distributed = require("distributed", extra="dask")
    try:
        return distributed.get_client()
    except ValueError as error:
        raise ValueError("Dask arrays need a client. Start one first: distributed.Client().") from error


def _in_chunks(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return Dask arrays with the same chunks of rows, each with all its columns."""
    array = require("dask.array", extra="dask")
    if X.ndim != 2:
        raise ValueError(f"X must be 2-dimensional. Got an array of shape {tuple(X.shape)} instead.")
    X = X.compute_chunk_sizes() if np.isnan(X.shape[0]) else X
    X = X.rechunk({1: -1})
    y = y if is_chunked(y) else array.from_array(np.asarray(y), chunks=-1)
    y = y.compute_chunk_sizes() if np.isnan(y.shape[0]) else y
    if y.shape[0] != X.shape[0]:
        raise ValueError(f"X and y must have as many samples. Got {X.shape[0]} and {y.shape[0]}.")
    y = y.rechunk({0: X.chunks[0], **({1: -1} if y.ndim == 2 else {})})
    if sample_weight is None:
        return X, y, None
    weights = sample_weight if is_chunked(sample_weight) else array.from_array(np.asarray(sample_weight))
    return X, y, weights.rechunk({0: X.chunks[0]})


def _bound(kernel: OperatorKernel, approximation: Approximation, X: Any, y: Any, lam: float) -> BoundTerms:
    """Return the approximate kernel, from as many rows as the largest chunk has.

    Uniform landmarks are those of the whole sample.
    """
    index = approximation.rows(int(X.shape[0]), max(X.chunks[0]))
    rows = check_array(np.asarray(X[index].compute()), "X")
    targets = np.zeros((len(rows), 1 if y.ndim == 1 else y.shape[1]))
    bound: BoundTerms = kernel.bind(rows, Euclidean().fit(targets))
    if len(getattr(bound, "terms", ())) != 1 or bound.terms[0][1] is not None:
        raise IncompatibleError(f"Dask arrays need one scalar kernel and operator=None. Got {kernel!r}.")
    return bound.mapped(lambda scalar: approximation.approximate(scalar, rows, None, lam))


def _problems(client: Any, kernel: ScalarKernel, X: Any, y: Any, weights: Any, settings: DualSettings) -> list[Any]:
    """Return futures of the problems of the chunks."""
    delayed = require("dask", extra="dask").delayed
    total = float(X.shape[0]) if weights is None else float(weights.sum().compute())
    blocks = [list(part.to_delayed().ravel()) for part in (X, y)]
    counts = [None] * len(blocks[0]) if weights is None else list(weights.to_delayed().ravel())
    shared = delayed((kernel, settings.loss, settings.lam, total), traverse=False)
    made = [delayed(_problem)(*parts, shared) for parts in zip(*blocks, counts, strict=True)]
    futures: list[Any] = client.compute(made)
    return futures


def _problem(X: Array, y: Array, weights: Array | None, shared: tuple[ScalarKernel, Loss, float, float]) -> DualProblem:
    """Return the problem of a chunk, with the weight of the whole sample."""
    kernel, loss, lam, total = shared
    X = check_array(np.asarray(X), "X")
    targets = check_array(np.asarray(y, dtype=X.dtype), "y", ndim=(1, 2))
    targets = targets[:, None] if targets.ndim == 1 else targets
    features, root = kernel.features(X), None
    if weights is not None:
        root = np.sqrt(np.asarray(weights, dtype=X.dtype))[:, None]
        features, targets = features * root, targets * root
    return DualProblem(Thin(features), targets, loss.bind(targets), lam, root, total)


def _duals(client: Any, chunks: Sequence[Any], futures: Sequence[Any], X: Any, coef: np.ndarray, is_flat: bool) -> Any:
    """Return the dual variables as a Dask array whose chunks are on the workers."""
    array, delayed = require("dask.array", extra="dask"), require("dask", extra="dask").delayed
    blocks = []
    for chunk, duals, size in zip(chunks, futures, X.chunks[0], strict=True):
        shape = (size,) if is_flat else (size, coef.shape[1])
        block = delayed(client.submit(_unscaled, chunk, duals, is_flat, pure=False))
        blocks.append(array.from_delayed(block, shape, dtype=coef.dtype))
    return array.concatenate(blocks)


def _unscaled(problem: DualProblem, duals: Array, is_flat: bool) -> Array:
    rows = problem.unscale(duals)
    return rows[:, 0] if is_flat else rows
