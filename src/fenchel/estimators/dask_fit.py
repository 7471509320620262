"""Fits on Dask arrays, whose chunks of rows stay on the workers of a cluster."""

import math
from typing import Any

import numpy as np
from sklearn.base import clone

from fenchel._array import Array
from fenchel._check import check_array
from fenchel._optional import require
from fenchel.approximations import Approximation, Nystrom
from fenchel.estimators.dask_predict import ChunkedExpansion
from fenchel.estimators.dask_sample import Sample, sample_of, target_scale_of
from fenchel.estimators.fitted_dual import KernelExpansion, expose_certificate, warn_unless_converged
from fenchel.estimators.memory import warn_if_slow
from fenchel.estimators.validation import DualSettings
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import OperatorKernel
from fenchel.kernels.separable import BoundTerms
from fenchel.losses import Loss, Square
from fenchel.operators import Thin, kronecker
from fenchel.problem import DualProblem
from fenchel.representations import Euclidean
from fenchel.solvers import Auto, DouglasRachford, Krylov, Solution
from fenchel.solvers.checkpoint import StateFile, key_of
from fenchel.solvers.chunk_tasks import System, ridge_of
from fenchel.solvers.chunked import Features, Workers, solve_chunks
from fenchel.solvers.chunked_krylov import Points, solve_exactly

__all__ = ["fit_chunks"]


def fit_chunks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, kernel: OperatorKernel, settings: DualSettings
) -> None:
    """Fit an estimator of vectors on Dask arrays, and set its attributes.

    The loss, the state of the solver and the dual variables stay on the workers of the current client.
    """
    _check(estimator, kernel, settings)
    client = _client()
    target_scale = None
    sample = sample_of(X, y, sample_weight)
    if estimator.center or estimator.scale:
        target_scale = target_scale_of(sample, bool(estimator.center), bool(estimator.scale))
        sample = sample.encoded(target_scale)
    approximation = settings.approximation or _preconditioner(_exact_solver(settings), sample)
    bound, thin = _bound(kernel, approximation, sample, settings.lam)
    is_exact, points = settings.approximation is None, []
    if is_exact:
        warn_if_slow(sample.shape[0], settings, sample.n_outputs, sum(client.nthreads().values()))
        points = _points(client, bound, sample)
    loss = settings.loss
    if loss.is_relative:
        pilot = _problems(client, thin, sample, Square(), settings.lam)
        loss = _resolved(client, loss, pilot, points, settings.tol)
    chunks = _problems(client, thin, sample, loss, settings.lam)
    file = _state_file(client, settings, bound if is_exact else thin, sample, loss)
    if is_exact:
        solution = solve_exactly(client, chunks, points, loss, _exact_solver(settings), settings.tol, file)
    else:
        solution = solve_chunks(client, chunks, _thin_solver(settings), settings.tol, file)
    warn_unless_converged(solution, settings.lam, settings.tol)
    estimator.center_ = None if target_scale is None else target_scale.center
    estimator.scale_ = None if target_scale is None else target_scale.scale
    estimator.loss_ = clone(loss)
    _expose(estimator, sample, client, chunks, solution)
    if is_exact:
        _expose_exact(estimator, bound, sample, settings.lam)
    else:
        _expose_thin(estimator, thin, approximation, solution)


def _expose(estimator: Any, sample: Sample, client: Any, chunks: list[Any], solution: Solution) -> None:
    """Set the attributes that all fits on Dask arrays have in common."""
    for name in ("support_", "sparsity_", "outlier_score_", "point_outlier_score_"):
        estimator.__dict__.pop(name, None)  # from an earlier fit: these have an entry for each sample
    estimator.n_features_in_ = int(sample.X.shape[1])
    estimator._is_flat = sample.is_flat
    estimator.representation_ = Euclidean().fit(np.zeros((1, sample.n_outputs)))
    blocks = [client.submit(_unscaled, *pair, pure=False) for pair in zip(chunks, solution.duals, strict=True)]
    duals = sample.rows_of(blocks, sample.n_outputs)
    estimator.dual_coef_ = duals[:, 0] if sample.is_flat else duals
    expose_certificate(estimator, solution)


def _expose_thin(estimator: Any, thin: BoundTerms, approximation: Approximation, solution: Solution) -> None:
    coef = solution.predictions.result()
    estimator.X_fit_ = np.zeros((0, estimator.n_features_in_), dtype=coef.dtype)
    estimator._expansion = KernelExpansion(thin, estimator.X_fit_, coef, None, coef)
    estimator.approximation_ = clone(approximation).set_params(n_components=coef.shape[0])
    estimator.certificate_ = "approximate"


def _expose_exact(estimator: Any, bound: BoundTerms, sample: Sample, lam: float) -> None:
    duals = estimator.dual_coef_[:, None] if sample.is_flat else estimator.dual_coef_
    weighted = duals if sample.weights is None else duals * sample.weights[:, None]
    estimator.X_fit_ = sample.X
    estimator._expansion = ChunkedExpansion(bound, sample.X, weighted / (lam * sample.total))
    estimator.approximation_ = None
    estimator.certificate_ = "exact"


def _check(estimator: Any, kernel: OperatorKernel, settings: DualSettings) -> None:
    """Raise if a setting is not supported with Dask arrays, and name one that is."""
    is_thin, solver, loss = settings.approximation is not None, settings.solver, settings.loss
    problems = {
        "center=True or center=False": estimator.center not in (True, False),
        "scale=True or scale=False": estimator.scale not in (True, False),
        "representation=None": estimator.representation is not None,
        "certificate='approximate'": is_thin and settings.certificate != "approximate",
        "a loss with numbers as parameters": loss.is_relative and not hasattr(loss, "bounded_norms"),
        "a loss that is finite everywhere": math.isfinite(_radius(loss)),
        "solver='auto', 'krylov' or DouglasRachford()": not isinstance(solver, Auto | DouglasRachford | Krylov),
        "approximation=Nystrom(500, 'uniform') or solver='krylov'": not is_thin and isinstance(solver, DouglasRachford),
        "a kernel on points": kernel.is_pairwise,
    }
    wrong = [use for use, is_wrong in problems.items() if is_wrong]
    if wrong:
        raise IncompatibleError(f"Dask arrays need {', '.join(wrong)}.")


def _thin_solver(settings: DualSettings) -> DouglasRachford:
    """Return Douglas-Rachford splitting, which ``Krylov`` also uses for problems with features."""
    solver: Any = settings.solver
    if isinstance(solver, DouglasRachford):
        return solver
    return DouglasRachford() if solver.max_iter is None else DouglasRachford(solver.max_iter)


def _exact_solver(settings: DualSettings) -> Krylov:
    """Return the solver for the exact kernel."""
    solver: Any = settings.solver
    if isinstance(solver, Krylov):
        return solver
    return Krylov() if solver.max_iter is None else Krylov(solver.max_iter)


def _radius(loss: Loss) -> float:
    return math.inf if loss.is_relative or loss.profile is None else float(loss.profile.radius)


def _preconditioner(krylov: Krylov, sample: Sample) -> Nystrom:
    """Return the features of the preconditioner, whose products are no larger than a chunk of inputs."""
    count = krylov.n_features(sample.shape[0])
    if krylov.n_components is None:
        count = max(1, min(count, math.isqrt(max(sample.X.chunks[0]) * sample.shape[1])))
    return Nystrom(count, "uniform")


def _client() -> Any:
    distributed = require("distributed", extra="dask")
    try:
        return distributed.get_client()
    except ValueError as error:
        raise ValueError("Dask arrays need a client. Start one first: distributed.Client().") from error


def _bound(
    kernel: OperatorKernel, approximation: Approximation, sample: Sample, lam: float
) -> tuple[BoundTerms, BoundTerms]:
    """Return the kernel with resolved parameters and the approximate kernel, from at most one chunk's number of rows.

    Uniform landmarks are drawn from the whole sample.
    """
    index = approximation.rows(sample.shape[0], max(sample.X.chunks[0]))
    rows = check_array(np.asarray(sample.X[index].compute()), "X")

    def bind(outputs: np.ndarray) -> BoundTerms:
        bound = kernel.bind(rows, Euclidean().fit(outputs))
        if not isinstance(bound, BoundTerms) or len(bound.terms) != 1:
            raise IncompatibleError(f"Dask arrays need one scalar kernel times one operator. Got {kernel!r}.")
        return bound

    bound = bind(np.zeros((1, sample.n_outputs)))
    if bound.terms[0][1] is not None:  # an operator may use the outputs: pass a few with the same second moments
        bound = bind(sample.few_outputs())
    return bound, bound.mapped(lambda scalar: approximation.approximate(scalar, rows, None, lam))


def _problems(client: Any, thin: BoundTerms, sample: Sample, loss: Loss, lam: float) -> list[Any]:
    """Return futures of the problems of the chunks, with features instead of the kernel."""
    shared = require("dask", extra="dask").delayed((thin, loss, lam, sample.total), traverse=False)
    return sample.futures(client, _problem, shared)


def _problem(X: Array, y: Array, weights: Array | None, shared: tuple[BoundTerms, Loss, float, float]) -> DualProblem:
    """Return the problem of a chunk, with the total weight of the whole sample."""
    thin, loss, lam, total = shared
    kernel, operator = thin.terms[0]
    X = check_array(np.asarray(X), "X")
    targets = check_array(np.asarray(y, dtype=X.dtype), "y")
    features: Any = kernel.features(X)
    root = _root(weights, X)
    if root is not None:
        features, targets = features * root, targets * root
    return DualProblem(kronecker(Thin(features), operator), targets, loss.bind(targets), lam, root, total)


def _points(client: Any, bound: BoundTerms, sample: Sample) -> list[Any]:
    """Return futures of the inputs of the chunks, for products with the kernel."""
    kernel = require("dask", extra="dask").delayed(bound.terms[0][0], traverse=False)
    return sample.futures(client, _points_of, kernel)


def _points_of(X: Array, y: Array, weights: Array | None, kernel: Any) -> Points:
    X = np.asarray(X)
    return Points(kernel, X, _root(weights, X))


def _root(weights: Array | None, X: Array) -> Array | None:
    if weights is None:
        return None
    counts = np.asarray(weights, dtype=X.dtype)
    if not (np.all(np.isfinite(counts)) and np.all(counts > 0)):
        raise ValueError("sample_weight must hold finite positive numbers with Dask arrays. Remove other samples.")
    return np.sqrt(counts)[:, None]


def _resolved(client: Any, loss: Loss, pilot: list[Any], points: list[Any], tol: float) -> Loss:
    """Resolve a relative threshold of the loss with the residuals of a pilot model.

    The residuals are the duals of the square loss. ``points`` are those of an exact fit, whose pilot is exact too.
    """
    workers = Workers(client, pilot)
    if points:
        duals = solve_exactly(client, pilot, points, Square(), Krylov(), tol).duals
    else:
        duals = workers.each(_ridge, Features(workers).system)
    resolved: Loss = workers.submit(_resolve, loss, workers.each(_norms, duals, loss)).result()
    return resolved


def _ridge(problem: DualProblem, system: System) -> Array:
    return ridge_of(problem, system)[0]


def _norms(problem: DualProblem, duals: Array, loss: Any) -> tuple[Array, Array]:
    """Return the norms of the residuals, and the sample weights."""
    norms = loss.bounded_norms(problem.unscale(duals))
    return norms, np.ones(len(norms)) if problem.root is None else problem.root[:, 0] ** 2


def _resolve(loss: Loss, norms: list[tuple[Array, Array]]) -> Loss:
    """Resolve the threshold of the loss; the norms of all samples are gathered on one worker."""
    sizes, counts = (np.concatenate(part) for part in zip(*norms, strict=True))
    return loss.resolve(sizes, counts)


def _state_file(
    client: Any, settings: DualSettings, kernel: BoundTerms, sample: Sample, loss: Loss
) -> StateFile | None:
    """Return the checkpoint of a solver; its key depends on every number of the chunks."""
    name = getattr(settings.solver, "checkpoint", None)
    if name is None:
        return None
    digests = client.gather(sample.futures(client, _digest, None))
    return StateFile(name, key_of(digests, kernel, loss, settings.lam))


def _digest(X: Array, y: Array, weights: Array | None, shared: None) -> str:
    return key_of(X, y, weights)


def _unscaled(problem: DualProblem, duals: Array) -> Array:
    return problem.unscale(duals)
