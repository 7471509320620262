"""Fits on Dask arrays, whose chunks of rows stay on the workers of a cluster."""

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from fenchel._array import Array
from fenchel._check import check_array
from fenchel._optional import require
from fenchel.approximations import Approximation, Nystrom
from fenchel.chunks.krylov import Points, solve_exactly
from fenchel.chunks.predict import ChunkedExpansion
from fenchel.chunks.sample import Client, Future, Sample, sample_of, target_scale_of
from fenchel.chunks.splitting import Features, Workers, solve_chunks
from fenchel.chunks.tasks import System, ridge_of
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import OperatorKernel, as_operator_kernel
from fenchel.kernels.separable import BoundTerms
from fenchel.losses import Loss, Square
from fenchel.losses.pnorm import PNormLoss
from fenchel.model.expansion import KernelExpansion
from fenchel.model.fit import warn_unless_converged
from fenchel.model.forms import InputForm, OutputForm
from fenchel.model.machine import KernelMachine
from fenchel.model.memory import warn_if_slow
from fenchel.model.model import Duals, Model, Record
from fenchel.model.spec import Spec
from fenchel.model.vectors import VectorCodec, Vectors
from fenchel.operators import Thin, kronecker
from fenchel.operators.products import PointKernel
from fenchel.problem import DualProblem
from fenchel.representations import Coordinates, CoordinateSpace, Euclidean
from fenchel.solvers import Auto, DouglasRachford, Krylov, Solution
from fenchel.solvers.state_file import StateFile, key_of

__all__ = ["fit_chunks"]

M = TypeVar("M", bound=KernelMachine)
S = TypeVar("S", DouglasRachford, Krylov)


def fit_chunks(machine: M, task: Vectors, spec: Spec, X: Array, y: Array, sample_weight: Array | None) -> M:
    """Fit an estimator of vectors on Dask arrays, and return it with its model.

    The loss, the state of the solver and the dual variables stay on the workers of the current client.
    """
    kernel = as_operator_kernel(task.kernel, task.operator).validate()
    _check(task, kernel, spec)
    client, sample, moments = _client(), sample_of(X, y, sample_weight), None
    if task.center or task.scale:
        moments = target_scale_of(sample, bool(task.center), bool(task.scale))
        sample = sample.encoded(moments)
    approximation = spec.approximation or _preconditioner(_solver(Krylov, spec), sample)
    bound, thin = _bound(kernel, approximation, sample, spec.lam)
    spec, chunks, solution = _solved(client, bound, thin, sample, spec)
    warn_unless_converged(solution, spec)
    pairs = zip(chunks, solution.duals, strict=True)
    duals = [client.submit(_unscaled, *pair, pure=False) for pair in pairs]
    expansion: Any = _exact_expansion(bound, sample, duals, spec.lam)  # cannot be evaluated at other points
    features = None
    if spec.approximation is not None:
        expansion = _thin_expansion(thin, sample, solution)
        features = clone(approximation).set_params(n_components=expansion.coef.shape[0])
    machine.n_features_in_ = sample.shape[1]
    machine.model_ = Model(
        spec,
        InputForm((sample.shape[1],)),
        OutputForm(() if sample.is_flat else (sample.n_outputs,)),
        VectorCodec(Euclidean().fit(np.zeros((1, sample.n_outputs))), moments),
        Coordinates(sample.y),
        expansion,
        Duals(sample.given_rows_of(client, duals, sample.n_outputs), None, None, None),
        Record.of(solution, "exact" if features is None else "approximate"),
        features,
    )
    return machine


def _solved(
    client: Client, bound: BoundTerms, thin: BoundTerms, sample: Sample, spec: Spec
) -> tuple[Spec, list[Future], Solution]:
    """Return the settings with the thresholds of the loss as numbers, the problems of the chunks, and the solution."""
    is_exact, loss, points = spec.approximation is None, spec.loss, list[Future]()
    if is_exact:
        warn_if_slow(sample.shape[0], spec, sample.n_outputs, sum(client.nthreads().values()))
        points = _points(client, bound, sample)
    if isinstance(loss, PNormLoss) and loss.is_relative:
        pilot = _problems(client, thin, sample, Square(), spec.lam)
        loss = _resolved(client, loss, pilot, points, spec.tol)
    spec = replace(spec, loss=clone(loss))
    chunks = _problems(client, thin, sample, loss, spec.lam)
    file = _state_file(client, spec, bound if is_exact else thin, sample)
    if is_exact:
        return spec, chunks, solve_exactly(client, chunks, points, loss, _solver(Krylov, spec), spec.tol, file)
    return spec, chunks, solve_chunks(client, chunks, _solver(DouglasRachford, spec), spec.tol, file)


def _thin_expansion(thin: BoundTerms, sample: Sample, solution: Solution) -> KernelExpansion:
    """Return the expansion of a fit with features, which predicts without the inputs."""
    coef = solution.predictions.result()
    return KernelExpansion(thin, np.zeros((0, sample.shape[1]), dtype=coef.dtype), coef, None, coef)


def _exact_expansion(bound: BoundTerms, sample: Sample, duals: list[Future], lam: float) -> ChunkedExpansion:
    """Return the expansion of an exact fit, whose inputs and coefficients stay on the workers."""
    rows = sample.rows_of(duals, sample.n_outputs)
    weighted = rows if sample.weights is None else rows * sample.weights[:, None]
    return ChunkedExpansion(bound, sample.X, weighted / (lam * sample.total))


def _check(task: Vectors, kernel: OperatorKernel, spec: Spec) -> None:
    """Raise if a setting is not supported with Dask arrays, and name one that is."""
    is_thin, solver, loss = spec.approximation is not None, spec.solver, spec.loss
    problems = {
        "center=True or center=False": task.center not in (True, False),
        "scale=True or scale=False": task.scale not in (True, False),
        "representation=None": task.representation is not None,
        "certificate='approximate'": is_thin and spec.certificate != "approximate",
        "a loss with numbers as parameters": loss.is_relative and not isinstance(loss, PNormLoss),
        "a loss that is finite everywhere": math.isfinite(_radius(loss)),
        "solver='auto', 'krylov' or DouglasRachford()": not isinstance(solver, Auto | DouglasRachford | Krylov),
        "approximation=Nystrom(500, 'uniform') or solver='krylov'": not is_thin and isinstance(solver, DouglasRachford),
        "a kernel on points": kernel.is_pairwise,
    }
    wrong = [use for use, is_wrong in problems.items() if is_wrong]
    if wrong:
        raise IncompatibleError(f"Dask arrays need {', '.join(wrong)}.")


def _solver(kind: type[S], spec: Spec) -> S:
    """Return the solver if it is of this kind, else one with its limit on the iterations."""
    if isinstance(spec.solver, kind):
        return spec.solver
    max_iter = spec.solver.get_params()["max_iter"]
    return kind() if max_iter is None else kind(max_iter)


def _radius(loss: Loss) -> float:
    return math.inf if loss.is_relative or loss.profile is None else float(loss.profile.radius)


def _preconditioner(krylov: Krylov, sample: Sample) -> Nystrom:
    """Return the features of the preconditioner, whose products are no larger than a chunk of inputs."""
    count = krylov.n_features(sample.shape[0])
    if krylov.n_components is None:
        count = max(1, min(count, math.isqrt(max(sample.X.chunks[0]) * sample.shape[1])))
    return Nystrom(count, "uniform")


def _client() -> Client:
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
        bound = kernel.bind(rows, _space(outputs))
        if not isinstance(bound, BoundTerms) or len(bound.terms) != 1:
            raise IncompatibleError(f"Dask arrays need one scalar kernel times one operator. Got {kernel!r}.")
        return bound

    bound = bind(np.zeros((1, sample.n_outputs)))
    if bound.terms[0][1] is not None:  # an operator may use the outputs: pass a few with the same second moments
        bound = bind(sample.few_outputs())
    return bound, bound.mapped(lambda scalar: approximation.approximate(scalar, rows, None, lam))


def _space(outputs: np.ndarray) -> CoordinateSpace:
    representation = Euclidean()
    return CoordinateSpace(representation, representation.learn(outputs).rows)


def _problems(client: Client, thin: BoundTerms, sample: Sample, loss: Loss, lam: float) -> list[Future]:
    """Return futures of the problems of the chunks, with features instead of the kernel."""
    shared = require("dask", extra="dask").delayed((thin, loss, lam, sample.total), traverse=False)
    return sample.futures(client, _problem, shared)


def _problem(X: Array, y: Array, weights: Array | None, shared: tuple[BoundTerms, Loss, float, float]) -> DualProblem:
    """Return the problem of a chunk, with the total weight of the whole sample."""
    thin, loss, lam, total = shared
    kernel, operator = thin.terms[0]
    X = check_array(np.asarray(X), "X")
    targets = check_array(np.asarray(y, dtype=X.dtype), "y")
    features = kernel.features(X)
    root = _root(weights, X)
    if root is not None:
        features, targets = features * root, targets * root
    return DualProblem(kronecker(Thin(features), operator), targets, loss.bind(targets), lam, root, total)


def _points(client: Client, bound: BoundTerms, sample: Sample) -> list[Future]:
    """Return futures of the inputs of the chunks, for products with the kernel."""
    kernel = require("dask", extra="dask").delayed(bound.terms[0][0], traverse=False)
    return sample.futures(client, _points_of, kernel)


def _points_of(X: Array, y: Array, weights: Array | None, kernel: PointKernel) -> Points:
    X = np.asarray(X)
    return Points(kernel, X, _root(weights, X))


def _root(weights: Array | None, X: Array) -> Array | None:
    if weights is None:
        return None
    return np.sqrt(np.asarray(weights, dtype=X.dtype))[:, None]


def _resolved(client: Client, loss: PNormLoss, pilot: list[Future], points: list[Future], tol: float) -> Loss:
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


def _norms(problem: DualProblem, duals: Array, loss: PNormLoss) -> tuple[Array, Array]:
    """Return the norms of the residuals, and the sample weights."""
    norms = loss.bounded_norms(problem.unscale(duals))
    return norms, np.ones(len(norms)) if problem.root is None else problem.root[:, 0] ** 2


def _resolve(loss: Loss, norms: list[tuple[Array, Array]]) -> Loss:
    """Resolve the threshold of the loss; the norms of all samples are gathered on one worker."""
    sizes, counts = (np.concatenate(part) for part in zip(*norms, strict=True))
    return loss.resolve(sizes, counts)


def _state_file(client: Client, spec: Spec, kernel: BoundTerms, sample: Sample) -> StateFile | None:
    """Return the checkpoint of a solver; its key depends on every number of the chunks."""
    if not isinstance(spec.solver, Krylov) or spec.solver.checkpoint is None:
        return None
    digests = client.gather(sample.futures(client, _digest, None))
    return StateFile(spec.solver.checkpoint, key_of(digests, kernel, spec.loss, spec.lam))


def _digest(X: Array, y: Array, weights: Array | None, shared: object) -> str:
    return key_of(X, y, weights)


def _unscaled(problem: DualProblem, duals: Array) -> Array:
    return problem.unscale(duals)
