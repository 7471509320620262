"""Structured prediction: regression into the feature space of an output kernel, then a decoder."""

from typing import Self

import numpy as np
from sklearn.utils import Tags

from fenchel import decoders as decoder_room
from fenchel._array import Array, Outputs, host
from fenchel._progress import tracked
from fenchel.approximations import Approximation
from fenchel.data.frames import in_container
from fenchel.decoders import Candidates, Decoder
from fenchel.decoders.products import decoding_space
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import KernelLike, OperatorLike
from fenchel.losses import Loss
from fenchel.model.fit import Fit
from fenchel.model.kernel_outputs import Objects, outputs_of
from fenchel.model.machine import KernelMachine
from fenchel.model.spec import part_of
from fenchel.solvers import Solver

__all__ = ["DecodingPredictor", "StructuredPredictor"]


class DecodingPredictor(KernelMachine):
    """What the predictor of objects and its search share: predictions decoded from a feature space."""

    takes_sparse = True
    decoder_: Decoder

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
            One object for each sample, or its index among the training outputs if these are given as a Gram matrix.
            Label sets and training outputs keep an integer dtype that they had in ``fit``.
        """
        coordinates = self.embed(X)
        if candidates is None:
            return self._as_trained(self.decoder_.decode(coordinates))
        if self.representation_.is_pairwise:
            return np.array([order[0] for order in self._candidate_decoder().nearest(coordinates, 1, candidates)])
        return self._candidate_decoder().decode(coordinates, candidates)

    def decision_scores(self, X: Array, candidates: Outputs = None) -> Outputs:
        """Return the squared distances between predictions and candidates in the output space; smaller is better.

        With ``MaxMargin`` these are the negative inner products.

        Parameters
        ----------
        X, candidates
            As for ``predict``.

        Returns
        -------
        distances : array of shape (m, C), or list of arrays of shape (C_i,)
            One row for each sample.
        """
        return self._candidate_decoder(candidates is None).distances(self.embed(X), candidates)

    def top_k(self, X: Array, k: int, candidates: Outputs = None, indices: bool = False) -> Outputs:
        """Return the k candidates nearest to each prediction, nearest first.

        Parameters
        ----------
        X
            As for ``predict``.
        k : int
            Number of candidates; all of them are returned if there are fewer.
        candidates
            As for ``predict``.
        indices : bool, default=False
            Whether to return indices of candidates instead of the candidates themselves.

        Returns
        -------
        best : array of shape (m, k, ...) or list
            Candidates, or a list of arrays of indices.
        """
        decoder, coordinates = self._candidate_decoder(candidates is None), self.embed(X)
        if indices or self.representation_.is_pairwise:
            return decoder.nearest(coordinates, k, candidates)
        best = decoder.top_k(coordinates, k, candidates)
        return self._as_trained(best) if candidates is None else best

    def embed(self, X: Array) -> Array:
        """Return the predictions as coordinates in the output space, shape (m, p)."""
        X = self._read(X)  # raises before ``fit``
        return self.model_.read(X)

    def score(self, X: Array, y: Outputs) -> float:
        """Return the negative mean squared distance between predictions and true outputs in the output space.

        Parameters
        ----------
        X, y
            A sample, as for ``fit``.

        Returns
        -------
        score : float
            At most 0.
        """
        predicted, representation = self._with_arrays().predict(X), self.representation_
        if representation.is_pairwise:
            raise IncompatibleError("score needs a kernel of the outputs, not their Gram matrix. Use predict.")
        predicted, y = (outputs_of(part, representation.targets_) for part in (predicted, y))
        kernel = representation.kernel_
        if len(y) != len(predicted):
            raise ValueError(f"X and y must have the same number of samples. Got {len(predicted)} and {len(y)}.")
        products = [float(kernel(predicted[i : i + 1], y[i : i + 1])[0, 0]) for i in range(len(y))]
        return -float(np.mean(host(kernel.diag(predicted)) + host(kernel.diag(y)) - 2 * np.array(products)))

    def _candidate_decoder(self, has_own: bool = False) -> Candidates:
        """Return the decoder if it has candidates, else a decoder for the given candidates."""
        decoder = getattr(self.decoder_, "inner_", self.decoder_)
        if isinstance(decoder, Candidates):
            return decoder
        if has_own:
            raise IncompatibleError(
                f"{type(decoder).__name__} has no candidates. Pass candidates, or use decoder='training_set'."
            )
        return Candidates().fit(None, self.decoder_.representation_)

    def _as_trained(self, decoded: Outputs) -> Outputs:
        """Return decoded outputs in the dtype of the training outputs, if they are values of that kind."""
        return self.model_.outputs.as_trained(decoded) if self.decoder_.keeps_dtype else decoded

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False  # one output is a vector of one entry
        return tags


class StructuredPredictor(DecodingPredictor):
    r"""Structured prediction by input-output kernel regression: a model with values in a feature space, and a decoder.

    .. math:: \hat h = \arg\min_h \frac1n \sum_i \ell(\phi(y_i) - h(x_i)) + \frac\lambda2 \|h\|^2, \qquad
        \hat y(x) = \arg\min_y \|\phi(y) - \hat h(x)\|^2 .

    With ``MaxMargin``, a loss of the inner product, :math:`\hat y(x) = \arg\max_y \langle \hat h(x), \phi(y) \rangle`.

    Parameters
    ----------
    kernel : str, kernel or callable, default="gaussian"
        Kernel of the inputs, as for ``OperatorKernelRegressor``.
    output_kernel : str, kernel or callable, default="linear"
        Kernel of the outputs; with ``"precomputed"``, y is their Gram matrix. A callable of (Y, Z) accepts arbitrary
        objects.
    loss : Loss or str, default="square"
        Any loss that depends on the norm in the feature space, such as ``Huber(0.5)`` or ``EpsilonRidge(0.1)``, or
        ``MaxMargin()``, for decoders with candidates.
    lam : float, default=1e-3
        Weight of the squared norm.
    decoder : Decoder or str, default="training_set"
        ``"training_set"``, ``"candidates"``, ``"threshold"``, ``"clamp"``, ``"preimage"`` or an instance.
    operator : OutputOperator, str, array or None, default=None
        The output operator of a scalar kernel, such as ``"covariance"``; a matrix acts on the outputs themselves, and
        needs ``output_kernel="linear"``.
    center : bool, default=False
        Whether to centre the outputs in the feature space; the mean is added back to predictions.
    solver : Solver or str, default="auto"
        ``"auto"`` or a solver's name or instance.
    tol : float, default=1e-6
        The relative duality gap at which the solver stops.
    max_iter : int or None, default=None
        Maximum number of iterations; ``None`` means the solver's default.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` replaces the kernel of the inputs by one with 500 features.
    output_approximation : Approximation or None, default=None
        ``Nystrom(500)`` projects the outputs onto 500 features of their kernel, which then serve as coordinates.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.

    Attributes
    ----------
    dual_coef_, primal_objective_, dual_objective_, duality_gap_, n_iter_, status_, support_, sparsity_, outlier_score_
        As for ``OperatorKernelRegressor``; the coordinates are those of ``KernelOutputs``.
    decoder_ : Decoder
        The fitted decoder.

    Notes
    -----
    With a linear output kernel the coordinates are the outputs themselves, with any other kernel the rows of a factor
    of their Gram matrix. If the rank is low, no n × n matrix of weights on the training outputs is formed.

    References
    ----------
    [Laforgue2020]_, section 4.1; [Brouard2016]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import StructuredPredictor
    >>> from fenchel.losses import Huber
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = (np.hstack([X, 3 - X, X**2]) > 1.5).astype(float)
    >>> model = StructuredPredictor(loss=Huber(0.5), decoder="threshold").fit(X, Y)
    >>> model.predict([[0.1], [2.9]])
    array([[0., 1., 0.],
           [1., 0., 1.]])
    """

    def __init__(
        self,
        kernel: KernelLike = "gaussian",
        output_kernel: KernelLike = "linear",
        loss: Loss | str = "square",
        lam: float = 1e-3,
        decoder: Decoder | str = "training_set",
        operator: OperatorLike = None,
        center: bool = False,
        solver: Solver | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        approximation: Approximation | None = None,
        output_approximation: Approximation | None = None,
        certificate: str = "approximate",
    ) -> None:
        self.kernel = kernel
        self.output_kernel = output_kernel
        self.loss = loss
        self.lam = lam
        self.decoder = decoder
        self.operator = operator
        self.center = center
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.approximation = approximation
        self.output_approximation = output_approximation
        self.certificate = certificate

    @tracked
    def fit(self, X: Array, y: Outputs, sample_weight: Array | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n, d)
            Inputs, or their Gram matrix with ``kernel="precomputed"``.
        y : array of shape (n, ...) or list
            Outputs: vectors, label sets as 0/1 rows, arbitrary objects if the output kernel is a callable, or their
            Gram matrix with ``output_kernel="precomputed"``.
        sample_weight : array of shape (n,) or None, default=None
            Sample weights; a sample of weight 2 counts twice.

        Returns
        -------
        self : StructuredPredictor
            The fitted model.
        """
        own_decoder(self)  # raises if it is invalid
        return self._learned(X, y, sample_weight)

    def _task(self) -> Objects:
        return Objects(self.kernel, self.operator, self.output_kernel, self.center, self.output_approximation)

    def _kept(self, fit: Fit) -> Self:
        super()._kept(fit)
        space = decoding_space(self.loss_, self.representation_)
        self.decoder_ = own_decoder(self).fit(self.representation_.outputs_, space)
        return self


def own_decoder(machine: StructuredPredictor) -> Decoder:
    """Return the decoder of a predictor; raise if it is invalid."""
    return part_of(machine.decoder, decoder_room, "decoder", Decoder).validate()
