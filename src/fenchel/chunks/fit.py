"""Fits on Dask arrays, whose chunks of rows stay on the workers of a cluster.

The solvers are those of arrays in memory: rows on the workers (``rows``) are one more array library.
"""

import math
from dataclasses import replace
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from fenchel._array import Array, settled
from fenchel._check import check_array
from fenchel._optional import require
from fenchel.approximations import Approximation, Nystrom
from fenchel.chunks.predict import ChunkedExpansion
from fenchel.chunks.rows import ROWS, Rows, Workers
from fenchel.chunks.rowwise import Rowwise
from fenchel.chunks.sample import Client, Sample, sample_of, target_scale_of
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
from fenchel.operators import ScalarOperator, Streamed, Thin, kronecker
from fenchel.problem import DualProblem
from fenchel.problem.dual_problem import arithmetic
from fenchel.representations import Coordinates, CoordinateSpace, Euclidean
from fenchel.solvers import Auto, DouglasRachford, Krylov
from fenchel.solvers.solver import approaching, keeping_best

__all__ = ["fit_chunks"]

M = TypeVar("M", bound=KernelMachine)


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
    is_exact, solver = spec.approximation is None, _solver(spec)
    approximation = spec.approximation or _preconditioner(solver, sample)
    bound, thin = _bound(kernel, approximation, sample, spec.lam)
    if is_exact:
        warn_if_slow(sample.shape[0], spec, sample.n_outputs, sum(client.nthreads().values()))
    problem, features = _problem(client, bound, thin, sample, spec)
    spec = replace(spec, loss=_resolved(spec, problem))
    problem = problem.with_(loss=Rowwise(spec.loss, problem.loss.targets))
    with arithmetic(problem), keeping_best(), approaching(spec.tol):
        solution = solver.solve(problem, spec.tol)
    warn_unless_converged(solution, spec)
    duals, width = problem.unscale(solution.duals).chunks(), sample.n_outputs
    if is_exact:  # the inputs and the coefficients stay on the workers
        rows = sample.rows_of(duals, width)
        weighted = rows if sample.weights is None else rows * sample.weights[:, None]
        expansion: Any = ChunkedExpansion(bound, sample.X, weighted * problem.scale)
    else:  # it predicts without the inputs
        coef = np.asarray(features.T @ solution.duals) * problem.scale
        expansion = KernelExpansion(thin, np.zeros((0, sample.shape[1]), dtype=coef.dtype), coef, None, coef)
    machine.n_features_in_ = sample.shape[1]
    machine.model_ = Model(
        spec,
        InputForm((sample.shape[1],)),
        OutputForm(() if sample.is_flat else (sample.n_outputs,)),
        VectorCodec(Euclidean().fit(np.zeros((1, sample.n_outputs))), moments),
        Coordinates(sample.y),
        expansion,
        Duals(sample.given_rows_of(client, duals, width), None, None, None),
        Record.of(solution, "exact" if is_exact else "approximate"),
        None if is_exact else clone(approximation).set_params(n_components=coef.shape[0]),
    )
    return machine


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


def _solver(spec: Spec) -> Any:
    """Return the solver; ``Auto`` is one that needs no factorisation, with the same limit on the iterations."""
    if not isinstance(spec.solver, Auto):
        return spec.solver
    max_iter, kind = spec.solver.max_iter, Krylov if spec.approximation is None else DouglasRachford
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


def _problem(
    client: Client, bound: BoundTerms, thin: BoundTerms, sample: Sample, spec: Spec
) -> tuple[DualProblem, Rows]:
    """Return the problem of the square loss, with the kernel itself or features in place of it, and the features."""
    (kernel, operator), approximate = bound.terms[0], thin.terms[0][0]
    workers, dtype = Workers(client, sample.shape[0]), sample.X.dtype if sample.X.dtype.kind == "f" else np.float64
    futures, widths = sample.futures(client, _checked, None), (sample.shape[1], sample.n_outputs, 1)
    X, targets, roots = (
        Rows(workers, np.ones((ROWS, width), dtype), [workers.submit(itemgetter(k), one) for one in futures])
        for k, width in enumerate(widths)
    )
    loss, features, root = Rowwise(Square(), targets), X.of(approximate.features, X), None
    if sample.weights is not None:
        root, features = roots, features * roots
        (targets,) = settled(targets * roots)
    gram: ScalarOperator = Streamed(kernel, X, features=lambda: features, roots=(root, root))
    if spec.approximation is not None:
        turned, values = features.orthogonal()
        gram = Thin(turned, None, values)
    return DualProblem(kronecker(gram, operator), targets, loss, spec.lam, root, sample.total), features


def _checked(X: Array, y: Array, weights: Array | None, shared: None) -> tuple[Array, Array, Array | None]:
    """Return the inputs, the outputs and the square roots of the weights of a chunk."""
    X = check_array(np.asarray(X), "X")
    root = None if weights is None else np.sqrt(np.asarray(weights, dtype=X.dtype))[:, None]
    return X, check_array(np.asarray(y, dtype=X.dtype), "y"), root


def _resolved(spec: Spec, problem: DualProblem) -> Loss:
    """Return the loss; a threshold relative to the residuals is resolved with those of the square loss.

    The norms of all samples are gathered on one worker.
    """
    loss = spec.loss
    if not isinstance(loss, PNormLoss) or not loss.is_relative:
        return clone(loss)
    pilot = Krylov() if spec.approximation is None else DouglasRachford()
    residuals = problem.unscale(pilot.solve(problem, spec.tol).duals)  # the duals of the square loss
    norms = residuals.of(loss.bounded_norms, residuals)
    counts = norms.of(np.ones_like, norms) if problem.root is None else problem.root[:, 0] ** 2
    norms, counts = settled(norms, counts)
    resolved: Loss = norms.workers.submit(_resolve, loss, norms.chunks(), counts.chunks()).result()
    return resolved


def _resolve(loss: PNormLoss, norms: list[Array], counts: list[Array]) -> Loss:
    return loss.resolve(np.concatenate(norms), np.concatenate(counts))
