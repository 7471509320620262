"""Regression between functions on grids of one, two or three dimensions."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags, check_scalar
from sklearn.utils import check_array as check_host_array
from sklearn.utils.validation import check_is_fitted, validate_data

from fenchel._array import Array, Inputs, Outputs, as_like, host, is_host, namespace
from fenchel._check import Interval, Options, check_array, check_parameters, not_times, unmasked
from fenchel._component import all_or_nothing
from fenchel._progress import CallbacksMixin, Progress, tracked
from fenchel.data.fdata import function_names
from fenchel.estimators.field_bases import BASES, INTERPOLATIONS, resampled
from fenchel.estimators.field_data import checked_outputs, together, warn_of_cubes, with_outputs
from fenchel.estimators.field_grids import FieldGrid, n_variables, values_of
from fenchel.estimators.field_maps import FieldMap, GlobalPlan, as_rows
from fenchel.estimators.field_search import best_map, longest_chain
from fenchel.exceptions import DataWarning, warn_user
from fenchel.model.sample import sample_counts

__all__ = ["FieldRegressor"]

_COMPONENTS = Interval(0, float("inf"), also=(None,))  # a number of components, or a share of the variance


class FieldRegressor(CallbacksMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Operator learning: regression between functions on grids, of whole functions or of what is around each point.

    .. math:: \hat u = \operatorname{decode}\bigl(\hat h(\operatorname{encode}(a))\bigr) \qquad \text{or} \qquad
       \hat u(s) = \hat h\bigl(a(s + t), \, t \in T\bigr).

    On the left, functions are encoded by their values, by principal components, or by the lowest frequencies (each an
    orthonormal basis), and h is a regression between vectors. Encoded inputs are divided by the root mean square of
    their norms, so that kernel widths are relative to the size of the inputs. On the right, the value at a point
    depends on the values at the points T around it, in the same way everywhere: positions are samples.

    Parameters
    ----------
    estimator : estimator or None, default=None
        A regressor for vectors, such as ``OperatorKernelRegressor``. ``None`` means kernel ridge regression with a
        Matérn kernel of smoothness 5/2, whose width and lam minimise the leave-one-out error, and a search for local
        maps.
    input_basis : {"points", "pca", "cosine", "fourier"}, default="pca"
        Coordinates of the inputs: their values, principal components after centring, or the lowest frequencies of a
        cosine series, or of a Fourier series for periodic functions.
    input_components : int, float or None, default=None
        Number of coordinates, per channel for ``"cosine"`` and ``"fourier"``. For ``"pca"``, a number below 1 is the
        fraction of variance to keep. ``None`` keeps all.
    output_basis : {"points", "pca", "cosine", "fourier"}, default="pca"
        Coordinates of the outputs.
    output_components : int, float or None, default=None
        Number of coordinates of the outputs.
    interpolation : {"linear", "cubic", "fourier"} or None, default=None
        How functions are resampled: inputs to the grid of the training inputs, predictions to the requested ``shape``.
        ``"fourier"`` is for periodic functions. With ``None``, only the grids of the training functions are accepted.
    scale : bool, default=True
        Whether to divide each of several channels of inputs and outputs by its standard deviation around the pointwise
        mean, so that their units do not matter; predictions are multiplied by it.
    progress : bool, callable or None, default=None
        How far the fit has come, as for ``OperatorKernelRegressorCV``.
    local : bool, default=True
        Whether maps from the values around a point to the value there are tried too, for four or more functions on one
        grid and without ``estimator``: of several reaches, with a periodic domain or not, and with the image of the map
        of whole functions beside the inputs. The one that predicts held-out functions best is kept.
    n_axes : {1, 2, 3} or None, default=None
        Number of variables of the functions; a further axis has channels. ``None`` reads arrays (n, m) as curves,
        (n, h, w) and (n, h, w, c) as images, and (n, d, h, w, c) as volumes.
    steps : int or None, default=None
        Number of predictions from predictions for which the map is chosen, by rollouts of held-out functions. ``None``
        means as many steps as are observed, up to 50: the largest number of pairs of which each output is the next
        input. It is 1 if outputs are no inputs. With ``estimator`` or without ``local`` there is nothing to choose.

    Attributes
    ----------
    estimator_ : estimator
        The fitted regressor between coordinates, or from patches to points.
    neighbourhood_ : Neighbourhood or None
        What a local map sees: its ``reach`` in points, whether the domain ``is_periodic``, and whether it is a cross
        (``is_cross``) or a box; ``None`` for whole functions.
    steps_ : int
        Number of predictions from predictions for which the map was chosen.
    input_shape_, output_shape_ : tuple
        Shapes of one training input and of one training output.
    n_features_in_ : int
        Number of grid points of the inputs along the first axis.

    Notes
    -----
    Outputs may have missing values (NaN). These are imputed by their conditional expectation given the observed values,
    under a Gaussian model with few principal components [Tipping1999]_. The certificate is that of the regression on
    the imputed outputs.

    References
    ----------
    [Batlle2024]_, who use principal components for inputs and outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import FieldRegressor
    >>> from fenchel.datasets import make_darcy
    >>> data = make_darcy(60, n_points=9, refinement=1)
    >>> model = FieldRegressor(input_components=20, interpolation="cubic", local=False).fit(data.X[:50], data.Y[:50])
    >>> model.predict(data.X[50:]).shape, model.predict(data.X[50:], shape=(17, 17)).shape
    ((10, 9, 9), (10, 17, 17))
    """

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        input_basis: str = "pca",
        input_components: float | None = None,
        output_basis: str = "pca",
        output_components: float | None = None,
        interpolation: str | None = None,
        scale: bool = True,
        progress: Progress = None,
        local: bool = True,
        n_axes: int | None = None,
        steps: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.input_basis = input_basis
        self.input_components = input_components
        self.output_basis = output_basis
        self.output_components = output_components
        self.interpolation = interpolation
        self.scale = scale
        self.progress = progress
        self.local = local
        self.n_axes = n_axes
        self.steps = steps

    @tracked
    @all_or_nothing
    def fit(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        groups: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Fit the bases and the regression.

        Parameters
        ----------
        X : array of shape (n, m), (n, h, w), (n, h, w, c) or (n, d, h, w, c), or FDataGrid
            Functions on a grid of one to three dimensions; c is the number of channels.
        y : array of shape (n,), or as ``X``
            The corresponding output functions, possibly on another grid; NaN marks missing values.
        sample_weight : array of shape (n,) or None, default=None
            Sample weights of the regression; a sample of weight 2 counts twice.
        groups : array of shape (n,) or None, default=None
            Groups of samples that are held out together, such as the states of one simulation. Local maps are tried
            with four groups or more. An ``estimator`` whose ``fit`` takes groups is given them.
        order : array of shape (n,) or None, default=None
            When samples were taken, as times or numbers, instead of ``groups``: blocks of samples that follow one
            another are then held out together, 10 to 100 of them.

        Returns
        -------
        self : FieldRegressor
            The fitted model.
        """
        self._check_parameters()
        self._grids = FieldGrid.of(X, "X"), FieldGrid.of(y, "y")
        self._n_axes = n_variables(self.n_axes, *self._grids)
        X = self._checked_inputs(X, reset=True)
        Y = checked_outputs(values_of(y), X, self._n_axes)
        labels = together(X, Y, groups, order)
        X, Y, sample_weight, labels = with_outputs(X, Y, sample_weight, labels)
        self.input_shape_, self.output_shape_ = tuple(X.shape[1:]), tuple(Y.shape[1:])
        weights = None if sample_weight is None else host(as_like(sample_counts(sample_weight, X), X))
        plan = GlobalPlan(
            self.input_basis,
            self.input_components,
            self.output_basis,
            self.output_components,
            self.scale,
            self.estimator,
        )
        A, B = (namespace(X).reshape(part, (part.shape[0], *self._grid(part.shape[1:]))) for part in (X, Y))
        self._largest = float(np.nanmax(np.abs(host(B))))
        if (self.steps or 1) > 1 and A.shape != B.shape:
            raise ValueError(
                f"Predictions from predictions, steps={self.steps}, need outputs of the shape of the inputs. "
                f"Got {self.output_shape_} and {self.input_shape_}."
            )
        if (self.steps or 1) > 1 and (self.estimator is not None or not self.local):
            given = "local=False" if self.estimator is None else "an estimator"
            warn_user(
                f"With {given} there is one map, and nothing that steps={self.steps} could choose. Leave out either.",
                DataWarning,
                "rollouts",
            )
        self.steps_ = longest_chain(A, B) if self.steps is None else int(self.steps)
        self._map: FieldMap = best_map(plan, self.local, self.steps_, A, B, weights, labels)
        self.estimator_, self.neighbourhood_ = self._map.estimator, self._map.neighbourhood
        return self

    def predict(self, X: Inputs, shape: tuple[int, ...] | None = None) -> Outputs:
        """Predict functions.

        Parameters
        ----------
        X : array of shape (n, ...)
            Functions on the grid of the training inputs, or on any other grid if ``interpolation`` is set.
        shape : tuple of int or None, default=None
            Number of grid points of the predictions along each axis, if ``interpolation`` is set; ``None`` means the
            grid of the training outputs.

        Returns
        -------
        y : array of shape (n, ...), or FDataGrid
            Predicted functions; an FDataGrid if the training outputs were one.
        """
        check_is_fitted(self)
        values = self._values(self._checked_inputs(X, reset=False), shape)
        grid = self._grids[1]
        return values if grid is None else grid.wrapped(values, self.interpolation, function_names(X, "sample_names"))

    def _values(self, X: Array, shape: tuple[int, ...] | None = None) -> Array:
        """Return the values of predictions for inputs that were checked."""
        xp, n = namespace(X), X.shape[0]
        fields = self._map.predict(xp.reshape(X, (n, *self._grid(self.input_shape_))))
        if not self.output_shape_:
            return fields[:, 0, 0]
        axes = self._count_axes(self.output_shape_)
        wanted = self.output_shape_[:axes] if shape is None else tuple(shape)
        if len(wanted) != axes:
            raise ValueError(f"shape must give the number of points along each of the {axes} axes. Got {shape!r}.")
        fields = self._resampled(fields, wanted)
        return xp.reshape(fields, (n, *wanted, *self.output_shape_[axes:]))

    def rollout(self, X: Array, steps: int) -> Array:
        """Predict, and predict from the prediction, for outputs that are the inputs some time later.

        Parameters
        ----------
        X : array of shape (n, ...)
            Functions on the grid of the training functions.
        steps : int
            Number of predictions.

        Returns
        -------
        y : array of shape (n, steps, ...)
            The predicted functions. A warning says if they are far outside the range of the training outputs.
        """
        check_is_fitted(self)
        check_scalar(steps, "steps", Integral, min_val=1)
        if self.input_shape_ != self.output_shape_:
            raise ValueError(
                f"A rollout needs outputs of the shape of the inputs. Got {self.output_shape_} and {self.input_shape_}."
            )
        X = self._checked_inputs(X, reset=False)
        states, xp = [], namespace(X)
        for _ in range(steps):
            X = self._values(X)
            states.append(X)
        found = xp.stack(states, axis=1)
        if float(xp.max(xp.abs(found))) > 2 * self._largest:
            advice = ""
            if self.neighbourhood_ is not None:
                is_told = self.steps_ > 1
                advice = (
                    " Maps of whole functions, local=False, may be stable."
                    if is_told
                    else (f" FieldRegressor(steps={steps}) chooses the map by rollouts.")
                )
            warn_user(
                f"The rollout has values up to {float(xp.max(xp.abs(found))):.3g}, but training outputs are below "
                f"{self._largest:.3g}: the map amplifies its own errors.{advice}",
                DataWarning,
                "rollouts",
            )
        return found

    def score(self, X: Array, y: Array, sample_weight: Array | None = None) -> float:
        """Return the coefficient of determination R², over all points of the outputs.

        Parameters
        ----------
        X, y, sample_weight : array
            A sample, as for ``fit``, on the grids of the training functions and without missing values.

        Returns
        -------
        score : float
            One minus the ratio of squared errors to squared distances from the pointwise means.
        """
        check_is_fitted(self)
        X = self._checked_inputs(X, reset=False)
        truth = host(as_rows(checked_outputs(values_of(y), X, self._n_axes)))
        predicted = host(as_rows(self._values(X)))
        weights = np.ones(len(truth)) if sample_weight is None else sample_counts(sample_weight, truth)
        center = np.average(truth, axis=0, weights=weights)
        weights = np.repeat(weights, truth.shape[1])
        return float(r2_score((truth - center).ravel(), (predicted - center).ravel(), sample_weight=weights))

    def _check_parameters(self) -> None:
        limits: dict[str, Interval | Options] = {
            "input_basis": Options(BASES),
            "output_basis": Options(BASES),
            "input_components": _COMPONENTS,
            "output_components": _COMPONENTS,
            "local": Options((True, False)),
            "n_axes": Options((1, 2, 3, None)),
            "interpolation": Options((*INTERPOLATIONS, None)),
            "scale": Options((True, False)),
        }
        check_parameters(self, limits)
        if self.steps is not None:
            check_scalar(self.steps, "steps", Integral, min_val=1)

    def _checked_inputs(self, X: Inputs, reset: bool) -> Array:
        """Return checked inputs, resampled to the shape of the training inputs."""
        given, own = FieldGrid.of(X, "X"), self._grids[0]
        if given is not None and own is not None:
            own.check(given, self.interpolation)
        X = unmasked(not_times(values_of(X), "X"), "X")
        if is_host(X):
            options: dict[str, Any] = {"dtype": [np.float64, np.float32], "allow_nd": True, "ensure_all_finite": False}
            is_free = not reset and self.interpolation is not None  # any number of points is accepted
            try:
                X = check_host_array(X, **options) if is_free else validate_data(self, X, reset=reset, **options)
            except OverflowError as error:
                raise ValueError(f"X must hold numbers below 1.8e308: {error}.") from error
        X = check_array(X, "X", ndim=(2, 3, 4, 5))
        if reset:
            self.n_features_in_ = int(X.shape[1])
            warn_of_cubes(X, "X", self._n_axes)
            return X
        shape, axes = tuple(X.shape[1:]), self._count_axes(self.input_shape_)
        if shape == self.input_shape_:
            return X
        if len(shape) != len(self.input_shape_) or shape[axes:] != self.input_shape_[axes:]:
            raise ValueError(f"X must hold functions of shape {self.input_shape_}. Got {shape}.")
        xp = namespace(X)
        fields = self._resampled(xp.reshape(X, (X.shape[0], *self._grid(shape))), self.input_shape_[:axes])
        return xp.reshape(fields, (X.shape[0], *self.input_shape_))

    def _resampled(self, fields: Array, shape: tuple[int, ...]) -> Array:
        """Return functions (n, *grid, channels) on another grid."""
        if tuple(fields.shape[1 : 1 + len(shape)]) == shape:
            return fields
        if self.interpolation is None:
            raise ValueError(
                f"Functions on a grid of shape {tuple(fields.shape[1:-1])} cannot be evaluated on one of shape {shape}."
                " Set interpolation, such as FieldRegressor(interpolation='cubic')."
            )
        return resampled(fields, shape, self.interpolation)

    def _count_axes(self, shape: tuple[int, ...]) -> int:
        """Return the number of variables of functions of some shape."""
        return min(len(shape), (2 if len(shape) <= 3 else 3) if self._n_axes is None else self._n_axes)

    def _grid(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the points along each axis, and the number of channels."""
        axes = self._count_axes(shape)
        return (*(shape[:axes] or (1,)), *(shape[axes:] or (1,)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.multi_output = True
        return tags
