"""Contract checks for solvers: certificates must be true, and unsupported problems rejected with a reason."""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import DTypeLike
from sklearn.base import clone

from fenchel.estimators import OperatorKernelRegressor
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Loss, Norm, Pinball, Square
from fenchel.solvers import Solver
from fenchel.testing._checks import expect, register, run

__all__ = ["check_solver"]

_TOL = 1e-6  # the default gap of every estimator
_AGREEMENT = 1e-10  # relative tolerance of the objectives
_LAM, _GAMMA = 0.1, 0.5


def check_solver(solver: Solver, losses: Sequence[Loss] | None = None) -> None:
    """Raise ``AssertionError`` if a solver breaks the contract of solvers.

    The solver fits a small problem with each loss. It must reach the tolerance, or reject the problem with a reason and
    advice. The primal and dual objectives are recomputed from the dual variables.

    Parameters
    ----------
    solver : Solver
        An instance.
    losses : sequence of Loss, default=None
        Losses to fit with; by default one of each kind.

    Examples
    --------
    >>> from fenchel.solvers import APGD
    >>> from fenchel.testing import check_solver
    >>> check_solver(APGD())
    """
    run(solver, Solver, losses=losses)


def _data(dtype: DTypeLike = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return (1.3 * rng.standard_normal((12, 3))).astype(dtype), rng.standard_normal((12, 3)).astype(dtype)


def _losses(losses: Sequence[Loss] | None) -> Sequence[Loss]:
    if losses is not None:
        return losses
    return [Square(), Huber(0.3), EpsilonRidge(0.4), EpsilonSVR(0.2), Norm(0.5), Huber(0.3, p=1), Pinball(0.3)]


def _model(solver: Solver, loss: Loss, tol: float = _TOL) -> OperatorKernelRegressor:
    return OperatorKernelRegressor(Gaussian(_GAMMA), loss=loss, lam=_LAM, solver=solver, tol=tol)


def _fits(solver: Solver, losses: Sequence[Loss] | None) -> list[tuple[Loss, OperatorKernelRegressor]]:
    """Return the fits with the losses that the solver supports; a rejection must give a reason and an alternative."""
    fits = []
    for loss in _losses(losses):
        try:
            fits.append((loss, _model(solver, loss).fit(*_data())))
        except IncompatibleError as error:
            name = type(solver).__name__
            expect(f"{name} cannot solve this problem" in str(error), f"{solver!r} rejects {loss!r}: {error}")
            expect("Use " in str(error), f"{solver!r} rejects {loss!r} without advice: {error}")
    expect(len(fits) > 0, f"{solver!r} supports none of the losses.")
    return fits


def _objectives(loss: Loss, duals: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """Return the primal and dual objectives, computed from their definitions."""
    X, Y = _data()
    bound, counts = loss.bind(Y), np.ones(len(X)) if weights is None else weights
    K, total, weighted = Gaussian(_GAMMA)(X), float(np.sum(counts)), counts[:, None] * duals
    predictions = K @ weighted / (_LAM * total)
    quadratic = float(np.sum(weighted * predictions)) / (2 * total)
    terms = np.sum(duals * Y, axis=1) - bound.conjugate(duals)
    primal = float(counts @ bound.value(Y - predictions)) / total + quadratic
    return primal, float(counts @ terms) / total - quadratic


def check_certificate(solver: Solver, losses: Sequence[Loss] | None = None) -> None:
    """The gap is within ``tol``, and the objectives are those of the dual variables."""
    for loss, model in _fits(solver, losses):
        primal, dual = _objectives(loss, model.dual_coef_)
        expect(model.duality_gap_ <= _TOL, f"{solver!r}, {loss!r}: the gap is {model.duality_gap_:.1e}.")
        message = f"{solver!r}, {loss!r}: the certificate is not that of the duals."
        assert_allclose(model.primal_objective_, primal, rtol=_AGREEMENT, err_msg=message)
        assert_allclose(model.dual_objective_, dual, rtol=_AGREEMENT, err_msg=message)
        expect(primal - dual <= 2 * _TOL * abs(primal), message)


def check_weights(solver: Solver, losses: Sequence[Loss] | None = None) -> None:
    """The certificate of a fit with sample weights is true too."""
    X, Y = _data()
    weights = np.linspace(0.5, 3.0, len(X))
    for loss, _ in _fits(solver, losses):
        model = _model(solver, loss).fit(X, Y, sample_weight=weights)
        primal, dual = _objectives(loss, model.dual_coef_, weights)
        message = f"{solver!r}, {loss!r}: the certificate of a weighted fit is not that of its duals."
        assert_allclose(
            [model.primal_objective_, model.dual_objective_], [primal, dual], rtol=_AGREEMENT, err_msg=message
        )


def check_interrupted(solver: Solver, losses: Sequence[Loss] | None = None) -> None:
    """A solver with ``max_iter`` stops there, keeps its result, and its certificate is true."""
    if "max_iter" not in solver.get_params():
        return
    short = clone(solver).set_params(max_iter=1)
    for loss, _ in _fits(solver, losses):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ConvergenceWarning is expected
            model = _model(short, loss, tol=1e-14).fit(*_data())
        objectives = _objectives(loss, model.dual_coef_)
        message = f"{solver!r}, {loss!r}: the certificate after one iteration is not that of its duals."
        assert_allclose([model.primal_objective_, model.dual_objective_], objectives, rtol=_AGREEMENT, err_msg=message)
        expect(objectives[0] >= objectives[1] - _AGREEMENT * abs(objectives[0]), message)


def check_same_bits_and_arguments(solver: Solver, losses: Sequence[Loss] | None = None) -> None:
    """Two fits give the same bits, inputs are not modified, and float32 stays float32."""
    for loss, model in _fits(solver, losses):
        X, Y = _data()
        again = _model(solver, loss).fit(X, Y)
        assert_array_equal(again.dual_coef_, model.dual_coef_, err_msg=f"{solver!r}, {loss!r}: a second fit differs.")
        for given, original in zip((X, Y), _data(), strict=True):
            assert_array_equal(given, original, err_msg=f"{solver!r}, {loss!r}: an argument is modified.")
        single = _model(solver, loss, tol=1e-3).fit(*_data(np.float32))
        expect(
            single.dual_coef_.dtype == np.float32, f"{solver!r}, {loss!r}: float32 becomes {single.dual_coef_.dtype}."
        )


register(Solver, check_certificate, check_weights, check_interrupted, check_same_bits_and_arguments)
