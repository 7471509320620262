"""``FunctionalRegressor`` with kernels, loss and lam chosen by cross-validation."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, Outputs, host
from fenchel._progress import Progress, part, tracked
from fenchel._statistics import ranked
from fenchel.approximations import Approximation
from fenchel.estimators.functional import CurveRegressor, FunctionalRegressor
from fenchel.estimators.search_machine import PairSearchMachine
from fenchel.exceptions import SlowFitWarning, warn_user
from fenchel.kernels import KernelLike, Laplacian
from fenchel.losses import Loss, Square
from fenchel.model.functions import FunctionCodec, Functions
from fenchel.model.machine import task_of
from fenchel.model.spec import Spec
from fenchel.model.training_set import TrainingSet
from fenchel.representations import CurveRepresentation, Spline
from fenchel.resample.folds import blocks_of
from fenchel.search.choice import KernelChoice, is_auto
from fenchel.search.result import SearchResult
from fenchel.search.search import Search, grid_share, squared_distance

__all__ = ["FunctionalRegressorCV"]

_LOG = logging.getLogger("fenchel")
_SECONDS = 15.0  # time of the search on a union of 1000 points; it grows with the cube of their number
_SHARES = (0.05, 0.1, 0.2, 0.5)  # lengths of the output kernel, as fractions of the domain
_FEWEST_POINTS = 3  # with fewer points on the grid, the output kernel is not searched for
_RIVALS = 0.4  # share of the rivals of a kernel, where most values are estimated, in what follows the race
_PILOT_TOL = 1e-4  # gap to which candidates for the output kernel are solved
_DECADES = 10.0 ** np.arange(-4, 2)  # lam, relative to that of the kernel search without an output kernel
_STEPS = 10.0 ** np.array([-0.5, 0.0, 0.5])  # lam, relative to the best of those


class FunctionalRegressorCV(CurveRegressor, PairSearchMachine[FunctionalRegressor]):
    """``FunctionalRegressor`` with kernels, loss and lam chosen by cross-validation.

    The defaults need no knowledge of the data: see ``OperatorKernelRegressorCV``. Columns of vectors (n, d) and
    channels of curves (n, m, c) are scaled separately, and the results do not depend on the unit of the grid. Pass
    input curves with one channel as (n, m, 1) or as scikit-fda objects, since separate scales for their points would
    distort their shape.

    Folds are solved as in ``OperatorKernelRegressorCV``. The error of a held-out curve is its mean squared distance to
    the prediction over the points at which it was observed. The chosen pair is then fitted on the whole sample.
    Quantities that are estimated from the data (a median bandwidth, the centre) are computed once, from the whole
    sample.

    Parameters
    ----------
    kernel : "auto", kernel, str, callable or None, default="auto"
        ``"auto"`` searches for a kernel of the inputs, using at most 1000 samples; other values are as for
        ``FunctionalRegressor``.
    output_kernel : kernel, str, callable, list of these, or None, default=None
        As for ``FunctionalRegressor``. With ``kernel="auto"``, ``None`` means a Laplacian kernel whose length, 0.05,
        0.1, 0.2 or 0.5 of the domain, is chosen by the held-out errors of the square loss, or of all losses if one of
        them is robust.
    lams, losses
        As for ``OperatorKernelRegressorCV``.
    representation : {"spline", "eigen", "fourier"} or CurveRepresentation, default="spline"
        As for ``FunctionalRegressor``. With ``kernel="auto"``, ``"spline"`` is ``Spline(quadrature="mean")``, whose
        integrals are means over the domain.
    n_components
        As for ``FunctionalRegressor``.
    center : bool, "median" or "auto", default="auto"
        As for ``FunctionalRegressor``. ``"auto"`` is the mean, or the median if ``kernel="auto"`` selects a robust
        loss.
    channels
        As for ``FunctionalRegressor``.
    cv, aggregate
        As for ``OperatorKernelRegressorCV``. With contaminated curves ``aggregate="trimmed_mean"`` or ``"median"`` is
        the robust choice.
    tol
        As for ``FunctionalRegressor``.
    n_jobs, checkpoint, progress
        As for ``OperatorKernelRegressorCV``.
    approximation : Approximation, "auto" or None, default="auto"
        ``None`` is an exact fit, whatever it takes. ``"auto"`` is an exact fit unless it is estimated to take more than
        half an hour: then landmarks replace the kernel, as many as fit in memory, and ``certificate_`` is "sampled".
        Other values are as for ``FunctionalRegressor``.
    scale : bool, "robust" or "auto", default="auto"
        As for ``FunctionalRegressor``. ``"auto"`` divides each output channel by its scale with ``kernel="auto"``,
        unless a threshold of a loss is a number; ``channels`` then couples the scaled channels. Held-out errors are in
        these units.
    scoring : str, callable or None, default=None
        As for ``OperatorKernelRegressorCV``, for curves at the points of the grid, (n, m) or (n, m, c). Scores given by
        name do not support missing values: use ``fenchel.metrics.curve_scorer``.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.
    metric : array of shape (d,) or (d, k), or None, default=None
        As for ``OperatorKernelRegressorCV``, for inputs that are vectors.

    Attributes
    ----------
    best_kernel_, best_loss_, best_lam_ : kernel, Loss, float
        The chosen kernel, loss and lam, with data-dependent parameters resolved to numbers.
    search_ : dict of lists or None
        Results of the kernel search, as for ``OperatorKernelRegressorCV``.
    losses_, lams_ : list
        The losses and the values of lam that were compared.
    n_searched_ : int
        Number of samples on which they were compared: all, or 2000 of more if ``cv`` is a number. From 4001 samples on
        ``best_lam_`` may lie between them, as larger parts of the sample prefer.
    cv_errors_ : array of shape (n_losses, n_lams)
        Errors of held-out curves, aggregated over curves and folds.
    fold_errors_ : array of shape (n_losses, n_lams, n_folds)
        Mean error over the curves of each fold.
    cv_gaps_ : array of shape (n_losses, n_lams)
        Largest relative duality gap over the folds.
    best_estimator_ : FunctionalRegressor
        The model fitted on the whole sample; its fitted attributes are also available on this object.

    Examples
    --------
    >>> from fenchel import FunctionalRegressorCV
    >>> from fenchel.datasets import make_functional
    >>> from fenchel.losses import Huber
    >>> data = make_functional(30, 20, random_state=0)
    >>> FunctionalRegressorCV().fit(data.X, data.Y).predict(data.X[:2]).shape
    (2, 20)
    >>> model = FunctionalRegressorCV(None, lams=[1e-4, 1e-2], losses=["square", Huber(0.5, p=1)]).fit(data.X, data.Y)
    >>> model.cv_errors_.shape, bool(model.cv_gaps_.max() <= 1e-6)
    ((2, 2), True)
    """

    def __init__(
        self,
        kernel: KernelLike | None = "auto",
        output_kernel: KernelLike | None = None,
        lams: ArrayLike | None = None,
        losses: Sequence[Loss | str] | str = "auto",
        representation: CurveRepresentation | str = "spline",
        n_components: float | None = None,
        center: bool | str = "auto",
        channels: Array | None = None,
        cv: object = 5,
        aggregate: str = "auto",
        tol: float = 1e-6,
        n_jobs: int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        progress: Progress = None,
        approximation: Approximation | str | None = "auto",
        scale: bool | str = "auto",
        scoring: str | Callable[..., object] | None = None,
        certificate: str = "approximate",
        metric: Array | None = None,
    ) -> None:
        self.kernel = kernel
        self.output_kernel = output_kernel
        self.lams = lams
        self.losses = losses
        self.representation = representation
        self.n_components = n_components
        self.center, self.scale = center, scale  # of the outputs
        self.channels = channels
        self.cv = cv
        self.aggregate = aggregate
        self.tol = tol
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.progress = progress
        self.approximation = approximation
        self.scoring = scoring
        self.certificate = certificate
        self.metric = metric

    @tracked
    def fit(
        self,
        X: Outputs,
        y: Outputs,
        grid: ArrayLike | None = None,
        sample_weight: Array | None = None,
        groups: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Choose loss and lam, then fit on the whole sample.

        Parameters
        ----------
        X, y, grid, sample_weight
            As for ``FunctionalRegressor.fit``.
        groups : array of shape (n,) or None, default=None
            Groups of samples that are held out together, such as replicates. They are passed to ``cv`` if it is a
            splitter; a number of folds means ``GroupKFold``. The kernel search leaves out one group at a time.
        order : array of shape (n,) or None, default=None
            When samples were taken, as times or numbers, instead of ``groups``: blocks of samples that follow one
            another are then held out together, 10 to 100 of them.

        Returns
        -------
        self : FunctionalRegressorCV
            The fitted model.
        """
        return self._choose(X, y, sample_weight, blocks_of(order, groups, X, self.cv), grid=grid)

    def _narrowed(
        self, choice: KernelChoice, search: Search, machine: FunctionalRegressor, spec: Spec, **form: Any
    ) -> tuple[TrainingSet, Search]:
        """Return the training set with the chosen kernels, and the remaining grid of losses and lams.

        The output kernel of the machine is set to the chosen one.
        """
        search = search.chosen(choice, choice.resolved_losses() if choice.is_robust else choice.losses, self)
        spec, raced_set = replace(spec, lam=min(search.lams)), choice.training_set
        task: Functions = task_of(machine, **form)
        codec = _codec(raced_set)
        lams = choice.search.lam * _DECADES if self.lams is None else search.lams
        pilot = search.pilot([Square()], lams)
        pilot = replace(pilot, is_open=self.lams is None, tol=max(self.tol, _PILOT_TOL))
        training_set = raced_set.with_kernel(task.kernel_of(raced_set.sample, codec), spec)
        if _is_mostly_estimated(training_set):
            with part(_RIVALS):
                task, training_set = _best_with_gaps(choice, task, training_set, spec, pilot)
            machine.set_params(kernel=task.kernel)
        shares = self._output_lengths(training_set)
        if not shares:
            return training_set, search
        _warn_of_points(training_set)
        trials = list[tuple[TrainingSet, SearchResult]]()
        shared = training_set.remembered()
        for k, share in enumerate(shares):
            kernel = Laplacian(1 / (share * float(np.ptp(codec.grid))))
            candidate = _with_output_kernel(shared, replace(task, output_kernel=kernel), spec)
            cleaned = choice.cleaned(candidate) if choice.is_robust else candidate
            with part(grid_share(len(shares) - k)):  # the search over losses and lam is another one
                result = pilot.on(cleaned)(cleaned, search.folds(cleaned), squared_distance(cleaned))
            _LOG.info(f"FunctionalRegressorCV: output kernel {len(trials) + 1} of {len(_SHARES)}, {kernel!r}")
            trials.append((candidate, result))
            if not result.is_whole:
                break
        place = int(ranked([result.least for _, result in trials])[0])
        training_set, result = trials[place]
        machine.set_params(output_kernel=Laplacian(1 / (shares[place] * float(np.ptp(codec.grid)))))
        best = result.lam
        if choice.is_robust:
            search = replace(search, losses=choice.losses_at(training_set, best, self.tol))
        lams = (best * _STEPS).tolist() if self.lams is None else search.lams
        lams = lams if trials[-1][-1].is_whole else [best]
        return training_set, replace(search, lams=lams)

    def _output_lengths(self, training_set: TrainingSet) -> tuple[float, ...]:
        """Return the lengths of the output kernel to choose from, none if the kernel is given."""
        codec = _codec(training_set)
        is_given = self.output_kernel is not None or codec.representation.has_eigenvalues
        if is_given or len(codec.grid) < _FEWEST_POINTS or training_set.n_samples > self.most_raced:
            return ()
        return _SHARES

    def _machine(self, losses: Sequence[Loss] = (), is_robust: bool = False) -> FunctionalRegressor:
        """Return the estimator of one pair, with outputs scaled as the losses require."""
        is_free = is_auto(self.kernel) and all(loss.is_unit_free for loss in losses)
        representation = self.representation
        if is_auto(self.kernel) and isinstance(representation, str) and representation == "spline":
            representation = Spline(quadrature="mean")
        return self._with_shared(
            FunctionalRegressor,
            representation=representation,
            center=("median" if is_robust else True) if is_auto(self.center) else self.center,
            scale=(is_free and ("robust" if is_robust else True)) if is_auto(self.scale) else self.scale,
        )


def _best_with_gaps(
    choice: KernelChoice, task: Functions, training_set: TrainingSet, spec: Spec, pilot: Search
) -> tuple[Functions, TrainingSet]:
    """Return the task and the training set with the kernel whose held-out errors at the observed values are smallest.

    The race has compared kernels on curves that were completed, without an output kernel: with many gaps it cannot
    tell kernels apart that differ much in the problem itself.
    """
    best: tuple[float, Functions, TrainingSet] | None = None
    kernels = [task.kernel, *choice.search.rivals()]
    for k, kernel in enumerate(kernels):
        other = replace(task, kernel=kernel)
        candidate = training_set
        if kernel is not task.kernel:
            candidate = training_set.with_kernel(other.kernel_of(training_set.sample, training_set.codec), spec)
        cleaned = choice.cleaned(candidate) if choice.is_robust else candidate
        with part(1 / (len(kernels) - k)):
            result = pilot.on(cleaned)(cleaned, pilot.folds(cleaned), squared_distance(cleaned))
        if best is None or ranked([best[0], result.least])[0]:
            best = result.least, other, candidate
        if not result.is_whole:
            break
    assert best is not None  # the kernel of the race is always there
    return best[1:]


def _is_mostly_estimated(training_set: TrainingSet) -> bool:
    """Whether most of the values on which the race compares kernels are estimates, as with points of their own."""
    observed = training_set.targets.observed
    return observed is not None and bool(np.mean(host(observed)) < 0.5)


def _codec(training_set: TrainingSet) -> FunctionCodec:
    """Return what was learned from the outputs."""
    assert isinstance(training_set.codec, FunctionCodec)  # what ``Functions`` learns
    return training_set.codec


def _with_output_kernel(training_set: TrainingSet, task: Functions, spec: Spec) -> TrainingSet:
    """Return the training set with the output kernel of a task, in the same coordinates if they do not depend on it."""
    codec = _codec(training_set)
    operator = task.operator_on(codec.grid, codec.representation)
    if codec.representation.takes_basis_of_operator:
        return TrainingSet.learn(task, training_set.sample, spec)
    return training_set.with_operator(operator, replace(codec, operator=operator.resolve(codec.grid)))


def _warn_of_points(training_set: TrainingSet) -> None:
    """Warn if the curves have so many points in all that the search is estimated to take more than a minute."""
    n_points = training_set.sample.y.values.shape[1]
    minutes = _SECONDS * (n_points / 1000) ** 3 / 60
    if training_set.targets.observed is not None and minutes > 1:
        warn_user(
            f"The curves were observed at {n_points} points in all: the search takes {minutes:.1f} minutes or more. "
            "Give output_kernel, which is then not searched for, or smooth the curves to a basis first (to_basis of "
            "scikit-fda). The logger 'fenchel' tells how far it is.",
            SlowFitWarning,
            "slow-fit",
        )
