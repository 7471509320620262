"""Held-out residuals of training samples, each predicted by a model that did not see it."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from fenchel._array import Inputs, Outputs, as_like, as_rows, host, is_sparse
from fenchel.conformal.folds import Trainer
from fenchel.data.containers import inputs_for, length, numbers, on_one_grid, take
from fenchel.losses import Square
from fenchel.model.machine import best_of, is_machine, sees_outputs, training_set_of
from fenchel.resample.folds import whole_folds
from fenchel.resample.held_out import held_out
from fenchel.resample.residuals import Residuals

__all__ = ["MOST_SAMPLES", "are_training_inputs", "fitted_mask", "held_out_residuals", "residuals_of"]

_FOLDS = 10  # each fit sees nine tenths of the sample, so its residuals are nearly those of the whole
MOST_SAMPLES = 3000  # above this, folds are fitted one by one
_SAME = 1e-5  # relative difference of inputs that are considered equal, in float32 too


def are_training_inputs(model: BaseEstimator, X: Inputs, fitted: np.ndarray) -> bool:
    """Whether the samples of a mask are those that the model was fitted to, in the same order.

    Also true for models that have not kept their inputs, and for models of other libraries.
    """
    machine = best_of(model)
    if not is_machine(machine) or not hasattr(machine, "support_"):
        return True
    known: Any = machine.X_fit_
    rows = np.flatnonzero(fitted)
    if len(machine.dual_coef_) != len(rows):
        return False
    given = inputs_for(machine, as_rows(X) if is_sparse(X) else X, rows[host(machine.support_)], rows)
    if machine.model_.inputs.parts:
        given = machine.model_.inputs.read(machine, given)
    if is_sparse(known) and is_sparse(given) and given.shape == known.shape:
        return not known.shape[0] or bool(abs(given - known).max() <= _SAME * abs(known).max())
    values, wanted = numbers(host(given) if is_sparse(given) else given), host(known)
    if values.size != wanted.size:  # samples of weight zero have no columns of a Gram matrix
        return True
    return np.allclose(values.reshape(wanted.shape), wanted, rtol=_SAME, atol=0.0, equal_nan=True)


def fitted_mask(fitted: Any, model: BaseEstimator, X: Inputs, n: int) -> np.ndarray:
    """Return the mask of the samples that a model was fitted to, by default all; raise if they are others."""
    mask = np.ones(n, dtype=bool) if fitted is None else np.asarray(fitted, dtype=bool)
    if mask.shape != (n,):
        raise ValueError(f"fitted must be a mask of {n} samples. Got shape {mask.shape}.")
    if not are_training_inputs(model, X, mask):
        raise ValueError(
            "X must hold the samples that the model was fitted to, in their order. Mark these by fitted= where there "
            "are others too, and use of_new of the report for new ones."
        )
    return mask


def residuals_of(
    model: BaseEstimator,
    X: Inputs,
    y: Outputs,
    cv: int | None,
    fitted: np.ndarray,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Residuals:
    """Return held-out residuals of the training samples of a model, and plain residuals of other samples.

    Samples of one group (labels as numbers) are held out together. Samples of weight zero are others.
    """
    known, counts = np.flatnonzero(fitted), fitted if weights is None else fitted & (weights > 0)
    if counts.all():
        return held_out_residuals(model, X, y, cv, groups, weights)
    y, inside, outside = on_one_grid(y), np.flatnonzero(counts), np.flatnonzero(~counts)
    labels, parts = (None if values is None else values[inside] for values in (groups, weights))
    held = held_out_residuals(model, inputs_for(model, X, inside, inside), take(y, inside), cv, labels, parts)
    others = Residuals.of(model, inputs_for(model, X, outside, known), take(y, outside))
    held = held.on(others.grid)
    values = np.empty((len(counts), held.values.shape[1]))
    values[inside], values[outside] = held.values, others.values
    return replace(held, values=values)


def held_out_residuals(
    model: BaseEstimator,
    X: Inputs,
    y: Outputs,
    cv: int | None,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Residuals:
    """Return the held-out residuals of samples; ``None`` means leave-one-out where that needs no solve.

    Folds consist of whole groups (labels as numbers), and leave-one-out is that of one group. ``weights`` (n,) are
    those of the fit.

    For the kernel machines of this library, all folds share one factorisation of the Gram matrix: the square loss needs
    no solve at all, other losses are solved without each fold, all folds together. The centre and the scale of the
    outputs, the bandwidth and lam stay those of the whole sample. Other regressors, and searches whose kernel was
    learned from the outputs, are cloned and fitted without each fold.
    """
    is_fixed = not sees_outputs(model)
    machine = best_of(model) if is_fixed else model
    if is_fixed and is_machine(machine) and machine.approximation_ is None and length(X) <= MOST_SAMPLES:
        return _on_one_factorisation(machine, X, y, cv, groups, weights)
    n, y = length(X), on_one_grid(y)
    trainer = Trainer(machine, X, y, weights, groups=groups)
    folds = whole_folds(trainer.ranks, _FOLDS if cv is None else cv, groups)
    return trainer.fit_folds(np.arange(n), folds).residuals


def _on_one_factorisation(
    machine: BaseEstimator,
    X: Inputs,
    y: Outputs,
    cv: int | None,
    groups: np.ndarray | None,
    weights: np.ndarray | None,
) -> Residuals:
    training_set, spec = training_set_of(machine, X, y, weights), machine.model_.spec
    n, sample = training_set.n_samples, training_set.sample
    count = n if cv is None and isinstance(spec.loss, Square) else _FOLDS if cv is None else cv
    folds = [outside for _, outside in whole_folds(sample.contents(), count, sample.kept(groups))]
    (found,) = held_out(training_set.problem(spec.loss, spec.lam), [spec.loss], [spec.lam], folds, spec.tol)
    targets = training_set.targets
    residuals = Residuals.decoded(training_set, targets.unscaled(as_like(found.predictions, targets.rows)))
    return residuals if sample.index is None else residuals.among(sample.index, sample.n_given)
