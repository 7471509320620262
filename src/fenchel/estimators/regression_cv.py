"""``OperatorKernelRegressor`` with kernel, loss and lam chosen by cross-validation."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from os import PathLike
from typing import Self

from numpy.typing import ArrayLike
from sklearn.utils import Tags

from fenchel._array import Array
from fenchel._progress import Progress, part, tracked
from fenchel.approximations import Approximation
from fenchel.estimators.regression import OperatorKernelRegressor, VectorRegressor
from fenchel.estimators.search_machine import PairSearchMachine
from fenchel.kernels import KernelLike, OperatorLike
from fenchel.losses import Loss
from fenchel.model.logarithms import Logarithms
from fenchel.model.sample import Sample
from fenchel.model.training_set import TrainingSet
from fenchel.representations import Representation
from fenchel.resample.folds import blocks_of
from fenchel.search.choice import KernelChoice, is_auto, searched
from fenchel.search.coupling import coupled
from fenchel.search.leaves import with_leaves
from fenchel.search.logarithms import with_errors, with_logarithms
from fenchel.search.search import Search

__all__ = ["OperatorKernelRegressorCV"]


class OperatorKernelRegressorCV(VectorRegressor, PairSearchMachine[OperatorKernelRegressor]):
    """``OperatorKernelRegressor`` with kernel, loss and lam chosen by cross-validation.

    The defaults need no knowledge of the data: the columns of X and the outputs are standardised, then kernels of
    several families and widths, with and without a linear part, are compared by closed-form leave-one-out errors
    (``fenchel.search.race``). Predictions do not depend on the units of inputs and outputs.

    Small folds are solved together on the Gram matrix of the whole sample with their test samples held out, large ones
    on the Gram matrix of their training part. One factorisation serves every loss and lam: problems with few outputs
    are solved together, others are warm-started along lam, and the square loss has a closed form. The chosen pair is
    then fitted on the whole sample.

    Parameters
    ----------
    kernel : "auto", str, kernel or callable, default="auto"
        ``"auto"`` searches for a kernel on the columns of X, using at most 1000 samples. Missing inputs (NaN) become
        medians, with an indicator for each column that has some (``fenchel.kernels.Completed``). Other values are as
        for ``OperatorKernelRegressor``.
    operator
        As for ``OperatorKernelRegressor``; if outputs are missing, ``None`` with ``kernel="auto"`` also compares
        operators that couple them. Quantities that are estimated from the data (a median bandwidth, the covariance of
        the outputs) are computed once, from the whole sample.
    lams : sequence of float or None, default=None
        Regularisation weights. ``None`` means two decades around the lam of the kernel search, or with a given kernel
        13 values from 1e-6 to 1; the grid is extended beyond an end as long as the error decreases there.
    losses : sequence of Loss or str, or "auto", default="auto"
        Losses to choose from, such as ``[Huber(kappa) for kappa in kappas]`` or ``["square", Huber("auto")]``. With
        ``kernel="auto"``, ``"auto"`` is a Huber loss if some targets are wrong, with ``p=1`` if single values are;
        otherwise it or the square loss is chosen by held-out errors (:ref:`wrong-or-skewed`). With a given kernel
        it is the square loss.
    cv : int, splitter, "loo" or "approximate-loo", default=5
        Cross-validation folds. An integer is the number of folds, drawn from what the samples contain: the same ones in
        every fit, whatever the order of the rows. A splitter sees the rows as they are given; for folds of consecutive
        samples pass ``KFold(5)``. ``"loo"`` is exact leave-one-out.
        ``"approximate-loo"`` needs one fit and one linear system for each pair instead of n fits, for losses of the
        Euclidean norm and the identity operator. It is exact for the square loss; see
        ``fenchel.resample.ridge.approximate_loo`` for its error with other losses.
    aggregate : {"auto", "mean", "median", "trimmed_mean", "fold_median"}, default="auto"
        How held-out errors are aggregated. ``"mean"`` is the mean over folds of their mean errors. ``"median"`` is the
        median over all held-out samples, which a minority of outliers does not affect. ``"trimmed_mean"`` is the mean
        of the smallest four fifths of all errors, for samples with fewer than a fifth of outliers. ``"fold_median"`` is
        the median over folds of their mean errors. ``"auto"`` is the mean; if ``losses="auto"`` selects a robust loss,
        errors are clipped at four robust deviations.
    tol, representation
        As for ``OperatorKernelRegressor``.
    n_jobs : int or None, default=None
        Number of threads over the losses.
    checkpoint : path or None, default=None
        File that stores the errors of finished losses; a fit with the same data and grid resumes from it.
    progress : bool, callable or None, default=None
        How far the fit has come: ``True`` shows a bar on standard error, a function is called as
        ``progress(done, total)``. Work is weighted by its estimated cost, ``total`` is 1000, and ``done`` only
        increases.
    approximation : Approximation, "auto" or None, default="auto"
        ``None`` is an exact fit, whatever it takes. ``"auto"`` is an exact fit unless it is estimated to take more than
        half an hour: then landmarks replace the kernel, as many as fit in memory, and ``certificate_`` is "sampled".
        Other values are as for ``OperatorKernelRegressor``.
    scoring : str, callable or None, default=None
        Criterion for the choice of loss and lam: a name such as ``"neg_mean_absolute_error"`` or ``"r2"``, or a scorer
        ``scorer(estimator, X, y)``, in which cases ``cv_errors_`` is the negative mean score over folds; or a function
        ``scoring(y, predicted)`` that returns the error of each sample, shape (n,), in the order of the sample.
        ``None`` means the squared distance. Kernels are always compared by their squared errors.
    center, scale : bool, "robust" or "auto", default="auto"
        As for ``OperatorKernelRegressor``. ``"auto"`` centres the outputs with ``kernel="auto"``, robustly for a robust
        loss, and divides each by its scale unless a threshold of a loss is a number or there is a representation; an
        operator then acts on the scaled outputs. If ``scale`` is ``"auto"`` too, targets are the logarithms of skewed
        outputs if these predict them better (:ref:`skewed-outputs`). Held-out errors are in these units.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.
    metric : array of shape (d,) or (d, k), or None, default=None
        Weights or linear combinations of the standardised columns, from which the kernels of ``"auto"`` compute
        distances; ``LearnedMetricRegressor`` learns them.
    leaves : bool, default=True
        Whether to compare kernels with a part that is piecewise constant: the share of common leaves in a forest. Only
        for at most 1000 samples with complete outputs, ``kernel="auto"``, no ``metric`` and a number as ``cv``.

    Attributes
    ----------
    best_kernel_, best_loss_, best_lam_ : kernel, Loss, float
        The chosen kernel, loss and lam, with data-dependent parameters resolved to numbers.
    search_ : dict of lists or None
        Results of the kernel search, one entry for each trial: ``family``, ``width`` in median distances, relative
        weight of the ``linear`` part, whether the search was ``robust``, the number of samples ``n_samples`` on which
        it was decided, the best ``lam`` for these relative to the mean diagonal, the leave-one-out ``error`` and
        ``seconds``. If outputs are missing, the ``share`` of their correlation in the operator: zero in the race of
        kernels, which the trials of operators follow. If a forest was compared, the relative weight of its ``leaves``,
        in the trials that follow the race. If ``logarithms`` of skewed outputs were tried, 1 in their trials, whose
        errors are those of the standardised logarithms. If inputs are missing, the columns with ``gaps``. From 4001
        samples on, the number of samples ``held_out`` of larger parts, on which width and lam are compared again, the
        best trial last; zero in the race. ``None`` for a given kernel.
    losses_, lams_ : list
        The losses and the values of lam that were compared.
    n_searched_ : int
        Number of samples on which they were compared: all, or 2000 of more if ``cv`` is a number. From 4001 samples on
        ``best_lam_`` may lie between them, as larger parts of the sample prefer.
    cv_errors_ : array of shape (n_losses, n_lams)
        Errors of the held-out samples, aggregated over folds.
    fold_errors_ : array of shape (n_losses, n_lams, n_folds)
        The same for each fold.
    cv_gaps_ : array of shape (n_losses, n_lams)
        Largest relative duality gap over the folds.
    best_estimator_ : OperatorKernelRegressor
        The model fitted on the whole sample; its fitted attributes are also available on this object.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressorCV
    >>> from fenchel.losses import Huber
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> Y = np.hstack([np.sin(X), 1000 * np.cos(X)])
    >>> model = OperatorKernelRegressorCV().fit(X, Y)
    >>> bool(model.score(X, Y) > 0.999)
    True

    A given kernel is used as it is:

    >>> grid = {"lams": [1e-4, 1e-2, 1.0], "losses": [Huber(0.1), Huber(1.0)]}
    >>> OperatorKernelRegressorCV("gaussian", **grid).fit(X, Y).best_lam_
    0.0001
    """

    _after_race = 0.2

    def __init__(
        self,
        kernel: KernelLike = "auto",
        operator: OperatorLike = None,
        lams: ArrayLike | None = None,
        losses: Sequence[Loss | str] | str = "auto",
        cv: object = 5,
        aggregate: str = "auto",
        tol: float = 1e-6,
        representation: Representation | str | None = None,
        n_jobs: int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        progress: Progress = None,
        approximation: Approximation | str | None = "auto",
        scoring: str | Callable[..., object] | None = None,
        center: bool | str = "auto",
        scale: bool | str = "auto",
        certificate: str = "approximate",
        metric: Array | None = None,
        leaves: bool = True,
    ) -> None:
        self.kernel = kernel
        self.operator = operator
        self.lams = lams
        self.losses = losses
        self.cv = cv
        self.aggregate = aggregate
        self.tol = tol
        self.representation = representation
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.progress = progress
        self.approximation = approximation
        self.scoring = scoring
        self.center = center
        self.scale = scale
        self.certificate = certificate
        self.metric = metric
        self.leaves = leaves

    @tracked
    def fit(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        groups: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Choose loss and lam, then fit on the whole sample.

        Parameters
        ----------
        X, y, sample_weight : array
            As for ``OperatorKernelRegressor.fit``.
        groups : array of shape (n,) or None, default=None
            Groups of samples that are held out together, such as replicates. They are passed to ``cv`` if it is a
            splitter; a number of folds means ``GroupKFold``. The kernel search leaves out one group at a time.
        order : array of shape (n,) or None, default=None
            When samples were taken, as times or numbers, instead of ``groups``: blocks of samples that follow one
            another are then held out together, 10 to 100 of them.

        Returns
        -------
        self : OperatorKernelRegressorCV
            The fitted model.
        """
        return self._choose(X, y, sample_weight, blocks_of(order, groups, X, self.cv))

    def _extended(self, choice: KernelChoice, search: Search, sample: Sample) -> KernelChoice:
        """Return the choice with logarithms of skewed outputs, and with an operator for gaps or a kernel of trees."""
        if all(map(is_auto, (self.losses, self.scale, self.center, self.aggregate))) and self._has_plain_outputs:
            choice = self._with_logarithms(choice, search)
        targets = choice.training_set.targets
        if targets.observed is None:
            is_open = self.leaves and isinstance(self.cv, Integral) and self.metric is None
            return with_errors(with_leaves(choice, search.groups, search.folds_of(sample)) if is_open else choice)
        is_coupled = self.operator is None and targets.width > 1
        return with_errors(coupled(choice, search.groups) if is_coupled else choice)

    @property
    def _has_plain_outputs(self) -> bool:
        """Whether predictions are means of the outputs one by one."""
        return self.operator is None and self.representation is None and self.scoring is None

    def _with_logarithms(self, choice: KernelChoice, search: Search) -> KernelChoice:
        """Return the choice with logarithms of skewed outputs as targets, if these predict them better."""

        def encode(logarithms: Logarithms) -> TrainingSet:
            task = self._machine().set_params(scale=logarithms)._task()
            return choice.training_set.with_outputs(*task.learn(choice.training_set.sample))

        def again(training_set: TrainingSet, choice: KernelChoice) -> KernelChoice:
            most, ridges = self.most_raced, choice.search.ridges
            with part(0.5):
                found = searched(training_set, False, False, None, self.metric, search.groups, most, False, ridges)
            return replace(choice, training_set=training_set, search=found)

        return with_logarithms(choice, encode, again)

    def _machine(self, losses: Sequence[Loss] = (), is_robust: bool = False) -> OperatorKernelRegressor:
        """Return the estimator of one pair, with centring and scaling resolved if they are ``"auto"``."""
        standard = "robust" if is_robust else True
        scaled = self.representation is None and all(loss.is_unit_free for loss in losses)
        center = is_auto(self.kernel) and self.representation is None
        return self._with_shared(
            OperatorKernelRegressor,
            center=(center and standard) if is_auto(self.center) else self.center,
            scale=(center and scaled and standard) if is_auto(self.scale) else self.scale,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not is_auto(self.kernel)  # standardised inputs are dense
        tags.input_tags.allow_nan = is_auto(self.kernel) and self.metric is None
        tags.array_api_support = True
        return tags
