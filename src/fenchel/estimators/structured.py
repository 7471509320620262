"""Structured prediction: regression into the feature space of an output kernel, then a decoder."""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags

from fenchel import approximations as approximation_room
from fenchel import decoders as decoder_room
from fenchel._array import Array, as_objects, host, is_host, is_numpy, namespace
from fenchel._check import check_array, outputs_like
from fenchel.approximations import Approximation
from fenchel.decoders import Candidates, Decoder
from fenchel.decoders.products import decoding_space
from fenchel.estimators.fitted_dual import FittedDual, KernelExpansion, expose, fit_refined
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.training_set import TrainingSet, encode
from fenchel.estimators.validation import (
    DualSettings,
    all_or_nothing,
    is_regular,
    new_inputs,
    part_of,
    sample_weights,
    training_inputs,
)
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import as_operator_kernel, as_scalar_kernel
from fenchel.losses import Loss
from fenchel.representations import KernelOutputs

__all__ = ["StructuredPredictor"]

_INTEGRAL = ("bool", "integral")


@dataclass(frozen=True)
class _Encoded:
    training_set: TrainingSet
    representation: KernelOutputs
    decoder: Decoder  # not fitted
    format: Any  # empty array in the dtype of integer outputs; None for other outputs


class StructuredPredictor(NamedPartsMixin, BaseEstimator):
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
        The output operator of a scalar kernel, such as ``"covariance"``.
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

    _expansion: KernelExpansion
    representation_: KernelOutputs

    def __init__(
        self,
        kernel: Any = "gaussian",
        output_kernel: Any = "linear",
        loss: Any = "square",
        lam: float = 1e-3,
        decoder: Any = "training_set",
        operator: Any = None,
        center: bool = False,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        approximation: Any = None,
        output_approximation: Any = None,
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

    @all_or_nothing
    def fit(self, X: Array, y: Any, sample_weight: Array | None = None) -> Self:
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
        settings = self._settings()
        encoding = partial(self._encode, X, y, sample_weight, settings)
        return self._expose(*fit_refined(encoding, settings))

    def predict(self, X: Array, candidates: Any = None) -> Any:
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
            return self._as_training_format(self.decoder_.decode(coordinates))
        if self.representation_.is_pairwise:
            return np.array([order[0] for order in self._candidate_decoder().nearest(coordinates, 1, candidates)])
        return self._candidate_decoder().decode(coordinates, candidates)

    def decision_scores(self, X: Array, candidates: Any = None) -> Any:
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

    def top_k(self, X: Array, k: int, candidates: Any = None, indices: bool = False) -> Any:
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
        return self._as_training_format(best) if candidates is None else best

    def embed(self, X: Array) -> Array:
        """Return the predictions as coordinates in the output space, shape (m, p)."""
        X = new_inputs(self, X)
        return self._expansion.predict_coordinates(X) + self.representation_.mean_

    def score(self, X: Array, y: Any) -> float:
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
        predicted, representation = self.predict(X), self.representation_
        if representation.is_pairwise:
            raise IncompatibleError("score needs a kernel of the outputs, not their Gram matrix. Use predict.")
        predicted, y = (self._outputs(part, representation.targets_) for part in (predicted, y))
        kernel = representation.kernel_
        if len(y) != len(predicted):
            raise ValueError(f"X and y must have the same number of samples. Got {len(predicted)} and {len(y)}.")
        products = [float(kernel(predicted[i : i + 1], y[i : i + 1])[0, 0]) for i in range(len(y))]
        return -float(np.mean(host(kernel.diag(predicted)) + host(kernel.diag(y)) - 2 * np.array(products)))

    def _candidate_decoder(self, has_own: bool = False) -> Any:
        """Return the decoder if it has candidates, else a decoder for the given candidates."""
        decoder = getattr(self.decoder_, "inner_", self.decoder_)
        if isinstance(decoder, Candidates):
            return decoder
        if has_own:
            raise IncompatibleError(
                f"{type(decoder).__name__} has no candidates. Pass candidates, or use decoder='training_set'."
            )
        return Candidates().fit(None, self.decoder_.representation_)

    def _settings(self) -> DualSettings:
        return DualSettings.of(self, self.loss)

    def _set_loss_and_lam(self, loss: Loss, lam: float) -> Self:
        return self.set_params(loss=clone(loss), lam=lam)

    def _encode(
        self, X: Any, y: Any, sample_weight: Array | None, settings: DualSettings, double: bool = False
    ) -> _Encoded:
        """Return checked data, with the outputs in their feature space."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X, kernel = training_inputs(self, X, as_operator_kernel(self.kernel, self.operator).validate(), double, True)
        outputs = self._outputs(y, X)
        if len(outputs) != X.shape[0]:
            raise ValueError(f"X and y must have the same number of samples. Got {X.shape[0]} and {len(outputs)}.")
        output_kernel = as_scalar_kernel(self.output_kernel)
        output_approximation = self.output_approximation
        if output_approximation is not None:
            output_approximation = part_of(
                output_approximation, approximation_room, "output_approximation", Approximation
            )
        representation = KernelOutputs(output_kernel, None, self.center, output_approximation).validate()
        decoder = part_of(self.decoder, decoder_room, "decoder", Decoder).validate()
        if output_kernel.tags.is_pairwise and sample_weights(sample_weight, X)[1] is not None:
            raise ValueError(
                "Samples of weight zero are not supported with an output Gram matrix. Remove them from X and y."
            )
        training_set = encode(X, outputs, kernel, representation, settings, sample_weight)
        is_objects = is_numpy(outputs) and outputs.dtype.kind == "O"
        format = None if is_objects or output_kernel.tags.is_pairwise else _no_rows(y)
        return _Encoded(training_set, representation, decoder, format)

    def _expose(self, encoded: _Encoded, fitted: FittedDual) -> Self:
        """Set the fitted attributes."""
        expose(self, fitted)
        space = decoding_space(self.loss_, encoded.representation)
        self.decoder_ = encoded.decoder.fit(encoded.representation.outputs_, space)
        self._format = encoded.format
        return self

    def _as_training_format(self, decoded: Any) -> Any:
        """Return decoded outputs in the dtype of the training outputs, if they are values of that kind."""
        if self._format is None or not self.decoder_.keeps_dtype:
            return decoded
        return namespace(decoded).astype(decoded, self._format.dtype, copy=False)

    def _outputs(self, y: Any, X: Array) -> Any:
        """Return outputs as an array that can be indexed: numbers in the dtype of X, other objects unchanged."""
        if is_host(y):
            numbers = np.asarray(y) if hasattr(y, "dtype") or is_regular(y) else None
            if numbers is not None and numbers.dtype == object and all(isinstance(v, Real) for v in numbers.flat):
                numbers = numbers.astype(np.float64)  # numbers stored as objects, as in some tables
            if numbers is None or numbers.dtype.kind not in "biuf":
                return as_objects(y)
            y = numbers
        y = y[:, None] if y.ndim == 1 else y
        return check_array(outputs_like(y, X, "y"), "y", ndim=tuple(range(2, y.ndim + 1)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False  # one output is a vector of one entry
        with suppress(TypeError, ValueError):  # fit raises the error, with its message
            tags.input_tags.pairwise = as_operator_kernel(self.kernel, self.operator).is_pairwise
        return tags


def _no_rows(y: Any) -> Any:
    """Return an empty array in the dtype of integer outputs; ``None`` for other outputs."""
    empty = (np.asarray(y) if is_host(y) else y)[:0]
    is_integral = empty.dtype.kind in "biu" if is_numpy(empty) else namespace(empty).isdtype(empty.dtype, _INTEGRAL)
    return empty if is_integral else None
