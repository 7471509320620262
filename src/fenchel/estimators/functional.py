"""Regression whose outputs are curves."""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel import representations as representation_room
from fenchel._array import Array, as_like, host, is_host, is_numpy, namespace
from fenchel._check import Options, check_array, check_memory, check_parameter, outputs_like
from fenchel.datasets.functional import (
    Curves,
    as_curves,
    function_names,
    input_curves,
    is_fdata,
    is_pairs,
    to_fdata,
)
from fenchel.estimators.curve_center import CurveCenter, channel_scales
from fenchel.estimators.curve_scores import curve_score
from fenchel.estimators.fitted_dual import FittedDual, KernelExpansion, expose, fit_refined
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.prediction_gradient import expansion_gradient
from fenchel.estimators.scale_warnings import warn_of_domain
from fenchel.estimators.training_set import TrainingSet, encode
from fenchel.estimators.validation import (
    DualSettings,
    all_or_nothing,
    part_of,
    sample_counts,
    validated,
)
from fenchel.kernels import (
    FunctionalGaussian,
    IntegralOperator,
    Laplacian,
    OperatorKernel,
    ScalarKernel,
    Separable,
    Standardized,
    as_scalar_kernel,
)
from fenchel.losses import Loss
from fenchel.quadrature import trapezoid_weights
from fenchel.representations import CurveRepresentation

__all__ = ["FunctionalRegressor"]


@dataclass(frozen=True)
class _Encoded:
    training_set: TrainingSet
    operator: IntegralOperator
    center: CurveCenter | None
    scale: np.ndarray | None  # one for each channel of the outputs
    names: dict[str, Any]  # names of the outputs, if they came as a scikit-fda object
    given: Curves  # all given curves

    @property
    def units(self) -> Any:
        """Units of the coordinates: those of the channels where coordinates are points, else one for all."""
        if self.scale is None:
            return 1.0
        n_coordinates, representation = self.training_set.targets.shape[1], self.training_set.representation
        if representation.has_points and n_coordinates % len(self.scale) == 0:
            return np.tile(self.scale, n_coordinates // len(self.scale))
        return float(np.sqrt(np.mean(self.scale**2)))


class FunctionalRegressor(NamedPartsMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Function-valued regression on any inputs with a kernel, with a convex loss and a certified duality gap.

    .. math:: \min_h \; \frac1n \sum_i \ell(y_i - h(x_i)) + \frac\lambda2 \|h\|^2, \qquad
        \hat h(x)(\theta) = \frac{1}{\lambda n} \sum_i k(x, x_i) \int g(\theta, \theta') a_i(\theta') \, d\theta',

    with an input kernel :math:`k`, an output kernel :math:`g` on the domain of the curves, and losses of the
    :math:`L^p` norms of curves.

    Parameters
    ----------
    kernel : kernel, str, callable or None, default=None
        Kernel of the inputs; ``None`` means ``FunctionalGaussian(gamma="median")``, for curves and for vectors, and
        ``"auto"`` the same after inputs have been standardised: each column of (n, d), each channel of (n, m, c).
    output_kernel : kernel, str, callable, list of these, or None, default=None
        Kernel of points of the domain; a list has one for each output channel. ``None`` means a Laplacian kernel whose
        length is a tenth of the domain; a representation that has its own eigenvalues uses those instead.
    loss : Loss or str, default="square"
        ``"square"``, ``"huber"``, ``"epsilon_ridge"``, ``"epsilon_svr"``, ... or an instance such as
        ``Huber(0.5, p=1)``. Losses with p other than 2 need point values: ``representation="spline"``.
    lam : float, default=1e-3
        Weight of the squared norm.
    representation : {"spline", "eigen", "fourier"} or CurveRepresentation, default="spline"
        How curves become coordinates. Only ``"spline"`` accepts curves with missing values.
    n_components : int, float or None, default=None
        Number of components (or explained fraction) of a representation given by name; ``None`` means its default.
    center : bool or "median", default=True
        Whether to subtract the mean curve (or the pointwise median) from the outputs; it is added back to predictions.
        If values are missing, a smooth estimate from all curves is used.
    channels : array of shape (c, c) or None, default=None
        Positive semidefinite matrix that couples the output channels; ``None`` leaves them uncoupled.
    solver : Solver or str, default="auto"
        ``"auto"`` or a solver's name or instance.
    tol : float, default=1e-6
        The relative duality gap at which the solver stops.
    max_iter : int or None, default=None
        Maximum number of iterations; ``None`` means the solver's default.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` replaces the kernel of the inputs by one with 500 features, without forming an n × n matrix.
    scale : bool or "robust", default=False
        Whether to divide each channel of the outputs by its standard deviation over all points; predictions are
        multiplied by it. ``"robust"`` uses a quantile of the absolute values instead.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.

    Attributes
    ----------
    dual_coef_ : array of shape (n, p)
        Dual variables in the coordinates of the representation.
    outlier_score_ : array of shape (n,)
        Dual norm of each curve divided by its bound, in [0, 1]; 1 is a clipped curve. Only for losses with bounded
        duals.
    point_outlier_score_ : array of the shape of y
        The same for each point, for losses with p = 1; NaN at missing values.
    representation_error_ : float
        Fraction of the squared norm of the training curves that is lost by the representation.
    grid_ : array of shape (m,)
        Points of the training curves.
    center_ : callable or None
        The centre, a function that maps points to values of shape (points, channels).
    scale_ : array of shape (channels,) or None
        The scale of each channel of the outputs.
    primal_objective_, dual_objective_, duality_gap_, n_iter_, status_, support_, sparsity_, solver_info_, history_
        As for ``OperatorKernelRegressor``.

    Notes
    -----
    A curve with missing values has dual variables only where it is observed, and its integrals are averages over those
    points: nothing is interpolated. See ``Spline``.

    References
    ----------
    [Lambert2022]_; [Laforgue2020]_, section 3.2.

    Examples
    --------
    >>> from fenchel import FunctionalRegressor
    >>> from fenchel.datasets import make_functional
    >>> from fenchel.losses import Huber
    >>> data = make_functional(40, 30, random_state=0)
    >>> model = FunctionalRegressor(loss=Huber(0.1, p=1), lam=1e-4).fit(data.X, data.Y)
    >>> bool(model.duality_gap_ <= 1e-6), model.predict(data.X[:2], grid=[0.25, 0.75]).shape
    (True, (2, 2))
    """

    _expansion: KernelExpansion
    representation_: CurveRepresentation
    _input_grid: np.ndarray | None  # None unless inputs are scikit-fda objects
    _output_names: dict[str, Any]  # empty unless outputs are scikit-fda objects

    def __init__(
        self,
        kernel: Any = None,
        output_kernel: Any = None,
        loss: Any = "square",
        lam: float = 1e-3,
        representation: Any = "spline",
        n_components: float | None = None,
        center: bool | str = True,
        channels: Array | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        approximation: Any = None,
        scale: bool | str = False,
        certificate: str = "approximate",
    ) -> None:
        self.kernel = kernel
        self.output_kernel = output_kernel
        self.loss = loss
        self.lam = lam
        self.representation = representation
        self.n_components = n_components
        self.center = center
        self.channels = channels
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.approximation = approximation
        self.scale = scale
        self.certificate = certificate

    @all_or_nothing
    def fit(self, X: Any, y: Any, grid: Array | None = None, sample_weight: Array | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, DataFrame or scikit-fda object
            Vectors (n, d), curves (n, m), curves with channels (n, m, c), or a Gram matrix with ``"precomputed"``.
        y : array, list of pairs, DataFrame or scikit-fda object
            Curves (n, m), or with channels (n, m, c); NaN marks missing values. A list of pairs ``(points, values)``
            gives each curve its own points.
        grid : array of shape (m,) or None, default=None
            Points at which the output curves are known; ``None`` takes them from the data, or equally spaced points in
            [0, 1].
        sample_weight : array of shape (n,) or None, default=None
            Sample weights; a sample of weight 2 counts twice.

        Returns
        -------
        self : FunctionalRegressor
            The fitted model.
        """
        settings = self._settings()
        encoding = partial(self._encode, X, y, sample_weight, settings, grid=grid)
        return self._expose(*fit_refined(encoding, settings))

    def predict(self, X: Any, grid: Array | None = None, derivative: bool = False) -> Any:
        """Predict curves at any points.

        Parameters
        ----------
        X : array, DataFrame or scikit-fda object
            Inputs in the form of ``fit``.
        grid : array of shape (m,) or None, default=None
            Increasing points; ``None`` means the grid of the training curves.
        derivative : bool, default=False
            Whether to return the first derivative of the prediction; the output kernel must be smooth.

        Returns
        -------
        y : array of shape (n, m) or (n, m, c), or FDataGrid
            Predicted curves; an FDataGrid if the model was fitted to scikit-fda outputs.
        """
        check_parameter("predict", "derivative", derivative, Options((False, True)))
        check_is_fitted(self)
        rows, X = function_names(X, "sample_names"), self._checked_inputs(X, reset=False)[0]
        points = self.grid_ if grid is None else as_points(grid)
        warn_of_domain(points, self.grid_)
        matrix = self.representation_.evaluation(self._operator, points, derivative)
        values = self._expansion.evaluate(X, matrix)
        if self.scale_ is not None:  # the channels of a point are adjacent
            values = values * as_like(np.tile(self.scale_, len(points)), values)
        if self.center_ is not None:
            values = values + as_like(self.center_(points, derivative).reshape(1, -1), values)
        shaped = self.representation_.shaped(namespace(X).astype(values, X.dtype, copy=False))
        return to_fdata(Curves(points, shaped), **self._output_names, **rows) if self._output_names else shaped

    def gradient(self, X: Any, grid: Array | None = None, almost_everywhere: bool = False) -> Array:
        """Return the derivatives of the predictions with respect to the columns of X.

        Parameters
        ----------
        X : array of shape (m, d)
            Input vectors.
        grid : array of shape (points,) or None, default=None
            Increasing points of the curves; ``None`` means the grid of the training curves.
        almost_everywhere : bool, default=False
            Whether to accept ``Laplacian`` and ``Matern(nu=0.5)``, whose derivative jumps at training inputs; there,
            the mean of both sides is returned. By default such a kernel raises an error, as does any other kernel
            without a derivative.

        Returns
        -------
        gradient : array of shape (m, points, d) or (m, points, c, d)
            The derivatives, in units of the outputs per unit of the inputs.
        """
        check_is_fitted(self)
        X = self._checked_inputs(X, reset=False)[0]
        points = self.grid_ if grid is None else as_points(grid)
        warn_of_domain(points, self.grid_)
        matrix = self.representation_.evaluation(self._operator, points)
        found = expansion_gradient(self._expansion, X, matrix, almost_everywhere)
        if self.scale_ is not None:  # the channels of a point are adjacent
            found = found * as_like(np.tile(self.scale_, len(points)), found)[None, :, None]
        shape = (*self.representation_.shaped(found[:, :, 0]).shape, X.shape[1])
        return namespace(X).reshape(namespace(X).astype(found, X.dtype, copy=False), shape)

    def score(self, X: Any, y: Any, sample_weight: Array | None = None, grid: Array | None = None) -> float:
        """Return the fraction of the variance of the curves that the predictions explain.

        Parameters
        ----------
        X, y
            A sample, as for ``fit``; missing values are ignored.
        sample_weight : array of shape (n,) or None, default=None
            Weight of each curve.
        grid
            Points of the curves in an array; by default those of the training curves.

        Returns
        -------
        score : float
            One minus the ratio of integrated squared errors to integrated squared distances from the mean curve.
        """
        check_is_fitted(self)
        return curve_score(self, X, y, sample_weight, grid)

    def _settings(self) -> DualSettings:
        return DualSettings.of(self, self.loss)

    def _set_loss_and_lam(self, loss: Loss, lam: float) -> Self:
        return self.set_params(loss=clone(loss), lam=lam)

    def _encode(
        self,
        X: Any,
        y: Any,
        sample_weight: Array | None,
        settings: DualSettings,
        double: bool = False,
        grid: Array | None = None,
    ) -> _Encoded:
        """Return checked curves in coordinates."""
        check_parameter(type(self).__name__, "center", self.center, Options((True, False, "median")))
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X, input_grid = self._checked_inputs(X, reset=True)
        curves = as_curves(y, grid, "y")
        if len(curves) != X.shape[0]:
            raise ValueError(f"X and y must have the same number of samples. Got {X.shape[0]} and {len(curves)}.")
        xp = namespace(X)
        X = xp.astype(X, xp.float64) if double else X
        curves = given = Curves(curves.grid, outputs_like(curves.values, X, "y"))
        _check_operator_fits(curves)
        representation = self._curve_representation()
        center = self._center_of(curves, sample_weight)
        if center is not None:
            shape = curves.values.shape[1:]
            curves = Curves(curves.grid, curves.values - as_like(center.values.reshape((1, *shape)), curves.values))
        scale = self._scale_of(curves, sample_weight)
        if scale is not None:
            curves = Curves(curves.grid, curves.values / as_like(scale, curves.values))
        operator = self._output_operator(curves.grid, representation)
        kernel = Separable(self._input_kernel(input_grid), operator)
        training_set = encode(X, curves, kernel, representation, settings, sample_weight, operator)
        names = function_names(y, "argument_names", "coordinate_names")
        return _Encoded(training_set, operator, center, scale, names, given)

    def _expose(self, encoded: _Encoded, fitted: FittedDual) -> Self:
        """Set the fitted attributes."""
        expose(self, fitted)
        self._operator = encoded.operator.resolve(self.representation_.grid_)
        self._output_names = encoded.names
        self.center_, self.scale_ = encoded.center, encoded.scale
        self.grid_ = self.representation_.grid_
        self.representation_error_ = self.representation_.representation_error_
        scores = fitted.duals.point_outlier_score
        if scores is not None:
            xp, scores = namespace(scores), self.representation_.shaped(scores)
            self.point_outlier_score_ = xp.where(encoded.given.observed, scores, xp.zeros_like(scores) + float("nan"))
        return self

    def _checked_inputs(self, X: Any, reset: bool) -> tuple[Array, np.ndarray | None]:
        """Return inputs as an array of floats, (n, d) or (n, m, c), and their grid if they have one."""
        grid = None
        if is_fdata(X):
            curves = input_curves(X, None if reset else self._input_grid)
            X, grid = curves.values, curves.grid
        elif is_pairs(X) and all(isinstance(pair, tuple) for pair in X):  # lists may be nested arrays
            raise ValueError(
                "Input curves must be observed at the same points: an array (n, m) or (n, m, c). Got pairs (points, "
                "values), which only outputs may be. Interpolate or smooth them to common points first."
            )
        if is_host(X):
            X = validated(self, X, reset=reset, allow_nd=True)
        else:
            X = check_array(X, "X", ndim=(2, 3))
        if X.ndim not in (2, 3):
            raise ValueError(f"X must have shape (n, d) or (n, m, c). Got {tuple(X.shape)} instead.")
        if reset and not is_host(X):
            self.n_features_in_ = int(X.shape[1])
            self.__dict__.pop("feature_names_in_", None)
        if not reset and is_host(X) != is_host(self.X_fit_):
            raise ValueError(
                f"X must be an array of the library of the training data, {namespace(self.X_fit_).__name__}. "
                f"Got {type(X).__module__.split('.')[0]}."
            )
        if reset:
            self._input_shape, self._input_grid = tuple(X.shape[1:]), grid
        elif tuple(X.shape[1:]) != self._input_shape:
            raise ValueError(
                f"X has rows of shape {tuple(X.shape[1:])}, but the model was fitted with {self._input_shape}."
            )
        return X, grid

    def _input_kernel(self, grid: np.ndarray | None) -> ScalarKernel:
        """Return the kernel of the inputs, on the grid of the inputs if they are curves with a grid."""
        if isinstance(self.kernel, OperatorKernel):
            raise TypeError(
                f"The 'kernel' parameter must be a scalar kernel of the inputs; the output operator comes from "
                f"'output_kernel'. Got {self.kernel!r}."
            )
        kernel = FunctionalGaussian("median") if self.kernel is None else as_scalar_kernel(self.kernel)
        if isinstance(self.kernel, str) and self.kernel == "auto":
            kernel = Standardized(FunctionalGaussian("median"), by="auto" if grid is None else "channel")
        kernel = clone(kernel.validate())
        if hasattr(self, "feature_names_in_"):
            kernel = kernel.named(self.feature_names_in_)
        if grid is not None:  # kernels of curves without a grid get that of the inputs
            open_ones = [name for name, value in kernel.get_params().items() if value is None and name.endswith("grid")]
            kernel.set_params(**dict.fromkeys(open_ones, grid))
        return kernel

    def _output_operator(self, grid: np.ndarray, representation: CurveRepresentation) -> IntegralOperator:
        kernel = self.output_kernel
        if kernel is None and not representation.has_eigenvalues:
            length = float(grid[-1] - grid[0]) if len(grid) > 1 else 1.0
            kernel = Laplacian(10 / length)
        return IntegralOperator(kernel, self.channels).validate()

    def _curve_representation(self) -> CurveRepresentation:
        part = part_of(self.representation, representation_room, "representation", CurveRepresentation)
        if self.n_components is not None and "n_components" in part.get_params():
            part.set_params(n_components=self.n_components)
        elif self.n_components is not None:
            raise ValueError(
                f"n_components has no meaning for {type(part).__name__}. Leave it at None, or use "
                "representation='eigen' or 'fourier'."
            )
        checked: CurveRepresentation = part.validate()
        return checked

    def _center_of(self, curves: Curves, sample_weight: Array | None) -> CurveCenter | None:
        if self.center is False:
            return None
        counts = sample_counts(sample_weight, curves.values)
        values = host(curves.values).astype(np.float64).reshape(len(curves), len(curves.grid), -1)
        kind = "median" if self.center == "median" else "mean"
        return CurveCenter.of(curves, values[counts > 0], counts[counts > 0], kind)

    def _scale_of(self, curves: Curves, sample_weight: Array | None) -> np.ndarray | None:
        check_parameter(type(self).__name__, "scale", self.scale, Options((False, True, "robust")))
        if not self.scale:
            return None
        counts = sample_counts(sample_weight, curves.values)
        values = host(curves.values).astype(np.float64).reshape(len(curves), len(curves.grid), -1)
        return channel_scales(values[counts > 0], counts[counts > 0], self.scale == "robust")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.input_tags.three_d_array = True
        with suppress(TypeError, ValueError):  # fit raises the error, with its message
            tags.input_tags.pairwise = self.kernel is not None and as_scalar_kernel(self.kernel).tags.is_pairwise
        return tags


def _check_operator_fits(curves: Curves) -> None:
    """Raise if the output operator on the points of the curves does not fit in memory."""
    width = curves.values.shape[1] * (1 if curves.values.ndim == 2 else curves.values.shape[2])
    what = f"The output operator on {len(curves.grid)} points"
    check_memory(24 * width**2, what, "Use fewer points, or round them")


def as_points(grid: Any) -> np.ndarray:
    """Return points as a NumPy array; raise unless they are finite and increasing."""
    points = np.asarray(host(grid) if not is_host(grid) and not is_numpy(grid) else grid, dtype=np.float64)
    trapezoid_weights(points)
    return points
