"""Conformal prediction around any regressor."""

from collections.abc import Sequence
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Inputs, Outputs
from fenchel._check import Interval, Options, check_parameter, check_parameters
from fenchel._component import all_or_nothing
from fenchel._progress import Progress, part, tracked
from fenchel.conformal.band import Ellipsoid, PredictionBand
from fenchel.conformal.bands import FIT_SHARE, BandsMixin
from fenchel.conformal.calibration import Given, checked, labels_of
from fenchel.conformal.folds import Trainer
from fenchel.conformal.labels import Labels, strata_of_new
from fenchel.conformal.widths import ENOUGH
from fenchel.data.containers import indexable, length, numbers, on_one_grid
from fenchel.data.fdata import function_names
from fenchel.data.frames import FramesOutMixin, column_names, in_container, index_of, with_arrays
from fenchel.data.functional import as_curves, is_fdata
from fenchel.estimators.scores import R2ScoreMixin
from fenchel.exceptions import DataWarning, IncompatibleError, warn_user
from fenchel.model.machine import near_of

__all__ = ["ConformalRegressor"]


class ConformalRegressor(BandsMixin, FramesOutMixin, R2ScoreMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Conformal prediction bands around any regressor, whose coverage is guaranteed for exchangeable samples.

    The regressor is fitted on one part of the sample. On the other, the calibration part, each output has the score

    .. math:: R_i = \max_t \frac{|y_i(t) - \hat y_i(t)|}{s(x_i, t)},

    and the band is :math:`\hat y(t) \pm q \, s(x, t)`, where :math:`q` is the :math:`\lceil (m + 1) c \rceil`-th
    smallest of the m scores for a coverage c. It contains a new output *at all points at once* with at least that
    probability, for any distribution, if the samples are exchangeable. For ``"cv+"`` and ``"jackknife+"`` the
    guarantee is 2c - 1.

    Parameters
    ----------
    estimator : regressor or None, default=None
        Any regressor with ``fit`` and ``predict``: from this library, a pipeline, a grid search. ``None`` means
        ``OperatorKernelRegressorCV()``. If it has its own ``predict_interval`` (``QuantileFunctionRegressor``), both
        ends of its intervals are moved by the same amount.
    coverage : float, default=0.9
        Probability that the band contains the output.
    method : {"split", "cv+", "jackknife+"}, default="split"
        ``"split"``: one fit, with a part of the sample set aside. ``"cv+"``: each sample is calibrated by the fit
        without its fold. It uses the whole sample; its coverage is close to the nominal one, and never below
        ``2 * coverage - 1`` (up to a term of order one over the size of a fold). ``"jackknife+"``: the same with each
        sample as a fold, for kernel machines of this library and searches over them: in closed form for the square
        loss, otherwise by one solve per sample on a common eigenbasis. A bandwidth, a threshold, the centre and the
        scale of the outputs and the choices of a search are those of the whole sample, and the search has
        ``leaves=False``.
    modulation : {"constant", "std", "local"} or regressor, default="std"
        The width :math:`s`: the same everywhere; the deviation of the residuals at each output or point; or that times
        a factor that depends on the input, from a model of the size of the residuals (a regressor is used as that
        model). It is estimated from out-of-sample residuals on the training part (leave-one-out if it has a closed
        form, otherwise folds), or on 500 calibration samples if there are more than 1000, without a further fit.
    joint : bool or "ellipsoid", default=True
        Whether a band covers all outputs of a sample at once, as a box; ``False`` gives each output its own interval.
        ``"ellipsoid"`` takes the correlations of the residuals into account: ``lower`` and ``upper`` are then the
        extent of the ellipsoid along each output, and ``contains`` tests the ellipsoid itself. For ``"cv+"`` and
        ``"jackknife+"`` it is the smallest one around the prediction that is known to contain their region.
    contamination : float, default=0.0
        Largest share of the samples that may be grossly wrong. Scores far beyond the tail of the others, up to this
        share, are attributed to wrong samples, and the band covers *correct* outputs. If fewer are wrong, or none,
        fewer scores are attributed: the coverage stays above .87 for a nominal .9 and any share from zero to this one.
        Wrong samples that are not far out make the band wider than necessary.
    calibration_size : float, default=0.25
        Share of the sample that is set aside for calibration. The number of samples m is rounded up, by at most a half,
        to make ``(m + 1) * coverage`` an integer: with any other number a band is wider than necessary.
    cv : int, splitter or list of splits, default=5
        Folds for ``"cv+"`` and for out-of-sample residuals; a number means that many shuffled folds. For ``"split"``
        the first of a list of splits sets the training and the calibration part instead of ``calibration_size``.
    random_state : int, RandomState or None, default=0
        Seed of the split. Splits depend on the seed and on what the samples contain, not on the order of the rows.
    progress : bool, callable or None, default=None
        How far the fit has come, as for ``OperatorKernelRegressorCV``.

    Attributes
    ----------
    estimator_ : regressor
        The fitted regressor.
    scores_ : ndarray of shape (m,), or (m, q) if not ``joint``
        Scores of the calibration samples.
    exchangeability_p_value_ : float
        With ``order``: p-value that the scores do not change with time.

    References
    ----------
    [Lei2018]_ for the split; [Diquigiovanni2022]_ for curves and their modulation; [Barber2021]_ for CV+ and
    jackknife+ (the band at each point contains the set of that paper, so it is simultaneous too); [Romano2019]_
    for quantiles; [Vovk2005]_ for strata, [Tibshirani2019]_ for weights and [GibbsCandes2021]_ for samples in time.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import ConformalRegressor, OperatorKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (400, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(400)
    >>> model = ConformalRegressor(OperatorKernelRegressor(lam=1e-3)).fit(X[:300], y[:300])
    >>> band = model.predict_interval(X[300:])
    >>> bool(0.82 <= band.contains(y[300:]).mean() <= 0.98)
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "coverage": Interval(0, 1),
        "method": Options(("split", "cv+", "jackknife+")),
        "joint": Options((True, False, "ellipsoid")),
        "contamination": Interval(0, 0.5, "left"),
        "calibration_size": Interval(0, 1),
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        coverage: float = 0.9,
        method: str = "split",
        modulation: Any = "std",
        joint: bool | str = True,
        contamination: float = 0.0,
        calibration_size: float = 0.25,
        cv: object = 5,
        random_state: object = 0,
        progress: Progress = None,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.method = method
        self.modulation = modulation
        self.joint = joint
        self.contamination = contamination
        self.calibration_size = calibration_size
        self.cv = cv
        self.random_state = random_state
        self.progress = progress

    output_names_: Sequence[object] | None = None  # for models saved by earlier releases

    @tracked
    @all_or_nothing
    def fit(
        self,
        /,
        X: Inputs,
        y: Outputs,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        replicates: ArrayLike | None = None,
        order: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the regressor on one part of the sample, and calibrate it on the other.

        Parameters
        ----------
        X, y
            The sample, as for the regressor.
        groups : array of shape (n,) or None, default=None
            Labels of samples that belong together, such as the scans of one specimen. Those with the same label stay on
            one side of every split, also of the regressor's own search if its ``fit`` takes ``groups``, and together
            count as one calibration sample. Without it the bands of replicated samples are far too narrow.
        sample_weight : array of shape (n,) or None, default=None
            Sample weights, for the calibration and, if the regressor supports them, its fit. For a covariate shift, use
            the ratio of the density of new inputs to that of the sample.
        replicates : array of shape (n,) or None, default=None
            The former name of ``groups``.
        order : array of shape (n,) or None, default=None
            Times of the samples, or anything that sorts them. The calibration part is then the latest one. Folds are
            blocks of time, also those of the regressor's own search if its ``fit`` takes ``groups``. Scores count half
            after half of the calibration samples, and ``update`` follows what comes. A warning reports scores that
            change with time.
        strata : array of shape (n,) or None, default=None
            Labels of parts of the population, such as instruments, each of which is calibrated separately, so that the
            coverage holds within each.
        **fit_params : dict
            Further arguments passed to the regressor's ``fit``, such as ``grid``.

        Returns
        -------
        self : ConformalRegressor
            The calibrated model.
        """
        self._validate()
        self.output_names_ = column_names(y)
        given = Given.of(
            type(self).__name__, X, on_one_grid(y), Labels(groups, strata, replicates), sample_weight, order
        )
        trainer = Trainer(self._inner, given.X, given.y, given.weights, fit_params, given.held_together)
        if self.method != "split":
            return self._fit_held_out(trainer, given)
        train, rest = given.split(self._inner, self.calibration_size, self.coverage, self.random_state, self.cv)
        with part(FIT_SHARE):
            self.estimator_, widths = trainer.fit_on(train), None
        if self._needs_widths and len(rest) > 2 * ENOUGH:
            is_first = np.isin(given.codes[rest], given.codes[rest[:ENOUGH]])
            widths = self._widths_on(given.part(rest[is_first], self.estimator_, train))
            rest = rest[~is_first]
        elif self._needs_widths:
            residuals = trainer.out_of_sample(self.estimator_, train, self.cv, self.random_state)
            trained = given.part(train, self.estimator_, train)
            widths = self._widths(residuals, trained.X, trained.groups)
        self._calibrate(given.part(rest, self.estimator_, train), widths)
        return self._with_columns(train, length(given.X))

    @all_or_nothing
    def conformalize(
        self,
        X: Inputs,
        y: Outputs,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        replicates: ArrayLike | None = None,
        order: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> Self:
        """Calibrate a regressor that is already fitted, on samples that it has not seen.

        Parameters
        ----------
        X, y, groups, sample_weight, replicates, order, strata
            The calibration sample, as for ``fit``. Non-constant widths are estimated on half of it.

        Returns
        -------
        self : ConformalRegressor
            The calibrated model.
        """
        self._validate()
        if self.method != "split":
            raise ValueError(f"method={self.method!r} fits the regressor without some samples. Use fit.")
        try:
            check_is_fitted(self.estimator)
        except (NotFittedError, TypeError):
            raise NotFittedError(
                f"The 'estimator' parameter of ConformalRegressor must be fitted before conformalize. Got "
                f"{type(self.estimator).__name__}. Use fit, which fits it and calibrates."
            ) from None
        self.output_names_, self.estimator_, widths = column_names(y), self.estimator, None
        given = Given.of(
            type(self).__name__, X, on_one_grid(y), Labels(groups, strata, replicates), sample_weight, order
        )
        rest = np.arange(length(given.X))
        if self._needs_widths:
            first, rest = given.parted(self.estimator_, 0.5, self.random_state)
            widths = self._widths_on(given.part(first, self.estimator_))
        self._calibrate(given.part(rest, self.estimator_), widths)
        return self._with_columns()

    def update(self, X: Inputs, y: Outputs, strata: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Learn from the outputs of a block of new samples, without a new fit; call it after each block, in time.

        Their scores join those of the calibration sample, of which the oldest count less and less. If the bands of the
        block missed more outputs than they should, the next ones are wider, and narrower if they missed fewer. In many
        blocks the share missed is the nominal one whatever the drift, as long as some score is large enough.

        Parameters
        ----------
        X, y, strata
            The block, in the order of time, as for ``fit``. Missing outputs (NaN) say nothing: a sample without any is
            skipped, as if it had not been there.
        groups : array of shape (n,) or None, default=None
            The former name of ``strata``.

        Returns
        -------
        self : ConformalRegressor
            The updated model.
        """
        if self.method != "split":
            raise ValueError(f"method={self.method!r} has a model for each score. Use method='split' for update.")
        strata = strata_of_new(strata, groups, self._calibration.has_strata)
        is_inside = self.predict_interval(X, strata=strata).contains(y)
        scores = self._scores(self._read(indexable(X)), on_one_grid(y))
        labels, is_seen = labels_of(strata, len(scores), self._calibration.has_strata), ~np.isnan(scores)
        rows = is_seen.any(axis=1)
        missed = 1 - float(np.mean(is_inside.reshape(scores.shape)[is_seen])) if rows.any() else 1 - self.coverage
        self._calibration = self._calibration.followed_by(scores[rows], labels[rows], missed, self.coverage)
        self.scores_ = self._calibration.scores[:, 0] if self.joint else self._calibration.scores
        return self

    @in_container
    def predict(self, X: Inputs) -> Outputs:
        """Return the predictions of the regressor."""
        X = self._read(X)
        return self.estimator_.predict(X)

    def predict_interval(
        self,
        X: Inputs,
        coverage: float | None = None,
        strata: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> PredictionBand:
        """Return bands that contain new outputs with the required probability.

        Parameters
        ----------
        X : array
            Inputs, as for the regressor.
        coverage : float or None, default=None
            Coverage to use instead of that of the model.
        strata : array of shape (n,) or None, default=None
            Labels of the inputs, for a model calibrated by strata.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the inputs, for a model calibrated with weights; ``None`` means the largest weight of the
            calibration sample, which is safe for all weights up to it.
        groups : array of shape (n,) or None, default=None
            The former name of ``strata``.

        Returns
        -------
        band : PredictionBand
            With ``lower``, ``upper``, ``contains(Y)`` and ``plot()``. If the calibration sample is too small for the
            coverage, bounds are infinite and a warning reports how many samples are needed.
        """
        coverage = self.coverage if coverage is None else coverage
        check_parameter("ConformalRegressor.predict_interval", "coverage", coverage, self._limits["coverage"])
        X, index = self._read(indexable(X)), index_of(X)
        strata = strata_of_new(strata, groups, self._calibration.has_strata)
        labels, nominal = labels_of(strata, length(X), self._calibration.has_strata), coverage
        coverage = self._calibration.adapted(nominal)
        new = self._calibration.relative(checked(sample_weight, length(X), "sample_weight"))
        grid: np.ndarray | None = getattr(self.estimator_, "grid_", None)
        template = with_arrays(self.estimator_).predict(X)
        center = numbers(template)
        ends: list[Outputs] = self._ends(X, center, grid, coverage, labels, new)
        if (shortage := self._calibration.shortage(coverage, labels)) is not None:
            warn_user(shortage, DataWarning, "few-calibration-samples")
        if is_fdata(template):
            grid = as_curves(template).grid
            template = template.to_grid(grid).copy(**function_names(X, "sample_names"))
            ends = [template.copy(data_matrix=end.reshape(template.data_matrix.shape)) for end in ends]
        ellipsoid = None
        if self._is_ellipsoid and (widths := self._calibration_widths) is not None and widths.whitening is not None:
            rows, upper = (part.reshape(len(center), -1) for part in (center, ends[1]))
            ellipsoid = Ellipsoid(rows, widths.whitening, (upper - rows)[:, 0] / widths.base[0])
        prediction = None if self._has_intervals else template
        is_joint, near, names = bool(self.joint), near_of(self.estimator_), self.output_names_
        return PredictionBand(ends[0], ends[1], nominal, grid, is_joint, ellipsoid, prediction, near, names, index)

    def _validate(self) -> None:
        check_parameters(self, self._limits)
        own = getattr(self._inner, "predict_interval", None)
        if own is not None and "coverage" not in signature(own).parameters:
            name = type(self._inner).__name__
            raise IncompatibleError(
                f"{name} has intervals of its own, for no coverage that could be given: it cannot be calibrated. Put "
                f"ConformalRegressor into it instead, as in {name}(ConformalRegressor(), ...)."
            )
        if self._is_ellipsoid and isinstance(self.modulation, str) and self.modulation == "constant":
            raise ValueError("joint='ellipsoid' requires modulation='std' or 'local'.")
        if isinstance(self.modulation, str):
            check_parameter("ConformalRegressor", "modulation", self.modulation, Options(("constant", "std", "local")))
