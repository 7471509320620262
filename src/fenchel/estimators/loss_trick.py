"""The loss trick: consistent structured prediction for any task loss."""

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import Tags

from fenchel import decoders as decoder_room
from fenchel._array import Array, Outputs, as_index, as_like, device, host, is_host, is_numpy, namespace
from fenchel._component import all_or_nothing
from fenchel._progress import Progress, part, tracked
from fenchel._statistics import distinct_rows
from fenchel.approximations import Approximation
from fenchel.data.content import shuffled
from fenchel.data.frames import in_container
from fenchel.decoders import Decoder
from fenchel.estimators.search_machine import Found, SearchMachine
from fenchel.kernels import Constant, KernelLike
from fenchel.losses import Loss
from fenchel.losses.profile import Quadratic
from fenchel.model.fit import Fit, learn
from fenchel.model.input_gaps import fills_gaps
from fenchel.model.machine import spec_of
from fenchel.model.output_weights import Weights
from fenchel.model.sample import Sample
from fenchel.model.spec import Spec, part_of
from fenchel.model.training_set import TrainingSet
from fenchel.resample.ridge import double_expansion
from fenchel.search.as_numbers import AsNumbers
from fenchel.search.choice import KernelChoice, is_auto
from fenchel.search.decoders import DecoderChoice
from fenchel.search.race import race_share, search_kernel
from fenchel.search.result import SearchResult
from fenchel.search.search import Search, grid_share
from fenchel.solvers import Solver
from fenchel.task_losses import TaskLoss, TaskSpace
from fenchel.task_losses.parameters import as_task_loss

__all__ = ["LossTrickPredictor"]

_LAM = 1e-3  # default for a given kernel
_COUPLINGS = (0.0, 0.25, 0.5, 1.0)  # 1 is the covariance of the outputs
_PROFILE = 100  # number of training outputs whose costs are predicted in the kernel search


_Trial = tuple[SearchResult, "LossTrickPredictor", TrainingSet]


class LossTrickPredictor(SearchMachine):
    r"""Structured prediction for any task loss, through weights on the training outputs.

    .. math:: \hat f(x) = \arg\min_y \sum_{i=1}^n \alpha_i(x) \, \Delta(y, y_i), \qquad
        \alpha(x) = (K + n \lambda I)^{-1} K_x .

    Parameters
    ----------
    kernel : "auto", str, kernel or callable, default="auto"
        Kernel of the inputs, as for ``OperatorKernelRegressor``. ``"auto"`` searches for a kernel on the columns of X,
        whose units do not matter: the one that best predicts, by leave-one-out, the costs of 100 training outputs.
    task_loss : TaskLoss, str, callable or array, default="least_squares"
        Cost of a prediction: a loss of ``fenchel.task_losses`` or its short name, a function ``delta(y, z)`` of a
        predicted and a true output, or the matrix of a ``LossMatrix``.
    lam : float or "auto", default="auto"
        Weight of the squared norm; ignored if ``lams`` is given. With ``kernel="auto"``, ``"auto"`` is chosen by
        cross-validation on the task loss, as in ``OperatorKernelRegressorCV``; with a given kernel it is 1e-3.
    surrogate : Loss or str, default="square"
        The loss with which the weights are learned. ``"square"`` gives the weights above for every output kernel.
        Another loss, such as ``Huber(0.5)``, is solved through its dual in the feature space of ``output_kernel``, and
        the double expansion of the duals gives the weights: :math:`K_x \Omega / (\lambda n)`. For losses of the norm
        these are the weights of a weighted ridge regression in which outliers weigh less.
    decoder : Decoder or str, default="auto"
        ``"auto"`` is the decoder of the task loss. ``"training_set"`` and ``"candidates"`` work with every task loss.
    output_kernel : str, kernel, callable or None, default=None
        Kernel of the outputs, for ``coupling`` and for a surrogate other than the square loss; ``None`` means the
        kernel of the task loss.
    lams : sequence of float or None, default=None
        Regularisation weights to choose from by cross-validation on the task loss; all share one factorisation.
    cv, aggregate
        As for ``OperatorKernelRegressorCV``, for the choice among ``lams``.
    solver, tol, max_iter, approximation
        As for ``OperatorKernelRegressor``.
    output_approximation : Approximation or None, default=None
        For a surrogate other than the square loss, ``Nystrom(500)`` projects the outputs onto 500 features of
        ``output_kernel``: no n × n Gram matrix of outputs is formed.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.
    progress : bool, callable or None, default=None
        How far the fit has come, as for ``OperatorKernelRegressorCV``.
    coupling : float or "auto", default=0.0
        Power :math:`\beta` of the output operator :math:`(K_Y / \|K_Y\|)^\beta`, found from the outputs, by which
        weights learn from one another: with 0 each is learned alone; with more, directions of the outputs in which
        they vary little are shrunk more. ``"auto"`` chooses from 0, 1/4, 1/2 and 1 by the task loss, with ``lams``.

    Attributes
    ----------
    dual_coef_, primal_objective_, dual_objective_, duality_gap_, n_iter_, status_, support_, sparsity_, outlier_score_
        As for ``OperatorKernelRegressor``, for the surrogate problem.
    lam_, coupling_ : float
        The values of lam and coupling that were used.
    best_kernel_, search_ : kernel and dict
        As for ``OperatorKernelRegressorCV``, with ``kernel="auto"``.
    cv_errors_ : array of shape (1, n_lams)
        Mean task loss of held-out samples; only if lam is chosen by cross-validation.
    task_loss_, decoder_ : TaskLoss, Decoder
        The fitted task loss and decoder.

    Notes
    -----
    Weights are computed with the array library and on the device of X; decoding uses NumPy.

    With ``coupling`` the surrogate problem has the kernel :math:`k \, B` with :math:`B = (K_Y / \|K_Y\|)^\beta`. For
    eigenvectors :math:`p_q` and eigenvalues :math:`b_q` of B,
    :math:`\alpha(x)^\top = K_x^\top \sum_q (K + n \lambda / b_q)^{-1} p_q p_q^\top`. Such surrogates are
    named as open in [Ciliberto2016]_, section 7.

    The weights may be negative and need not sum to one. If the loss is a squared distance between features, the part
    that depends on the prediction alone is known, and ``rule="nearest"`` lets it enter with weight one (see
    ``LeastSquares`` and ``KernelInduced``): the loss trick is then kernel ridge regression, or input-output kernel
    regression.

    References
    ----------
    [Ciliberto2016]_, Alg. 1; [Laforgue2020]_, section 4.4, for surrogates other than the square loss.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LossTrickPredictor
    >>> from fenchel.task_losses import Cauchy
    >>> X = np.linspace(0, 3, 60)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[::7] = -3.0  # outliers
    >>> model = LossTrickPredictor(task_loss=Cauchy(0.1)).fit(X, y)
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.05)
    True
    """

    loss_argument = "surrogate"
    decoder_: Decoder
    task_loss_: TaskLoss
    lam_: float
    coupling_: float

    def __init__(
        self,
        kernel: KernelLike = "auto",
        task_loss: TaskLoss | str = "least_squares",
        lam: float | str = "auto",
        surrogate: Loss | str = "square",
        decoder: Decoder | str | None = "auto",
        output_kernel: KernelLike | None = None,
        lams: ArrayLike | None = None,
        cv: object = 5,
        aggregate: str = "mean",
        solver: Solver | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        approximation: Approximation | None = None,
        output_approximation: Approximation | None = None,
        certificate: str = "approximate",
        progress: Progress = None,
        coupling: float | str = 0.0,
    ) -> None:
        self.kernel = kernel
        self.task_loss = task_loss
        self.lam = lam
        self.surrogate = surrogate
        self.decoder = decoder
        self.output_kernel = output_kernel
        self.lams = lams
        self.cv = cv
        self.aggregate = aggregate
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.approximation = approximation
        self.output_approximation = output_approximation
        self.certificate = certificate
        self.progress = progress
        self.coupling = coupling

    @tracked
    @all_or_nothing
    def fit(self, X: Array, y: Outputs, sample_weight: Array | None = None) -> Self:
        """Learn the weights, after a search for the kernel and lam if these are not given.

        Parameters
        ----------
        X : array of shape (n, d)
            Inputs, or their Gram matrix with ``kernel="precomputed"``.
        y : array of shape (n, ...) or list
            Outputs, in a format that the task loss accepts.
        sample_weight : array of shape (n,) or None, default=None
            Sample weights; a sample of weight 2 counts twice.

        Returns
        -------
        self : LossTrickPredictor
            The fitted model.
        """
        for name in ("found_", "best_estimator_"):
            self.__dict__.pop(name, None)  # from an earlier fit, perhaps with other settings
        task = self._task()
        self._own_decoder(task.task_loss)  # raises if it is invalid
        sample, choice = task.sample(self, X, y, sample_weight), None
        if is_auto(self.kernel):
            with part(race_share(sample.n_samples)):
                choice = _kernel_choice(task, sample)
            task = replace(task, kernel=choice.search.kernel)
        if self.lams is not None or is_auto(self.coupling) or (choice is not None and is_auto(self.lam)):
            return self._searched(task, sample.double(), choice)
        if choice is not None:
            self.found_ = Found(None, choice.search.kernel, choice.trials)
        return self._kept(learn(task, sample, task.spec))

    def weights(self, X: Array) -> Array:
        r"""Return the weights :math:`\alpha_i(x)` of the training outputs.

        Parameters
        ----------
        X : array of shape (m, d)
            Inputs, or their Gram matrix with the training inputs.

        Returns
        -------
        weights : array of shape (m, n)
            One row for each input.
        """
        X = self._read(X)
        return namespace(X).astype(self.model_.read(X), X.dtype, copy=False)

    @in_container
    def predict(self, X: Array, candidates: Outputs = None) -> Outputs:
        """Predict objects.

        Parameters
        ----------
        X : array of shape (m, d)
            Inputs, or their Gram matrix with the training inputs.
        candidates : array, list of arrays or None, default=None
            Candidates shared by all samples, or a list with one set for each sample; ``None`` leaves the choice to the
            decoder.

        Returns
        -------
        y : array or list
            One object for each sample.
        """
        X = self._read(X)
        weights = host(self.model_.expansion.coordinates(X)).astype(np.float64)
        if candidates is None:
            decoded = self.decoder_.decode(weights)
        else:
            space = self.decoder_.representation_
            decoded = decoder_room.Candidates().fit(space.outputs_, space).decode(weights, candidates)
        return self._as_trained(decoded, X)

    def score(self, X: Array, y: Outputs) -> float:
        """Return the negative mean task loss.

        Parameters
        ----------
        X, y
            A sample, as for ``fit``.

        Returns
        -------
        score : float
            Larger is better; 0 is perfect for losses that vanish at the true output.
        """
        truth, decoded = (part if is_host(part) else host(part) for part in (y, self._with_arrays().predict(X)))
        return 0.0 - float(np.mean(self.task_loss_(truth, decoded)))

    def _as_trained(self, decoded: Outputs, X: Array) -> Outputs:
        """Return predictions in the array library and on the device of X; floats get the dtype of the outputs."""
        kind = getattr(decoded, "dtype", np.dtype(object)).kind
        if kind == "f" and self.model_.outputs.empty is not None:
            decoded = self.model_.outputs.as_trained(decoded)
        if is_numpy(X) or kind not in "biuf":
            return decoded
        return namespace(X).asarray(decoded, device=device(X))

    def _spec(self) -> Spec:
        return Spec.of(self, self.surrogate, "surrogate", lam=_LAM if is_auto(self.lam) else self.lam)

    def _task(self, **form: Any) -> Weights:
        task_loss = as_task_loss(self.task_loss).validate()
        coupling = 0.0 if is_auto(self.coupling) else self.coupling
        return Weights(
            self.kernel,
            task_loss,
            self._spec(),
            self.output_kernel,
            self.output_approximation,
            cast(float, coupling),
        )

    def _own_decoder(self, task_loss: TaskLoss) -> Decoder:
        decoder = task_loss.decoder() if is_auto(self.decoder) else self.decoder
        return part_of(decoder, decoder_room, "decoder", Decoder).validate()

    def _searched(self, task: Weights, whole: Sample, choice: KernelChoice | None) -> Self:
        """Choose lam and the coupling by the task loss, and keep the best model."""
        lams = self.lams if self.lams is not None or is_auto(self.lam) else [self.lam]
        search, sample = Search.of(clone(self).set_params(lams=lams), [self.surrogate]).on_part(whole)
        given = clone(self).set_params(lams=None, kernel=task.kernel, lam=search.lams[0], progress=None)
        vars(given).pop("_skl_callbacks", None)
        space, found = TaskSpace(task.task_loss.resolve(sample.y), sample.y), list[_Trial]()
        couplings = _COUPLINGS if is_auto(self.coupling) else [task.coupling]
        for k, coupling in enumerate(couplings):
            machine, spec = clone(given).set_params(coupling=coupling), replace(spec_of(given), loss=search.losses[0])
            training_set = TrainingSet.learn(replace(task, coupling=coupling), sample, spec.for_search())
            folds = search.folds(training_set)
            measure = DecoderChoice.of(
                [self._own_decoder(space.task_loss)],
                space,
                sample.y,
                folds,
                sample.counts,
                lambda predictions: predictions,
                lambda truth, decoded, counts: space.task_loss(truth, decoded),
            )
            with part(grid_share(len(couplings) - k - 1)):
                result = search(training_set, folds, measure, task.is_expanded)
            found.append((result, machine, training_set))
            if not result.is_whole:
                break
        result, machine, training_set = min(found, key=lambda trial: trial[0].least)
        self._fit_best(machine, training_set, result, choice, whole)
        best = self.best_estimator_
        self.decoder_, self.task_loss_, self.lam_ = best.decoder_, best.task_loss_, self.best_lam_
        self.coupling_ = best.coupling_
        return self

    def _kept(self, fit: Fit) -> Self:
        """Keep what remains of a fit; duals in a feature space are expanded into weights."""
        sample, problem = fit.training_set.sample, fit.problem
        if fit.spec.loss.profile != Quadratic():
            active, omega = double_expansion(problem, fit.solution)
            if problem.root is not None:
                rows = as_index(active, omega)
                omega = omega * namespace(omega).take(problem.root, rows, axis=0) * problem.root.T
            fit = fit.with_coefficients(omega * problem.scale, active)
        super()._kept(fit)
        if fit.spec.loss.profile == Quadratic():  # one column for each given sample
            duals = self.model_.duals
            duals = replace(duals, coef=self.model_.codec.decode(duals.coef))
            self.model_ = replace(self.model_, duals=duals)
        self.task_loss_ = as_task_loss(self.task_loss).validate().resolve(sample.y)
        space = TaskSpace(self.task_loss_, sample.y)
        self.decoder_ = self._own_decoder(self.task_loss_).fit(sample.y, space)
        self.lam_, self.coupling_ = fit.spec.lam, cast(float, self.coupling)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = fills_gaps(self.kernel)
        return tags


def _kernel_choice(task: Weights, sample: Sample) -> KernelChoice:
    """Return the kernel that best predicts the costs of some of the training outputs.

    Costs are not centred, since the weights need not sum to one.
    """
    given = AsNumbers.of(sample)
    sample = _distinct(given.numbers)
    some = shuffled(sample.contents())[:_PROFILE]
    costs = task.task_loss.resolve(sample.y).matrix(sample.y[some], sample.y).T
    sample = sample.double()
    search = search_kernel(sample.X, costs, sample.weights, blocks=sample.inputs.blocks)
    numbers = replace(sample, inputs=replace(sample.inputs, parts=()))  # a constant kernel is none of parts
    training_set = TrainingSet.learn(replace(task, kernel=Constant()), numbers, task.spec.exactly())
    choice = KernelChoice.of(training_set, [task.spec.loss], False, {False: search})
    return replace(given, sample=sample).choice(choice)


def _distinct(sample: Sample) -> Sample:
    """Return the sample with repeated pairs of numbers as one of their total weight."""
    if sample.y.dtype.kind not in "biuf":
        return sample
    pairs = np.hstack([host(sample.X), sample.y.reshape(len(sample.y), -1)])
    first, totals = distinct_rows(pairs, sample.counts)
    if len(first) == len(pairs):
        return sample
    return replace(sample, X=sample.inputs_of(first), y=sample.y[first], weights=as_like(totals, sample.X))
