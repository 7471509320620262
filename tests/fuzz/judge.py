"""The verdict on a case: certified, not converged and said so, refused by a clear error; anything else is a defect.

The certificate is computed anew, from what ``predict`` gives and from ``dual_coef_``, with losses and conjugates
written out in ``plain_losses``. It must agree with ``duality_gap_`` within

    0.2 tol + 1e-6 |gap| + what round-off in the residuals and in the terms of the objective can change,

all relative to the primal value; 1e-2 |gap| where it is said that the fit has not converged. 0.2: solvers compute
predictions in another order than ``predict``, and their difference may be 0.1 tol. Models of curves and of levels
predict at points, where they are certified in coordinates: for them round-off includes that of K a / (lam n).
"""

import re
import time
import traceback
import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from fenchel.exceptions import DataWarning, FenchelError, ScaleWarning, SlowFitWarning
from tests.fuzz.claims import claim
from tests.fuzz.data import dense
from tests.fuzz.plain_losses import Plain

CERTIFIED, SAID_SO, REFUSED, DEFECT = "certified", "not converged and said so", "refused with a clear error", "defect"
MOST_SECONDS = 45.0  # of CPU: 20 000 iterations, the most that a solver takes, at 2 ms
_HARMLESS = (ConvergenceWarning, ScaleWarning, DataWarning, SlowFitWarning, DataConversionWarning)
_ARGUMENT = re.compile(
    r"\b(X|Y|y|array|input|lam|lams|loss|losses|kernel|kernels|solver|sample_weight|tol|max_iter|cv|approximation|"
    r"outputs?|samples?|n_samples|Gram matrix|kappa|epsilon|levels?|classes|class|folds?|scale|representation|label|"
    r"coordinates|Tanimoto|curves?|points?|Complex data)\b|\w+ cannot solve this problem|The '\w+' parameter"
)


@dataclass
class Verdict:
    """How a case ended, and why that is so."""

    kind: str
    reason: str = ""
    seconds: float = 0.0
    is_recomputed: bool = False


def judged(case):
    """Fit, and return the verdict."""
    started = time.process_time()
    before = _copies(case.data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            verdict = _fitted(case, caught)
        except Exception as error:
            verdict = _of_error(case, error)
    verdict.seconds = time.process_time() - started
    wrong = [one for one in caught if not issubclass(one.category, _HARMLESS)]
    if verdict.kind != DEFECT and wrong:
        return Verdict(
            DEFECT, f"{wrong[0].category.__name__}: {wrong[0].message} ({wrong[0].filename}:{wrong[0].lineno})"
        )
    if verdict.kind != DEFECT and verdict.seconds > MOST_SECONDS:
        return Verdict(DEFECT, f"took {verdict.seconds:.1f} s", verdict.seconds)
    if verdict.kind != DEFECT and not all(map(np.array_equal, before, _copies(case.data))):
        return Verdict(DEFECT, "the data were written to")
    return verdict


def _copies(data):
    """Return what must not change, as bytes."""
    arrays = [
        part for part in (data.X, data.y, data.sample_weight) if isinstance(part, np.ndarray) and part.dtype != object
    ]
    return [np.frombuffer(np.ascontiguousarray(part).tobytes(), np.uint8) for part in arrays]


def _fitted(case, caught):
    model, data = case.estimator, case.data
    arguments = (data.X,) if "no y" in data.words else (data.X, data.y)
    weights = {} if data.sample_weight is None else {"sample_weight": data.sample_weight}
    model.fit(*arguments, **weights)
    if data.unreadable:
        return Verdict(DEFECT, f"accepted: {data.unreadable}")
    predicted = _predictions(model, data)
    if predicted is not None and not np.all(np.isfinite(predicted)):
        return Verdict(DEFECT, "predictions are not finite")
    outer, (model, data) = model, _certified(model, data)
    if not hasattr(model, "duality_gap_"):
        return Verdict(DEFECT, "fit returned without a certificate")
    if not np.all(np.isfinite(np.asarray(model.dual_coef_))):
        return Verdict(DEFECT, "dual_coef_ is not finite")
    is_converged = model.status_.startswith("converged")
    gap, tol = model.duality_gap_, model.tol
    if is_converged != bool(abs(gap) <= tol):
        return Verdict(DEFECT, f"status_ is {model.status_!r} with a gap of {gap:.2e}, tol {tol:g}")
    warned = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    if not is_converged and not warned:
        return Verdict(DEFECT, f"gap {gap:.2e} above tol {tol:g} without a ConvergenceWarning")
    if is_converged and warned and model is outer and not hasattr(model, "best_estimator_"):  # these fit many models
        return Verdict(DEFECT, f"gap {gap:.2e} within tol {tol:g} with a ConvergenceWarning")
    if data is None:
        return Verdict(CERTIFIED if is_converged else SAID_SO, model.status_)
    try:
        reason, is_recomputed = _recomputed(model, data)
    except Exception:
        return Verdict(DEFECT, f"the judge failed: {traceback.format_exc()}")
    if reason:
        return Verdict(DEFECT, reason)
    return Verdict(CERTIFIED if is_converged else SAID_SO, model.status_, is_recomputed=is_recomputed)


def _certified(model, data):
    """Return the model of a certificate, and the data to which it was fitted; ``None`` if these are not the given."""
    while not hasattr(model, "duality_gap_"):
        if hasattr(model, "left_out_"):
            kept = np.flatnonzero(~model.left_out_)
            data = replace(data, X=dense(data.X)[kept], y=np.asanyarray(data.y)[kept])  # with its mask
        elif not hasattr(model, "best_estimator_"):
            data = None
        model = model.best_estimator_ if hasattr(model, "best_estimator_") else model.estimator_
    return model, data


def _predictions(model, data):
    """Return what the model predicts for its own inputs, as numbers; ``None`` where it predicts objects."""
    if hasattr(model, "transform"):
        return np.asarray(model.reconstruct(data.X))
    predicted = np.asarray(model.predict(data.X))
    if hasattr(model, "conformalize"):
        band = model.predict_interval(data.X)  # too few samples give infinite bounds
        predicted = np.where(np.asarray(band.lower) <= np.asarray(band.upper), 0.0, np.nan)
    return predicted if predicted.dtype.kind == "f" else None


def _of_error(case, error):
    """Return the verdict on an exception."""
    told = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    is_clear = isinstance(error, ValueError | TypeError | FenchelError) and not isinstance(error, np.linalg.LinAlgError)
    if not is_clear:
        return Verdict(DEFECT, f"uncaught {told}")
    if not _ARGUMENT.search(str(error)):
        return Verdict(DEFECT, f"no argument is named: {told}")
    if not case.may_refuse and not _is_beyond(case, error):
        return Verdict(DEFECT, f"refused without a fault in the data: {told}")
    return Verdict(REFUSED, told)


# Refusals of data without a planted fault: too few samples for what is asked, parts that do not fit together, numbers
# beyond the dtype, and kernels that have conditions on their inputs.
_GROUNDS = (
    r"needs? at least \d+ (training )?samples|among the calibration samples|must leave samples to fit on",
    r"must hold two classes|folds?.*samples|needs a kernel with one output operator|can be learned only for",
    r"cannot solve this problem|has no spectral density|observed at every point|linearly independent on the grid",
    r"must be finite|exceed|overflow|too large|not positive semidefinite|must be positive semidefinite",
    r"X must be non-negative for a Tanimoto kernel|X must be dense here|dense data is required|Got csr_array",
)


def _is_beyond(case, error):
    return any(re.search(ground, str(error)) for ground in _GROUNDS)


def _recomputed(model, data):
    """Return what is wrong with the certificate, an empty string if nothing is, and whether it was recomputed."""
    with np.errstate(all="ignore"):
        found = claim(model, data.X, data.y, data.sample_weight)
        if found is None:
            return "", False
        eps = float(np.finfo(np.float32 if "float32" in _dtypes(data) else np.float64).eps)
        loss = Plain(found.loss, found.targets, found.roots, eps, 8 * eps * found.spread, eps * found.origin)
        if not loss.is_known:
            return "", False
        wrong = _gap_differs(model, found, loss, eps) or _expansion_differs(found, eps) or _outputs_differ(found, eps)
        return wrong, True


def _dtypes(data):
    return {str(getattr(part, "dtype", "")) for part in (data.X, data.y)}


def _gap_differs(model, found, loss, eps):
    """Return how the gap and the objectives differ from those of the claim, or an empty string."""
    s, total = found.weights, found.weights.sum()
    r, a = found.residuals, found.duals
    values, conjugates, products = loss.value(r), loss.conjugate(a), np.sum(a * r, axis=1)
    quadratic = np.sum(s * np.sum(a * found.predictions, axis=1)) / total
    primal = np.sum(s * values) / total + quadratic / 2
    gap = np.sum(s * (values + conjugates - products)) / total
    if getattr(model, "approximation", None) is not None and model.certificate_ != "approximate":
        if not found.has_expansion:
            return ""
        exact, sizes = found.expansion()
        gap += np.sum(s * np.sum(a * (exact - found.predictions), axis=1)) / total / 2
        found.rounding = found.rounding + eps * len(s) * sizes
    at_zero = abs(np.sum(s * loss.value(found.targets)) / total)
    size = max(abs(primal), 1e-10 * at_zero if np.isfinite(at_zero) else 0.0)
    is_converged = abs(model.duality_gap_) <= model.tol
    if not np.isfinite([primal, gap, model.duality_gap_]).all():
        told = f"the objective is not finite (primal {primal:.3e}), duality_gap_ {model.duality_gap_:.2e}"
        return told if is_converged else ""
    round_off = _round_off(found, loss, values, conjugates, eps)
    if size == 0:
        return "" if model.duality_gap_ == 0 else f"gap of a null objective: {model.duality_gap_:.2e}"
    mine, theirs = gap / size, model.duality_gap_
    if round_off > size and not is_converged:  # a primal value of round-off: compare gaps, not their ratios to it
        mine, theirs, size = gap, model.primal_objective_ - model.dual_objective_, 1.0
    allowed = 0.2 * model.tol + (1e-6 if is_converged else 1e-2) * abs(mine) + round_off / size
    if not abs(mine - theirs) <= allowed:
        return f"duality_gap_ {theirs:.6e}, recomputed {mine:.6e}, allowed {allowed:.1e} (primal {primal:.3e})"
    # far from the solution, predictions may be round-off only
    if is_converged and not abs(primal - model.primal_objective_) <= (allowed + 1e-6) * size:
        return f"primal_objective_ {model.primal_objective_:.6e}, recomputed {primal:.6e}, allowed {allowed:.1e}"
    return ""


def _round_off(found, loss, values, conjugates, eps):
    """Return what the gap may change by round-off in the residuals and in its terms."""
    s, total = found.weights, found.weights.sum()
    width = found.targets.shape[1]
    errors = 8 * eps * found.spread + found.rounding
    shifted = found.residuals + np.where(found.residuals < 0, -1.0, 1.0) * errors
    rises = loss.value(shifted) - values
    rises = np.where(np.isfinite(rises), np.abs(rises), 0.0)  # a ball is left
    terms = np.abs(values) + np.abs(conjugates) + np.sum(np.abs(found.duals * found.residuals), axis=1)
    squares = np.sum(np.abs(found.duals) * (np.abs(found.targets) + np.abs(found.predictions)), axis=1)
    changes = rises + np.sum(np.abs(found.duals) * errors, axis=1) + (16 + width) * eps * (terms + squares)
    return float(np.sum(s * changes) / total)


def _outputs_differ(found, eps):
    """Return how the products of the outputs' coordinates differ from their kernel, or an empty string."""
    if found.products is None or not np.all(np.isfinite(found.products)):
        return ""
    # the factor of a Gram matrix leaves out what is below the round-off of its largest entry
    size = np.max(np.sum(found.spread**2, axis=1)) + np.max(np.abs(found.products))
    off = np.max(np.abs(found.targets @ found.targets.T - found.products))
    return (
        "" if off <= 1e3 * len(found.products) * eps * size else f"outputs: products are off by {off:.2e} of {size:.2e}"
    )


def _expansion_differs(found, eps):
    """Return how ``predict`` differs from the kernel expansion of the duals, or an empty string."""
    if not found.is_exact or not found.has_expansion:
        return ""
    expected, sizes = found.expansion()
    # kernels of distances lose digits to |x|^2 + |z|^2 - 2 <x, z>, those of float32 data more
    tiny = 1e3 * float(np.finfo(np.float32 if eps > 1e-10 else np.float64).tiny)
    allowed = 1e4 * eps * (sizes + sizes.max(initial=0.0)) + 64 * eps * found.spread + tiny
    excess = np.abs(expected - found.predictions) - allowed
    if np.any(excess > 0):
        i, j = np.unravel_index(np.argmax(excess), excess.shape)
        given, wanted = found.predictions[i, j], expected[i, j]
        return f"predict gives {given:.6e} where K a / (lam n) is {wanted:.6e}, allowed {allowed[i, j]:.1e}"
    return ""
