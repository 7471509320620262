"""Duality gaps of the exact problem at a solution with an approximate kernel."""

import math
from dataclasses import replace

import numpy as np

from fenchel._array import Array, as_index, host, namespace
from fenchel.data.content import shuffled
from fenchel.operators import Operator
from fenchel.problem import Certificate, DualProblem
from fenchel.problem.dual_problem import relative_gap

__all__ = ["exact_certificate", "sampled_certificate"]

_ROWS = 2000  # rows of the kernel matrix used for an estimate


def exact_certificate(
    problem: DualProblem, gram: Operator, certificate: Certificate, pair: tuple[Array, Array]
) -> Certificate:
    r"""Certify a solution of the approximate problem for the exact problem, in one pass over the kernel.

    .. math:: \text{gap} = \widehat{\text{gap}} + \frac{1}{2 \lambda n^2} \operatorname{tr} A^\top (K - \hat K) A,

    if the approximation is a projection in the space of the kernel. ``pair`` holds duals and predictions.
    """
    duals, predictions = pair
    excess = float(namespace(duals).sum(duals * (problem.scale * gram.matmul(duals) - predictions)))
    return _widened(problem, certificate, excess)


def sampled_certificate(
    problem: DualProblem,
    gram: Operator,
    certificate: Certificate,
    pair: tuple[Array, Array],
    ranks: np.ndarray,
    n_rows: int = _ROWS,
    random_state: int = 0,
) -> tuple[Certificate, float]:
    """Estimate ``exact_certificate`` from some rows of the kernel, with the standard error of the relative gap.

    ``ranks`` are those of the samples by what they contain.
    """
    duals, predictions = pair
    n, xp = duals.shape[0], namespace(duals)
    if n <= n_rows:
        return exact_certificate(problem, gram, certificate, pair), 0.0
    chosen = np.sort(shuffled(ranks, random_state)[:n_rows])
    rows = as_index(chosen, duals)
    products = problem.scale * gram.block(rows, slice(None)).matmul(duals)
    some, thin = xp.take(duals, rows, axis=0), xp.take(predictions, rows, axis=0)
    terms = host(xp.sum(some * (products - thin), axis=1)).astype(np.float64)
    widened = _widened(problem, certificate, max(0.0, n * float(terms.mean())))
    error = n * float(terms.std(ddof=1)) * math.sqrt((1 - n_rows / n) / n_rows)
    return widened, relative_gap(problem.value_at_zero, widened.primal, error / (2 * problem.total))


def _widened(problem: DualProblem, certificate: Certificate, excess: float) -> Certificate:
    """Return a certificate whose dual value is lowered by half the excess of the quadratic term."""
    loss = excess / (2 * problem.total)
    gap = certificate.gap + loss
    return replace(
        certificate,
        dual=certificate.dual - loss,
        gap=gap,
        relative_gap=relative_gap(problem.value_at_zero, certificate.primal, gap),
    )
