"""What a fitted model claims, gathered from its public methods: coordinates of outputs, of predictions, and duals."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fenchel.kernels import FunctionalGaussian, Gaussian, Laplacian, as_scalar_kernel


@dataclass
class Claim:
    """The numbers of a certificate, for the samples with a positive weight; None where a model does not tell them."""

    targets: np.ndarray  # (n, p), outputs in orthonormal coordinates
    predictions: np.ndarray  # (n, p), those of ``predict``
    duals: np.ndarray  # (n, p)
    roots: np.ndarray  # (n, p), square roots of quadrature weights
    weights: np.ndarray  # (n,), of the samples
    lam: float
    loss: object
    spread: np.ndarray  # (n, p), size of the numbers that a residual is the difference of
    gram: np.ndarray | None = None  # (n, n), of the inputs, by the kernel's public call
    operator: np.ndarray | None = None  # (p, p), kernel of the outputs' points; None is the identity
    is_exact: bool = True  # whether the Gram matrix is that of the model, not that which is approximated
    rounding: float | np.ndarray = 0.0  # (n, p), of predictions at points
    products: np.ndarray | None = None  # (n, n), of the outputs, by the output kernel's public call
    origin: np.ndarray | None = None  # (n, p), size of the numbers that a target is the difference of; None: its own

    @property
    def residuals(self):
        return np.where(self.roots > 0, self.targets - self.predictions, 0.0)

    @property
    def has_expansion(self):
        return self.gram is not None and bool(np.all(np.isfinite(self.gram)))

    def expansion(self):
        """Return K a / (lam n) of the exact kernel, and the size of its terms."""
        operator = np.eye(self.targets.shape[1]) if self.operator is None else self.operator
        weighted, factor = self.roots * self.duals * self.weights[:, None], self.lam * self.weights.sum()
        return tuple(
            self.roots * (wrap(self.gram) @ wrap(weighted) @ wrap(operator)) / factor for wrap in (np.asarray, np.abs)
        )


def numbers(array):
    """Return data as float64, whatever the container."""
    if isinstance(array, np.ma.MaskedArray):
        return array.astype(np.float64).filled(np.nan)
    array = array.toarray() if sparse.issparse(array) else np.asarray(array)
    return array.astype(np.float64)


def sample_weights(weights, X, n):
    """Return weights in units of a power of four, the largest in [1, 4); zeros for those whose products underflow."""
    if weights is None:
        return np.ones(n)
    weights = np.broadcast_to(numbers(weights), (n,))
    weights = weights / 2.0 ** (2 * ((math.frexp(weights.max())[1] - 1) // 2))
    tiny = np.finfo(np.float32 if str(getattr(X, "dtype", "")) == "float32" else np.float64).tiny
    return np.where(weights < np.sqrt(tiny), 0.0, weights)


def claim(model, X, y, sample_weight):
    """Return the claim of a fitted model, ``None`` where its public methods do not tell the coordinates."""
    n = (X.shape[0] if hasattr(X, "shape") else len(X)) if X is not None else 0
    weights = sample_weights(sample_weight, X, n)
    name = type(model).__name__.removesuffix("CV")
    gather = {
        "OperatorKernelRegressor": _vectors,
        "FunctionalRegressor": _curves,
        "StructuredPredictor": _features,
        "QuantileFunctionRegressor": _quantiles,
        "CostSensitiveClassifier": _costs,
        "LossTrickPredictor": _weights_of_outputs,
        "KernelAutoencoder": _codes,
    }[name]
    found = gather(model, X, y, weights)
    if found is None:
        return None
    found.is_exact = getattr(model, "approximation", None) is None
    has_others = not np.all(found.weights > 0)  # with other rows BLAS adds in another order
    found = _cut(found, found.weights > 0)
    if str(getattr(X, "dtype", "")) == "float32" and _is_far_from_zero(X):
        found.gram = found.gram if found.is_exact else None
        found.is_exact = False  # distances in float32 hold no digit of those in float64
    if name in ("FunctionalRegressor", "QuantileFunctionRegressor", "CostSensitiveClassifier") or has_others:
        found.rounding = _rounding(found, model)
    return found


def _is_far_from_zero(X):
    X = numbers(X)
    return np.max(np.abs(X), initial=0.0) > 1e3 * np.max(np.abs(X - X.mean(axis=0)), initial=0.0)


def _rounding(found, model):
    """Return what round-off may change in K a / (lam n), zero where the kernel is not known."""
    if found.gram is None:
        return 0.0
    eps = float(np.finfo(np.asarray(model.dual_coef_).dtype).eps)
    return eps * len(found.duals) * found.expansion()[1]


def _cut(found, kept):
    found.origin = np.abs(found.targets) if found.origin is None else found.origin
    for name in ("targets", "predictions", "duals", "roots", "spread", "origin"):
        setattr(found, name, getattr(found, name)[kept])
    found.weights = found.weights[kept]
    return found


def _gram(model, X, weights, constant=0.0):
    """Return the kernel matrix of the samples with a positive weight; ``None`` of an approximation or a search."""
    if not hasattr(model, "lam") or sparse.issparse(X):
        return None
    kernel, kept = model.kernel, weights > 0
    dense = numbers(X)[kept]
    if kernel is None:
        kernel = FunctionalGaussian("median")
    if (
        isinstance(kernel, str)
        and kernel == "auto"
        and type(model).__name__ in ("FunctionalRegressor", "LossTrickPredictor")
    ):
        return None  # found by a search, or of curves
    if isinstance(kernel, str) and kernel == "auto" and str(getattr(X, "dtype", "")) == "float32":
        return None  # a column that is constant in float32 need not be so in float64
    kernel = as_scalar_kernel(kernel).resolve(dense, None if np.all(weights == 1) else weights[kept])
    return np.asarray(kernel(dense), dtype=np.float64) + constant


def _lam(model):
    return float(getattr(model, "best_lam_", getattr(model, "lam", None)))


def _vectors(model, X, y, weights):
    Y, H, A = (
        part[:, None] if part.ndim == 1 else part for part in map(numbers, (y, model.predict(X), model.dual_coef_))
    )
    origin, size = np.abs(Y), np.abs(H)
    if model.center_ is not None:
        origin, size = (origin + np.abs(model.center_)) / model.scale_, size / model.scale_
        Y, H = (Y - model.center_) / model.scale_, (H - model.center_) / model.scale_
    seen = ~np.isnan(Y)
    weights = np.where(seen.any(axis=1), weights, 0.0)  # samples without any output are left out
    operator, gram = None, _gram(model, X, weights)
    if isinstance(model.operator, str) and model.operator == "covariance":
        s = weights / weights.sum()
        operator = (np.nan_to_num(Y) * s[:, None]).T @ np.nan_to_num(Y)
        gram = gram if seen.all() else None  # the covariance of pairs that were observed together is not told
    elif model.operator is not None:
        operator = numbers(model.operator.matrix)
    rows = (np.nan_to_num(Y), np.where(seen, H, 0.0), A, seen.astype(np.float64))
    spread = np.nan_to_num(origin) + size
    return Claim(*rows, weights, _lam(model), model.loss_, spread, gram, operator, origin=np.nan_to_num(origin))


def _curves(model, X, y, weights):
    if not model.representation_.has_points:
        return None  # coordinates of a basis
    grid, Y = _on_grid(y)
    H, A = numbers(model.predict(X)), numbers(model.dual_coef_)
    assert np.array_equal(model.grid_, grid)
    w = _quadrature(model.representation_, grid)
    origin, size = np.abs(np.nan_to_num(Y)), np.abs(H)
    if model.center_ is not None:
        center = np.asarray(model.center_(grid)).reshape(1, -1)
        origin, Y, H = origin + np.abs(center), Y - center, H - center
    if model.scale_ is not None:
        origin, size, Y, H = (part / model.scale_ for part in (origin, size, Y, H))
    seen = ~np.isnan(Y)
    row = w.sum() / np.maximum((seen * w).sum(axis=1, keepdims=True), 1e-300)
    roots = np.sqrt(seen * w * row)
    length = float(grid[-1] - grid[0]) if len(grid) > 1 else 1.0
    kernel = Laplacian(10 / length) if model.output_kernel is None else model.output_kernel
    gram, operator = _gram(model, X, weights), kernel(grid[:, None])
    rows = (np.nan_to_num(Y) * roots, H * roots, A, roots)
    spread = (origin + size) * roots
    return Claim(*rows, weights, _lam(model), model.loss_, spread, gram, operator, origin=origin * roots)


def _on_grid(y):
    """Return the points of curves, the union of their own if they have some, and the values there, NaN elsewhere."""
    if not isinstance(y, list) or not isinstance(y[0], tuple):
        Y = numbers(y)
        return np.linspace(0, 1, Y.shape[1]), Y
    grid = np.unique(np.concatenate([points for points, _ in y]))
    Y = np.full((len(y), len(grid)), np.nan)
    for row, (points, values) in zip(Y, y, strict=True):
        row[np.searchsorted(grid, points)] = values
    return grid, Y


def _quadrature(representation, grid):
    """Return the weights of the points of a grid."""
    w, kind = _trapezoid(grid), representation.get_params().get("quadrature", "trapezoid")
    each = np.full(len(w), 1 / len(w))
    return {"trapezoid": w, "mean": w / w.sum(), "average": each, "monte_carlo": w.sum() * each}[kind]


def _trapezoid(grid):
    if len(grid) == 1:
        return np.ones(1)
    steps = np.diff(grid)
    return np.concatenate([steps[:1], steps[1:] + steps[:-1], steps[-1:]]) / 2


def _features(model, X, y, weights):
    if model.center not in (False, True) or getattr(model, "output_approximation", None) is not None:
        return None
    representation, mean = model.representation_, numbers(model.representation_.mean_)
    targets = np.zeros((len(weights), mean.shape[1]))
    targets[weights > 0] = numbers(representation.targets_)
    H, A = numbers(model.embed(X)), numbers(model.dual_coef_)
    origin = np.abs(targets) + np.abs(mean)
    rows, gram = (targets, H - mean, A, np.ones_like(targets)), _gram(model, X, weights)
    found = Claim(*rows, weights, _lam(model), model.loss_, origin + np.abs(H), gram, origin=origin)
    found.products = _output_products(model, _as_fitted(X, y), weights)
    return found


def _as_fitted(X, y):
    """Return outputs in the dtype of the fit, which is that of X: float32 rounds those far from zero."""
    y = numbers(y)
    return y.astype(np.float32).astype(np.float64) if str(getattr(X, "dtype", "")) == "float32" else y


def _output_products(model, y, weights):
    """Return the kernel matrix of the outputs, centred if the model is; ``None`` of a search."""
    if not hasattr(model, "lam"):
        return None
    outputs, s = numbers(y).reshape(len(weights), -1)[weights > 0], weights[weights > 0] / weights.sum()
    kernel = as_scalar_kernel(model.output_kernel).resolve(
        outputs, None if np.all(weights == 1) else weights[weights > 0]
    )
    K = numbers(kernel(outputs))
    return K - (s @ K)[None, :] - (K @ s)[:, None] + s @ K @ s if model.center else K


def _quantiles(model, X, y, weights):
    if model.pilot_ is not None or model.non_crossing is not False:
        return None
    levels, w = model.levels_, model.level_weights_
    Y = numbers(y).reshape(len(weights), 1, -1)
    H = numbers(model.predict(X, levels)).reshape(len(weights), len(levels), -1)
    marginal = np.asarray(model.marginal_(levels))
    roots = np.broadcast_to(np.sqrt(w)[:, None], marginal.shape).reshape(1, -1) * np.ones((len(weights), 1))
    parts = [(part - marginal).reshape(len(weights), -1) * roots for part in (np.broadcast_to(Y, H.shape), H)]
    spread = (np.abs(Y) + np.abs(H) + np.abs(marginal)).reshape(len(weights), -1) * roots
    gram, operator = _of_levels(model, X, weights, Laplacian(2.0), Y.shape[2])
    return Claim(*parts, numbers(model.dual_coef_), roots, weights, _lam(model), model.loss_, spread, gram, operator)


def _of_levels(model, X, weights, kernel, n_outputs=1):
    """Return the Gram matrix of the inputs, with the intercept, and the operator of the levels."""
    kernel = kernel if model.level_kernel is None else model.level_kernel
    return _gram(model, X, weights, model.intercept), np.kron(kernel(model.levels_[:, None]), np.eye(n_outputs))


def _costs(model, X, y, weights):
    root = np.sqrt(model.level_weights_)
    signs = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)[:, None]
    H, roots = numbers(model.decision_function(X, model.levels_)), root * np.ones_like(signs)
    spread, A = (1 + np.abs(H)) * root, numbers(model.dual_coef_)
    gram, operator = _of_levels(model, X, weights, Gaussian(10.0))
    return Claim(signs * root, H * root, A, roots, weights, _lam(model), model.loss_, spread, gram, operator)


def _weights_of_outputs(model, X, y, weights):
    if type(model.loss_).__name__ != "Square":
        return None
    targets, H = np.eye(len(weights)), numbers(model.weights(X))
    spread, gram = targets + np.abs(H), _gram(model, X, weights)
    A = numbers(model.dual_coef_)
    return Claim(targets, H, A, np.ones_like(H), weights, float(model.lam_), model.loss_, spread, gram)


def _codes(model, X, y, weights):
    targets, A = numbers(model.representation_.targets_), numbers(model.dual_coef_)
    gram = numbers(model.hidden_kernel_(model.codes_))
    H = gram @ A / (model.lam * len(targets))
    spread = len(targets) * (np.abs(targets) + np.abs(gram) @ np.abs(A) / (model.lam * len(targets)))
    return Claim(targets, H, A, np.ones_like(H), weights, model.lam, clean_loss(model), spread)


def clean_loss(model):
    """Return the loss of a model that has no ``loss_``."""
    from fenchel.losses import Huber, Square

    return {"square": Square(), "huber": Huber()}.get(model.loss) if isinstance(model.loss, str) else model.loss
