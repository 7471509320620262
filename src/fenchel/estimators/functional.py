"""Regression whose outputs are curves."""

from collections.abc import Sequence
from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, Outputs, namespace
from fenchel._check import Options, check_parameter
from fenchel._progress import tracked
from fenchel.approximations import Approximation
from fenchel.data.fdata import function_names
from fenchel.data.frames import in_container
from fenchel.data.quadrature import as_points
from fenchel.estimators.scores import curve_score
from fenchel.kernels import KernelLike
from fenchel.losses import Loss
from fenchel.model.curve_center import CurveCenter
from fenchel.model.expansion import KernelExpansion
from fenchel.model.functions import FunctionCodec, Functions
from fenchel.model.gradient import expansion_gradient
from fenchel.model.input_gaps import fills_gaps
from fenchel.model.machine import Fitted, KernelMachine
from fenchel.model.warnings import warn_of_domain
from fenchel.representations import CurveRepresentation
from fenchel.solvers import Solver

__all__ = ["CurveRegressor", "FunctionalRegressor"]


class CurveRegressor(MultiOutputMixin, RegressorMixin, KernelMachine):
    """What the regressor of curves and its search share: predictions, their derivatives, the score."""

    grid_ = Fitted[np.ndarray]("codec.grid")
    representation_error_ = Fitted[float]("codec.representation.representation_error_")
    _point_scores = Fitted[Array]("duals.point_outlier_score")

    @in_container
    def predict(self, X: Outputs, grid: ArrayLike | None = None, derivative: int = 0) -> Outputs:
        """Predict curves at any points.

        Parameters
        ----------
        X : array, DataFrame or scikit-fda object
            Inputs in the form of ``fit``.
        grid : array of shape (m,) or None, default=None
            Increasing points; ``None`` means the grid of the training curves.
        derivative : {0, 1, 2}, default=0
            1, or ``True``, is the first derivative of the prediction, 2 the second; the output kernel must be smooth.
            That of the centre is the second derivative of a cubic spline through its values.

        Returns
        -------
        y : array of shape (n, m) or (n, m, c), or FDataGrid
            Predicted curves; an FDataGrid if the model was fitted to scikit-fda outputs.
        """
        check_parameter("predict", "derivative", derivative, Options((0, 1, 2, False, True)))
        check_is_fitted(self)
        rows, X = function_names(X, "sample_names"), self._read(X)
        points = self._points(grid)
        values = namespace(X).astype(self.model_.read(X, points, derivative), X.dtype, copy=False)
        return self.model_.outputs.wrap_curves(points, values, rows)

    def _output_names(self, grid: ArrayLike | None = None, derivative: int = 0) -> Sequence[object]:
        return (super()._output_names() if grid is None else None) or self._points(grid).tolist()

    def gradient(self, X: Array, grid: ArrayLike | None = None, almost_everywhere: bool = False) -> Array:
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
        X, model, points = self._read(X), self.model_, self._points(grid)
        reading = self._codec.reading(model.expansion.kernel, points)
        found = expansion_gradient(cast(KernelExpansion, model.expansion), X, reading.matrices, almost_everywhere)
        n, q, d = found.shape
        rows = reading.scaled(namespace(X).reshape(namespace(X).permute_dims(found, (0, 2, 1)), (n * d, q)))
        values = self._codec.representation.shaped(namespace(X).astype(rows, X.dtype, copy=False))
        values = namespace(X).reshape(values, (n, d, *values.shape[1:]))
        return namespace(X).moveaxis(values, 1, -1)

    def score(self, X: Outputs, y: Outputs, sample_weight: Array | None = None, grid: ArrayLike | None = None) -> float:
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

    @property
    def _codec(self) -> FunctionCodec:
        return cast(FunctionCodec, self.model_.codec)

    @property
    def center_(self) -> CurveCenter | None:
        """The centre, a function that maps points to values of shape (points, channels)."""
        return self._codec.center

    @property
    def scale_(self) -> np.ndarray | None:
        """The scale of each channel of the outputs."""
        return self._codec.scale

    @property
    def point_outlier_score_(self) -> Array:
        """Outlier score of each point, for losses with p = 1; NaN at missing values."""
        return self._codec.representation.shaped(self._point_scores)

    def _points(self, grid: ArrayLike | None) -> np.ndarray:
        """Return the requested points; warn if they lie outside the domain of the training curves."""
        check_is_fitted(self)
        points = self.grid_ if grid is None else as_points(grid)
        warn_of_domain(points, self.grid_)
        return points

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = fills_gaps(self.kernel)
        tags.array_api_support = True
        return tags


class FunctionalRegressor(CurveRegressor):
    r"""Function-valued regression on any inputs with a kernel, with a convex loss and a certified duality gap.

    .. math:: \min_h \; \frac1n \sum_i \ell(y_i - h(x_i)) + \frac\lambda2 \|h\|^2, \qquad
        \hat h(x)(\theta) = \frac{1}{\lambda n} \sum_i k(x, x_i) \int g(\theta, \theta') a_i(\theta') \, d\theta',

    with an input kernel :math:`k`, an output kernel :math:`g` on the domain of the curves, and losses of the
    :math:`L^p` norms of curves.

    Parameters
    ----------
    kernel : kernel, str, callable or None, default=None
        Kernel of the inputs; ``None`` means ``FunctionalGaussian(gamma="median")``, for curves and for vectors, and
        ``"auto"`` the same after inputs have been standardised: each column of (n, d), each channel of (n, m, c). An
        operator-valued kernel, such as a sum of ``Gaussian(1.0) * IntegralOperator(g)`` or ``Aligned()``, describes the
        outputs too.
    output_kernel : kernel, str, callable, list of these, or None, default=None
        Kernel of points of the domain; a list has one for each output channel. ``None`` means a Laplacian kernel whose
        length is a tenth of the domain; a representation that has its own eigenvalues uses those instead. With an
        operator-valued kernel it must be ``None``, except for ``"eigen"``, whose basis it determines.
    loss : Loss or str, default="square"
        ``"square"``, ``"huber"``, ``"epsilon_ridge"``, ``"epsilon_svr"``, ... or an instance such as
        ``Huber(0.5, p=1)``. Losses with p other than 2 need point values: ``representation="spline"``.
    lam : float, default=1e-3
        Weight of the squared norm.
    representation : {"spline", "eigen", "fourier"} or CurveRepresentation, default="spline"
        How curves become coordinates. Only ``"spline"`` accepts curves with missing values.
    n_components : int, float or None, default=None
        Number of components (or explained fraction) of a representation given by name; ``None`` means its default.
        ``"spline"`` keeps all points, and warns.
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
    scale : bool, "robust" or "auto", default="auto"
        Whether to divide each channel of the outputs by its standard deviation over all points; predictions are
        multiplied by it. ``"robust"`` uses a quantile of the absolute values instead. ``"auto"`` divides if
        ``channels`` couples the channels, unless a threshold of the loss is a number.
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

    def __init__(
        self,
        kernel: KernelLike | None = None,
        output_kernel: KernelLike | None = None,
        loss: Loss | str = "square",
        lam: float = 1e-3,
        representation: CurveRepresentation | str = "spline",
        n_components: float | None = None,
        center: bool | str = True,
        channels: Array | None = None,
        solver: Solver | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        approximation: Approximation | None = None,
        scale: bool | str = "auto",
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

    @tracked
    def fit(self, X: Outputs, y: Outputs, grid: ArrayLike | None = None, sample_weight: Array | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, DataFrame, list of pairs, scikit-fda object or dict
            Vectors (n, d), curves (n, m), curves with channels (n, m, c), or a Gram matrix with ``"precomputed"``.
            Curves with points of their own are pairs ``(points, values)``, parts of different kinds a dict by name.
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
        return self._learned(X, y, sample_weight, grid=grid)

    def _task(self, grid: ArrayLike | None = None) -> Functions:
        scale = self.scale
        if isinstance(scale, str) and scale == "auto":  # channels in other units would swamp each other
            scale = self.channels is not None and self._spec().loss.is_unit_free
        return Functions(
            self.kernel,
            self.output_kernel,
            self.channels,
            self.representation,
            self.n_components,
            self.center,
            scale,
            grid,
        )
