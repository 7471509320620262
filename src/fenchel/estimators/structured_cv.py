"""``StructuredPredictor`` with kernel, loss and lam chosen by cross-validation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import Tags

from fenchel._array import Array, Outputs, as_like, host
from fenchel._check import Options, check_parameter
from fenchel._component import all_or_nothing
from fenchel._progress import Progress, part, tracked
from fenchel.approximations import Approximation
from fenchel.decoders import Decoder
from fenchel.decoders.choice import are_label_sets, suitable_decoders
from fenchel.decoders.decoder import Space
from fenchel.decoders.products import decoding_space
from fenchel.estimators.search_machine import PairSearchMachine, Prepared
from fenchel.estimators.structured import DecodingPredictor, StructuredPredictor, own_decoder
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Identity, KernelLike, OperatorLike, as_operator
from fenchel.losses import Loss
from fenchel.metrics import hamming_losses
from fenchel.metrics.labels import LABEL_LOSSES
from fenchel.model.input_gaps import fills_gaps
from fenchel.model.machine import Fitted, task_of
from fenchel.model.training_set import TrainingSet
from fenchel.representations import KernelOutputs
from fenchel.resample.folds import blocks_of
from fenchel.search.choice import is_auto
from fenchel.search.decoders import DecoderChoice
from fenchel.search.ranking import RANK_SCORES, Ranking, rank_errors
from fenchel.search.result import SearchResult
from fenchel.search.scoring import Scoring
from fenchel.search.search import Search, grid_share, squared_distance

__all__ = ["StructuredPredictorCV"]

_WIDTHS = (1.0, 0.5, 2.0)  # bandwidths of Gaussian output kernels, in median distances


@dataclass(frozen=True)
class _Trial:
    """Result of the search for one output kernel, with or without centring."""

    machine: StructuredPredictor
    training_set: TrainingSet
    result: SearchResult


class StructuredPredictorCV(DecodingPredictor, PairSearchMachine[StructuredPredictor]):
    """``StructuredPredictor`` with kernel, loss and lam chosen by cross-validation.

    Parameters
    ----------
    kernel : "auto", str, kernel or callable, default="auto"
        ``"auto"`` searches for a kernel on the columns of X, whose units do not matter, by leave-one-out errors in the
        output space; other values are as for ``StructuredPredictor``.
    output_kernel : "auto", str, kernel, callable or list of these, default="auto"
        Kernel of the outputs, or a list to choose from by the task loss. ``"auto"`` is the linear kernel; for vectors
        with a task loss and no decoder, Gaussian kernels with half, once and twice the median distance are compared
        too.
    lams
        As for ``OperatorKernelRegressorCV``.
    losses : sequence of Loss or str, or "auto", default="auto"
        Losses to choose from; ``"auto"`` is the square loss, since rare objects are not outliers.
    decoder : "auto", Decoder or str, default="auto"
        As for ``StructuredPredictor``; a threshold of ``"auto"`` is chosen by the task loss of held-out samples.
        ``"auto"`` chooses between the training outputs and, for label sets (rows of zeros and ones), a threshold.
    operator
        As for ``StructuredPredictor``.
    center : bool or "auto", default="auto"
        As for ``StructuredPredictor``. ``"auto"`` centres the outputs if ``kernel="auto"``; with any other kernel, and
        if ranks are scored, both are tried, and the one with the smaller held-out error is kept
        (``best_estimator_.center``).
    task_loss : callable or None, default=None
        ``task_loss(Y, decoded)`` gives the loss of each decoded output, (n,), such as ``hamming_losses``. ``None``
        chooses loss and lam by the squared distance in the output space before decoding, then the decoder of label sets
        by ``hamming_losses``.
    cv, aggregate
        As for ``OperatorKernelRegressorCV``.
    tol
        As for ``StructuredPredictor``.
    n_jobs, checkpoint, progress
        As for ``OperatorKernelRegressorCV``. Each combination of output kernel and centring that is tried has its own
        checkpoint, ``errors.npz``, ``errors-1.npz`` and so on.
    approximation : Approximation, "auto" or None, default="auto"
        ``None`` is an exact fit, whatever it takes. ``"auto"`` is an exact fit unless it is estimated to take more than
        half an hour: then landmarks replace the kernel, as many as fit in memory, and ``certificate_`` is "sampled".
        Other values are as for ``StructuredPredictor``.
    scoring : str, callable or None, default=None
        What settings are compared by, an alternative to ``task_loss``. ``"rank"`` is the share of candidates ranked
        before the true output, ``"reciprocal_rank"`` and ``"top_1"``, ``"top_3"`` and so on count the first places;
        candidates are those passed to ``fit``, or those of the decoder and the training outputs. ``"f1"``,
        ``"hamming"`` and ``"subset"`` are for label sets, as in ``fenchel.metrics.label_scorer``. Anything else is as
        for ``OperatorKernelRegressorCV``, for decoded outputs. ``None`` is ``"rank"`` if candidates are passed to
        ``fit``.
    output_approximation : Approximation or None, default=None
        As for ``StructuredPredictor``.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.

    Attributes
    ----------
    best_kernel_, best_loss_, best_lam_, search_, cv_errors_, fold_errors_, cv_gaps_, losses_, lams_, n_searched_
        As for ``OperatorKernelRegressorCV``.
    best_output_kernel_ : kernel or str
        The chosen kernel of the outputs.
    best_estimator_ : StructuredPredictor
        The model fitted on the whole sample; its fitted attributes are also available on this object.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import StructuredPredictorCV
    >>> from fenchel.losses import Huber
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = (np.hstack([X, 3 - X, X**2]) > 1.5).astype(float)
    >>> model = StructuredPredictorCV(lams=[1e-4, 1.0], losses=["square", Huber(0.5)], decoder="threshold").fit(X, Y)
    >>> model.best_lam_
    0.0001
    """

    races_robust = False  # rare objects are not outliers
    _climbs = False  # trials of outputs follow the search

    best_output_kernel_ = Fitted[KernelLike]("output_kernel", of="best_estimator_")
    decoder_ = Fitted[Decoder]("decoder_", of="best_estimator_")

    def __init__(
        self,
        kernel: KernelLike = "auto",
        output_kernel: KernelLike | Sequence[KernelLike] = "auto",
        lams: ArrayLike | None = None,
        losses: Sequence[Loss | str] | str = "auto",
        decoder: Decoder | str = "auto",
        operator: OperatorLike = None,
        center: bool | str = "auto",
        task_loss: Callable[[Any, Any], np.ndarray] | None = None,
        cv: object = 5,
        aggregate: str = "auto",
        tol: float = 1e-6,
        n_jobs: int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        progress: Progress = None,
        approximation: Approximation | str | None = "auto",
        scoring: str | Callable[..., object] | None = None,
        output_approximation: Approximation | None = None,
        certificate: str = "approximate",
    ) -> None:
        self.kernel = kernel
        self.output_kernel = output_kernel
        self.lams = lams
        self.losses = losses
        self.decoder = decoder
        self.operator = operator
        self.center = center
        self.task_loss = task_loss
        self.cv = cv
        self.aggregate = aggregate
        self.tol = tol
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.progress = progress
        self.approximation = approximation
        self.scoring = scoring
        self.output_approximation = output_approximation
        self.certificate = certificate

    @tracked
    @all_or_nothing
    def fit(
        self,
        X: Array,
        y: Outputs,
        sample_weight: Array | None = None,
        groups: ArrayLike | None = None,
        candidates: Outputs = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Choose loss and lam, then fit on the whole sample.

        Parameters
        ----------
        X, y, sample_weight
            As for ``StructuredPredictor.fit``.
        groups : array of shape (n,) or None, default=None
            Groups of samples that are held out together, such as replicates. They are passed to ``cv`` if it is a
            splitter; a number of folds means ``GroupKFold``. The kernel search leaves out one group at a time.
        candidates : array, list of arrays or None, default=None
            What the outputs are ranked among, as for ``predict``: one set for all samples, or a list with one set for
            each, which must contain its output. ``scoring`` is then a score of ranks, ``"rank"`` by default.
        order : array of shape (n,) or None, default=None
            When samples were taken, as times or numbers, instead of ``groups``: blocks of samples that follow one
            another are then held out together, 10 to 100 of them.

        Returns
        -------
        self : StructuredPredictorCV
            The fitted model.
        """
        if self.task_loss is not None and self.scoring is not None:
            raise ValueError("Set either task_loss or scoring, not both: each of them selects loss, lam and decoder.")
        self._check_scoring(candidates is not None)
        own_decoder(self._machine())  # raises if it is invalid
        found = self._prepared(X, y, sample_weight, blocks_of(order, groups, X, self.cv))
        ranking = self._ranking(found.training_set, candidates)
        best = min(self._trials(found, ranking), key=lambda trial: trial.result.least)
        return self._fit_best(best.machine, best.training_set, best.result, found.choice, found.whole)

    def _trials(self, found: Prepared[StructuredPredictor], ranking: Ranking | None) -> "Iterator[_Trial]":
        """Yield the results of the search for each output kernel, with and without centring."""
        search, machine, training_set = found.search, found.machine, found.training_set
        by_task_loss = any(given is not None for given in (self.task_loss, self.scoring, ranking))
        kernels = self._output_kernels(training_set, by_task_loss)
        by_task_loss = by_task_loss or len(kernels) > 1
        pairs = list(product(self._centers(ranking is not None), [machine.output_kernel, *kernels[1:]]))
        training_set = training_set if len(pairs) == 1 else training_set.remembered()
        with part(grid_share(len(pairs) - 1)):
            trial = self._trial(search, machine, training_set, by_task_loss, ranking)
        yield trial
        for k, (center, kernel) in enumerate(pairs[1:], start=1):
            if not trial.result.is_whole:
                return
            other = clone(machine).set_params(center=center, output_kernel=kernel)
            task = task_of(other)
            if isinstance(as_operator(self.operator), Identity):
                data = training_set.with_outputs(*task.learn(training_set.sample))
            else:
                spec = replace(self._search_spec(), lam=min(search.lams))
                data = TrainingSet.learn(task, training_set.sample, spec)
            with part(grid_share(len(pairs) - k - 1)):
                trial = self._trial(_numbered(search, k), other, data, by_task_loss, ranking)
            yield trial

    def _trial(
        self,
        search: Search,
        machine: StructuredPredictor,
        training_set: TrainingSet,
        by_task_loss: bool,
        ranking: Ranking | None,
    ) -> "_Trial":
        """Return the result of the search with one output kernel; the machine gets the chosen decoder."""
        folds = search.folds(training_set)
        space = _decoding_space(search, training_set, by_task_loss)
        if ranking is not None:
            measure = ranking.measure(space, _coordinates(training_set), folds)
            return _Trial(machine, training_set, search(training_set, folds, measure, settings=str(ranking)))
        decoding = self._decoding(machine, training_set, space, folds, by_task_loss)
        measure = squared_distance(training_set)
        if decoding is not None and by_task_loss:
            measure = decoding
        name = "" if self.task_loss is None else getattr(self.task_loss, "__qualname__", repr(self.task_loss))
        settings = f"{self.decoder!r} {name}" + ("" if self.scoring is None else f" {Scoring.of(self, LABEL_LOSSES)}")
        result = search(training_set, folds, measure, settings=settings)
        if decoding is None:
            return _Trial(machine, training_set, result)
        decoder = decoding.decoders[0]
        if len(decoding.decoders) > 1:
            decoder = decoding.best(search.predictions(training_set, folds, result))
        return _Trial(machine.set_params(decoder=decoder), training_set, result)

    def _decoding(
        self,
        machine: StructuredPredictor,
        training_set: TrainingSet,
        space: Space,
        folds: list[np.ndarray],
        by_task_loss: bool,
    ) -> DecoderChoice | None:
        """Return the decoders to choose from by the task loss of held-out outputs; ``None`` if there is no choice."""
        representation = _features(training_set)
        decoders = suitable_decoders(space) if is_auto(self.decoder) else [own_decoder(machine)]
        if not by_task_loss and len(decoders) == len(decoders[0].options()) == 1:
            return None
        if representation.is_pairwise:
            raise IncompatibleError(
                "A task loss needs outputs, but y is their Gram matrix. Use task_loss=None, or an output kernel."
            )

        counts, coordinates = training_set.sample.counts, _coordinates(training_set)
        task_loss = self._task_loss(representation)
        return DecoderChoice.of(decoders, space, representation.outputs_, folds, counts, coordinates, task_loss)

    def _task_loss(self, representation: KernelOutputs) -> Callable[[Any, Any, np.ndarray], np.ndarray]:
        """Return the loss by which decoded outputs are compared: the given one, or that of label sets."""
        scoring, task_loss = Scoring.of(self, LABEL_LOSSES), self.task_loss
        if scoring is not None:
            return scoring.errors
        if task_loss is None:
            if not are_label_sets(representation.outputs_):
                raise ValueError("The choice among output kernels or thresholds needs a task loss. Set task_loss.")
            task_loss = hamming_losses
        return lambda truth, decoded, counts: task_loss(truth, decoded)

    def _ranking(self, training_set: TrainingSet, candidates: Outputs) -> Ranking | None:
        """Return the ranking by which settings are compared; ``None`` for other scores."""
        score = self.scoring if candidates is None or self.scoring is not None else "rank"
        errors = rank_errors(score)
        if errors is None:
            return None
        decoder, space = own_decoder(self._machine()), _features(training_set)
        return Ranking.of(str(score), errors, candidates, training_set.sample, decoder, space)

    def _check_scoring(self, has_candidates: bool) -> None:
        """Raise if ``scoring`` is invalid, or if candidates are given and something else than ranks is compared."""
        if rank_errors(self.scoring) is not None:
            return
        if has_candidates and (self.task_loss is not None or self.scoring is not None):
            raise ValueError(f"Candidates are passed to fit to be ranked. Use scoring={RANK_SCORES}, or None.")
        try:
            Scoring.of(self, LABEL_LOSSES)
        except ValueError as error:
            own = ", ".join(f"{name!r}" for name in LABEL_LOSSES)
            raise ValueError(f"{error} StructuredPredictorCV also knows {RANK_SCORES}, and {own}.") from error

    def _output_kernels(self, training_set: TrainingSet, by_task_loss: bool) -> list[KernelLike]:
        """Return the output kernels to choose from; the first is that of the data."""
        if isinstance(self.output_kernel, list | tuple):
            return list(self.output_kernel)
        outputs = _features(training_set).outputs_
        is_open = is_auto(self.output_kernel) and is_auto(self.decoder) and by_task_loss
        if not is_open or outputs.ndim != 2 or host(outputs).dtype.kind not in "biuf":
            return [cast(KernelLike, self.output_kernel)]
        median = float(Gaussian("median").resolve(outputs).gamma)  # type: ignore[arg-type]  # a number now
        return ["linear", *(Gaussian(median / width**2) for width in _WIDTHS)]

    def _centers(self, is_ranked: bool = False) -> tuple[bool, ...]:
        """Return whether to centre the outputs: both choices if the search decides."""
        check_parameter(type(self).__name__, "center", self.center, Options((False, True, "auto")))
        if not isinstance(self.center, str):
            return (self.center,)
        if not is_auto(self.kernel):
            return (False, True)
        return (True, False) if is_ranked else (True,)

    def _machine(self, losses: Sequence[Loss] = (), is_robust: bool = False) -> StructuredPredictor:
        """Return the estimator of one pair, with the first output kernel."""
        given = self.output_kernel
        kernels = list(given) if isinstance(given, list | tuple) else [given]
        if not kernels:
            raise ValueError("The 'output_kernel' parameter must hold at least one kernel. Got none.")
        return self._with_shared(
            StructuredPredictor,
            output_kernel="linear" if is_auto(kernels[0]) else kernels[0],
            decoder="training_set" if is_auto(self.decoder) else self.decoder,
            center=self._centers()[0],
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not is_auto(self.kernel)  # standardised inputs are dense
        tags.input_tags.allow_nan = fills_gaps(self.kernel)
        return tags


def _features(training_set: TrainingSet) -> KernelOutputs:
    """Return the feature space of the outputs."""
    representation = training_set.codec.representation
    assert isinstance(representation, KernelOutputs)  # what ``Objects`` learns
    return representation


def _coordinates(training_set: TrainingSet) -> Callable[[np.ndarray], Array]:
    """Return the map from predictions to elements of the feature space of the outputs."""

    def coordinates(predictions: np.ndarray) -> Array:
        return training_set.codec.decode(as_like(predictions, training_set.targets.rows))

    return coordinates


def _decoding_space(search: Search, training_set: TrainingSet, by_task_loss: bool) -> Space:
    """Return the space of the decoders, which all losses of the search must share."""
    is_margin = {loss.compares_products for loss in search.losses}
    if is_margin == {False, True} or (True in is_margin and not by_task_loss):
        raise IncompatibleError(
            "Held-out predictions of a loss of inner products such as MaxMargin can be compared only after decoding, "
            "and with losses of its kind. Set task_loss or scoring, and losses=[MaxMargin()]."
        )
    space: Space = decoding_space(search.losses[0], _features(training_set))
    return space


def _numbered(search: Search, k: int) -> Search:
    """Return the search with the checkpoint of its k-th trial, ``errors-1.npz`` for ``errors.npz``."""
    if search.checkpoint is None:
        return search
    path = Path(search.checkpoint)
    return replace(search, checkpoint=path.with_name(f"{path.stem}-{k}{path.suffix}"))
