"""Regression with operator-valued kernels."""

from typing import Any, Self, cast

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, namespace
from fenchel._component import undone_on_failure
from fenchel._progress import tracked
from fenchel.approximations import Approximation
from fenchel.chunks.fit import fit_chunks
from fenchel.chunks.predict import predict_chunks
from fenchel.chunks.sample import is_chunked
from fenchel.data.frames import in_container
from fenchel.estimators.scores import R2ScoreMixin
from fenchel.kernels import KernelLike, OperatorLike
from fenchel.losses import Loss
from fenchel.losses.parameters import fits_targets
from fenchel.model.expansion import KernelExpansion
from fenchel.model.gradient import expansion_gradient
from fenchel.model.logarithms import Logarithms
from fenchel.model.machine import Fitted, KernelMachine
from fenchel.model.vectors import VectorCodec, Vectors
from fenchel.representations import Representation
from fenchel.solvers import Solver

__all__ = ["OperatorKernelRegressor", "VectorRegressor"]


class VectorRegressor(MultiOutputMixin, R2ScoreMixin, KernelMachine):
    """What the regressor of vectors and its search share: predictions and their derivatives."""

    takes_sparse = True
    dual_coef_ = Fitted[Array]("dual_coef")  # (n,) or (n, p)

    @in_container
    def predict(self, X: Array) -> Array:
        """Predict outputs.

        Parameters
        ----------
        X : array of shape (m, d)
            Inputs, or their Gram matrix with the training inputs, shape (m, n).

        Returns
        -------
        y : array of shape (m,) or (m, p)
            Predictions.
        """
        if is_chunked(X):
            check_is_fitted(self)
            return predict_chunks(self, X)
        X = self._read(X)
        return self.model_.outputs.wrap(self.model_.read(X), X)

    def gradient(self, X: Array, almost_everywhere: bool = False) -> Array:
        """Return the derivatives of the predictions with respect to the columns of X.

        Parameters
        ----------
        X : array of shape (m, d)
            Input vectors.
        almost_everywhere : bool, default=False
            Whether to accept ``Laplacian`` and ``Matern(nu=0.5)``, whose derivative jumps at training inputs; there,
            the mean of both sides is returned. By default such a kernel raises an error, as does any other kernel
            without a derivative.

        Returns
        -------
        gradient : array of shape (m, d) or (m, p, d)
            The derivatives, in units of the outputs per unit of the inputs.
        """
        X, model = self._read(X), self.model_
        xp = namespace(X)
        found = expansion_gradient(cast(KernelExpansion, model.expansion), X, almost_everywhere=almost_everywhere)
        m, p, d = found.shape
        at = xp.repeat(model.expansion.coordinates(X), d, axis=0)
        rows = self._codec.gradient(xp.reshape(xp.permute_dims(found, (0, 2, 1)), (m * d, p)), at)
        return model.outputs.wrap(xp.permute_dims(xp.reshape(rows, (m, d, -1)), (0, 2, 1)), X)

    @property
    def _codec(self) -> VectorCodec:
        return cast(VectorCodec, self.model_.codec)

    @property
    def center_(self) -> np.ndarray | None:
        """The centre of the outputs, ``None`` if they are neither centred nor scaled."""
        moments = self._codec.moments
        return None if moments is None else moments.center

    @property
    def scale_(self) -> np.ndarray | None:
        """The scales of the outputs, ``None`` if they are neither centred nor scaled."""
        moments = self._codec.moments
        return None if moments is None else moments.scale

    @property
    def logarithms_(self) -> Logarithms | None:
        """The logarithms of skewed outputs that are the targets, ``None`` for the outputs themselves."""
        return self._codec.logarithms


class OperatorKernelRegressor(VectorRegressor):
    r"""Regression in the space of an operator-valued kernel, with a convex loss and a certified duality gap.

    .. math:: \min_h \; \frac1n \sum_i \ell(y_i - h(x_i)) + \frac\lambda2 \|h\|^2, \qquad
        \hat h = \frac{1}{\lambda n} \sum_i \mathcal K(\cdot, x_i) \, a_i .

    Parameters
    ----------
    kernel : str, kernel or callable, default="gaussian"
        A scalar kernel (instance, short name, scikit-learn kernel object, pairwise name, callable or
        ``"precomputed"``), or an operator-valued kernel. ``"auto"`` is a Gaussian kernel on standardised columns, with
        the median distance as bandwidth.
    operator : OutputOperator, str, array or None, default=None
        The output operator of a scalar kernel: ``None`` (identity), ``"covariance"``, a matrix, a vector (diagonal).
    loss : Loss or str, default="square"
        ``"square"``, ``"huber"``, ``"epsilon_ridge"``, ``"epsilon_svr"``, ... or an instance such as ``Huber(0.5)``.
    lam : float, default=1e-3
        Weight of the squared norm; with the square loss ``lam * n`` is the ``alpha`` of ``KernelRidge``.
    solver : Solver or str, default="auto"
        ``"auto"`` or a solver's name or instance.
    tol : float, default=1e-6
        The relative duality gap at which the solver stops.
    max_iter : int or None, default=None
        Maximum number of iterations; ``None`` means the solver's default.
    representation : Representation, str or None, default=None
        How outputs become coordinates; ``None`` means ``Euclidean()``. With ``GramFactor()``, ``y`` is the Gram matrix
        of the outputs and predictions are inner products with the training outputs.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` replaces the kernel by one with 500 features, without forming an n × n matrix.
    center : bool or "robust", default=False
        Whether to subtract the mean from the outputs; it is added back to predictions. ``"robust"`` uses the mean of
        the values that are at most three robust standard deviations from the median.
    scale : bool or "robust", default=False
        Whether to divide each output by its standard deviation; predictions are multiplied by it. Thresholds of the
        loss, ``dual_coef_`` and the objectives are then in these units. ``"robust"`` uses a quantile of the distances
        to the median instead. ``fenchel.model.logarithms.Logarithms`` makes logarithms of skewed outputs the targets,
        as the search does; loss and gap are theirs, and predictions are means in the units of the outputs.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        Which duality gap to report for a model with an approximation: that of the approximate kernel; that of the exact
        kernel, estimated from 2000 of its rows; or that of the exact kernel, computed in one pass over it. Without an
        approximation the gap is always exact.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, p)
        Dual variables :math:`a_i`.
    center_, scale_ : array of shape (p,) or None
        The centre and the scales of the outputs, or of their logarithms; ``None`` if they are neither centred nor
        scaled.
    logarithms_ : Logarithms or None
        The logarithms that are the targets; ``logarithms_.is_used`` says of which outputs. ``None`` if the outputs are.
    loss_ : Loss
        The loss, with relative thresholds such as that of ``Huber("auto")`` resolved to numbers.
    primal_objective_, dual_objective_ : float
        Values of the primal and the dual objective.
    duality_gap_ : float
        Relative duality gap :math:`(P - D) / \max(|P|, 10^{-10} P(0))`.
    n_iter_ : int
        Number of iterations of the solver.
    certificate_ : {"exact", "sampled", "approximate"}
        Whether the gap is that of the exact kernel, an estimate of it, or that of the approximation.
    duality_gap_standard_error_ : float
        Standard error of the estimated gap, with ``certificate="sampled"``.
    status_ : str
        Why the solver stopped.
    support_ : array of int
        Indices of the samples with a non-zero dual variable; only these are kept for prediction.
    sparsity_ : float
        Fraction of samples with a zero dual variable.
    outlier_score_ : array of shape (n,)
        Norm of the dual variable divided by its bound, in [0, 1]; 1 is a clipped sample. Only for losses with bounded
        duals.
    solver_info_ : dict
        The ``solver`` that found the duals and the ``reason`` why it was chosen. ``stages`` lists every solver that
        ``"auto"`` ran, with ``solver``, ``reason``, ``n_iter``, ``gap`` and ``status``.
    history_ : list of (int, float)
        Iteration and relative gap at each convergence check.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    With sample weights :math:`s_i` the loss is :math:`\frac1S \sum_i s_i \ell(\cdot)` with :math:`S = \sum_i s_i`. A
    weight of 2 is equivalent to repeating the sample, and a weight of 0 to removing it.

    References
    ----------
    [Laforgue2020]_, Thm 3, 4 and 6.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.losses import Huber
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> Y = np.hstack([np.sin(X), np.cos(X)])
    >>> Y[5] += 10  # an outlier
    >>> model = OperatorKernelRegressor(loss=Huber(0.1), lam=1e-3).fit(X, Y)
    >>> bool(model.duality_gap_ <= 1e-6), int(np.argmax(model.outlier_score_))
    (True, 5)
    """

    def __init__(
        self,
        kernel: KernelLike = "gaussian",
        operator: OperatorLike = None,
        loss: Loss | str = "square",
        lam: float = 1e-3,
        solver: Solver | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        representation: Representation | str | None = None,
        approximation: Approximation | None = None,
        center: bool | str = False,
        scale: bool | str | Logarithms = False,
        certificate: str = "approximate",
    ) -> None:
        self.kernel = kernel
        self.operator = operator
        self.loss = loss
        self.lam = lam
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.representation = representation
        self.approximation = approximation
        self.center = center
        self.scale = scale
        self.certificate = certificate

    @tracked
    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n, d)
            Inputs, or their Gram matrix with ``kernel="precomputed"``. Dask arrays are fitted on the workers of the
            current client. With ``kernel="auto"`` also a dict of parts of different kinds by name, or curves: arrays
            (n, m, c), pairs ``(points, values)`` or functions of scikit-fda. Other kernels take curves as vectors.
        y : array of shape (n,) or (n, p)
            Outputs. NaN means not observed: the loss of a sample is that of the outputs that were.
        sample_weight : array of shape (n,) or None, default=None
            Sample weights; a sample of weight 2 counts twice.

        Returns
        -------
        self : OperatorKernelRegressor
            The fitted model.
        """
        if is_chunked(X):
            with undone_on_failure(self):
                return fit_chunks(self, self._task(), self._spec(), X, y, sample_weight)
        return self._learned(X, y, sample_weight)

    def _task(self, **form: Any) -> Vectors:
        return Vectors(self.kernel, self.operator, self.representation, self.center, self.scale)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = not fits_targets(self.loss)
        tags.array_api_support = True
        return tags
