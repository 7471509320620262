"""Kernel autoencoders: encode any data and reconstruct their images in a feature space."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from fenchel import decoders as decoder_room
from fenchel._array import Array, Outputs, as_index, as_like, host, is_host, namespace, row_norms
from fenchel._check import Interval, Options, check_array, check_parameters
from fenchel._component import all_or_nothing
from fenchel._progress import part, tracked
from fenchel.approximations import Approximation
from fenchel.decoders import Candidates, Decoder
from fenchel.decoders.choice import fitted_decoder
from fenchel.decoders.products import decoding_space
from fenchel.estimators.autoencoder_data import DataSpace, doubled, like
from fenchel.estimators.layers import INTERRUPTED, Layers, Network, Reduced, descend, first_layers, layer_sizes
from fenchel.exceptions import warn_user
from fenchel.kernels import KernelLike, ScalarKernel, as_scalar_kernel, is_pairwise
from fenchel.losses import Loss
from fenchel.model.fit import duals_of, warn_unless_converged
from fenchel.model.machine import DualEstimator, Fitted
from fenchel.model.model import Duals, Record
from fenchel.model.spec import Spec, part_of
from fenchel.representations import KernelOutputs
from fenchel.solvers import Solver
from fenchel.solvers.solver import approaching, keeping_best

__all__ = ["KernelAutoencoder"]

_INNER = 0.8  # share of the inner layers
_LIMITS: dict[str, Interval | Options] = {
    "inner_lam": Interval(0, math.inf, "left", also=(None,)),
    "inner_tol": Interval(0, math.inf, "left"),
    "max_inner_iter": Interval(0, math.inf, "left", integer=True),
    "init": Options(("pca", "random")),
    "center": Options((True, False)),
    "warm_start": Options((True, False)),
}


@dataclass(frozen=True)
class Autoencoder:
    """What remains of a fitted autoencoder: its layers, and the solution of the outer one."""

    network: Network
    space: DataSpace
    duals: Duals
    record: Record


class KernelAutoencoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DualEstimator):
    r"""Autoencoder for any data with a kernel, with reconstruction in the feature space.

    .. math:: \min_{f, h} \frac1n \sum_i \ell\bigl(\phi(x_i) - h(f(x_i))\bigr) + \frac\lambda2 \|h\|^2
        + \frac\mu2 \|f\|^2, \qquad f(x) = \sum_j k(x, x_j) \varphi_j \in \mathbb{R}^d .

    The outer layer h maps codes into the feature space of ``kernel``, which may be infinite-dimensional. It is solved
    through its dual, to a certified gap, with any loss. The inner layers are fitted by L-BFGS on the exact objective,
    in which the outer layer is at its optimum given the inner ones.

    Parameters
    ----------
    n_components : int or tuple of int, default=2
        Size of the hidden layer, or the sizes of several. The codes are the outputs of the narrowest layer (the last
        one, in case of a tie).
    kernel : "auto", str, kernel or callable, default="auto"
        Kernel of the data; with ``"precomputed"``, X is their Gram matrix. ``"auto"`` is a Gaussian kernel on
        standardised columns, with the median distance as bandwidth, so that the units of the columns do not matter.
    hidden_kernel : str or kernel, default="gaussian"
        Kernel of the codes, which must be smooth: ``"linear"``, ``"gaussian"``, ``"polynomial"``, ``Matern(nu=1.5)``,
        and sums and products of these. A bandwidth of ``"median"`` is computed from the initial codes.
    loss : Loss or str, default="square"
        Any loss that depends on the norm in the feature space, such as ``Huber(0.5)`` or ``EpsilonRidge(0.1)``.
    lam : float, default=1e-3
        Weight :math:`\lambda` of the squared norm of the outer layer. Its scale is that of the kernels, whose diagonal
        is 1 by default.
    inner_lam : float or None, default=None
        Weight :math:`\mu` of the squared norms of the inner layers; ``None`` uses ``lam``.
    center : bool, default=False
        Whether to centre the data in the feature space, as ``KernelPCA`` does. The mean is added back to
        reconstructions.
    init : {"pca", "random"}, default="pca"
        Initial codes: principal components in the feature space, or random projections.
    decoder : Decoder, str or None, default=None
        How ``inverse_transform`` maps an element of the feature space back to data. ``None`` returns the vector itself
        for a linear kernel, a pre-image for a Gaussian one (also on standardised data) without ``approximation``, and
        otherwise the nearest training point.
    solver : Solver or str, default="auto"
        Solver of the outer layer.
    tol : float, default=1e-6
        The relative duality gap to which the outer layer is solved. While the inner layers are being fitted,
        ``inner_tol`` is used instead if it is larger.
    max_iter : int or None, default=None
        Maximum number of solver iterations in each solve of the outer layer; ``None`` means the solver's default.
    inner_tol : float, default=1e-5
        L-BFGS stops when an iteration decreases the objective by less than this fraction of its initial value.
    max_inner_iter : int, default=30
        Maximum number of L-BFGS iterations; 0 keeps the initial codes.
    warm_start : bool, default=False
        Whether to start from the layers of the previous fit, if it had the same number of samples.
    random_state : int, RandomState or None, default=None
        Seed of the random projections.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` takes 500 features of ``kernel`` as coordinates of the data, which are inputs and outputs of
        the network: no Gram matrix of the data is formed. Norms remain those of the kernel, so distances of
        reconstructions are exact; the certified objective is that of the features.

    Attributes
    ----------
    dual_coef_, primal_objective_, dual_objective_, duality_gap_, n_iter_, status_, support_, sparsity_, outlier_score_
        Results for the outer layer given the codes, as for a ``StructuredPredictor`` that maps codes to data.
    codes_ : array of shape (n, d)
        Codes of the training data.
    inner_coef_ : list of arrays
        Coefficients of the inner layers: (p, d_1) in the coordinates of the feature space, then (n, d_l) on the codes
        of the layer below.
    objective_ : float
        Value of the full objective.
    objective_history_ : list of float
        Value of the objective at the start and after each L-BFGS iteration; it never increases.
    n_inner_iter_, inner_status_ : int and str
        Number of L-BFGS iterations, and why they stopped. The objective is not convex, so the result is a local
        minimum.
    hidden_kernel_ : ScalarKernel
        Kernel of the last hidden layer, with its parameters resolved to numbers.
    representation_ : KernelOutputs
        The feature space of the data.
    decoder_ : Decoder
        The fitted decoder.

    Notes
    -----
    At the optimum of the outer layer, with duals :math:`a_i`, the derivative of the objective with respect to the Gram
    matrix of the codes is :math:`-\langle a_i, a_j \rangle / (2 \lambda n^2)`. The published algorithm alternates
    gradient steps on the inner layer with steps of the dual solver; here the outer layer is solved before each step of
    the inner layers.

    With the square loss, a linear ``hidden_kernel`` and ``center=True`` the reconstruction converges to that of
    ``KernelPCA`` as ``lam`` and ``inner_lam`` tend to 0. Computations are done in float64; results have the dtype of X.

    With a precomputed kernel, the norms of new points are not known to ``reconstruct`` and ``score``. If all training
    points have the same norm, new points are assumed to share it; otherwise pass ``squared_norms``.

    References
    ----------
    [Laforgue2020]_, section 4.2; [Laforgue2019]_, Algorithm 3; [LaforgueKAE2019]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import KernelAutoencoder
    >>> from fenchel.losses import Huber
    >>> t = np.linspace(0, 6, 60)
    >>> X = np.column_stack([np.cos(t), np.sin(t), t / 3])
    >>> model = KernelAutoencoder(1, lam=1e-4, loss=Huber(0.5)).fit(X)
    >>> model.transform(X).shape
    (60, 1)
    >>> bool(model.score(X) > -0.1)
    True
    """

    model_: Autoencoder

    representation_ = Fitted[KernelOutputs]("space.representation")

    def __init__(
        self,
        n_components: int | tuple[int, ...] = 2,
        kernel: KernelLike = "auto",
        hidden_kernel: KernelLike = "gaussian",
        loss: Loss | str = "square",
        lam: float = 1e-3,
        inner_lam: float | None = None,
        center: bool = False,
        init: str = "pca",
        decoder: Decoder | str | None = None,
        solver: Solver | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        inner_tol: float = 1e-5,
        max_inner_iter: int = 30,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.hidden_kernel = hidden_kernel
        self.loss = loss
        self.lam = lam
        self.inner_lam = inner_lam
        self.center = center
        self.init = init
        self.decoder = decoder
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.inner_tol = inner_tol
        self.max_inner_iter = max_inner_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.approximation = approximation

    @tracked
    @all_or_nothing
    def fit(self, X: Array, y: Outputs = None, sample_weight: Array | None = None) -> Self:
        """Fit all layers.

        Parameters
        ----------
        X : array of shape (n, d) or list
            Data: vectors, arbitrary objects if the kernel is a callable, or their Gram matrix with
            ``kernel="precomputed"``.
        y : None
            Ignored.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the samples in the mean loss; a sample of weight 2 counts as two equal ones.

        Returns
        -------
        self : KernelAutoencoder
            The fitted model.
        """
        spec = Spec.of(self, self.loss)
        loss = spec.loss
        if loss.is_relative:
            raise ValueError(f"KernelAutoencoder needs a threshold as a number, such as Huber(0.5). Got {loss!r}.")
        sizes, hidden = self._checked()
        decoder = None if self.decoder is None else part_of(self.decoder, decoder_room, "decoder", Decoder).validate()
        kernel = as_scalar_kernel(self.kernel).validate()
        space, V = DataSpace.learn(self, X, kernel, loss, self.center, spec.approximation, sample_weight)
        self.decoder_ = fitted_decoder(decoder, decoding_space(loss, space.representation))
        is_warm = self.warm_start and "model_" in vars(self)
        layers = self.model_.network.restarted(V, sizes, hidden, space.weights) if is_warm else None
        if layers is None:
            random = check_random_state(self.random_state)
            layers = first_layers(V, sizes, hidden, self.init, random, space.weights)
        inner_lam = self.lam if self.inner_lam is None else self.inner_lam
        # while the inner layers change, a gap below the gain of a step is accurate enough
        tol = max(self.tol, self.inner_tol)
        objective = Reduced(V, loss, self.lam, inner_lam, spec.solver, tol, space.weights)
        with part(_INNER):
            layers, self.objective_history_, self.inner_status_ = descend(
                objective, layers, self.max_inner_iter, self.inner_tol
            )
        self.n_inner_iter_ = len(self.objective_history_) - 1
        if self.inner_status_ == INTERRUPTED:
            text = f"{type(self).__name__}: {INTERRUPTED}. The outer layer is solved for these."
            warn_user(text, ConvergenceWarning, "not-converged")
        self._fit_outer_layer(objective, layers, space, replace(spec, tol=self.tol))
        if space.index is not None:  # samples of weight zero have codes, too
            self.codes_ = self.transform(X)
        return self

    def transform(self, X: Array) -> Array:
        """Encode data.

        Parameters
        ----------
        X : array of shape (m, d)
            Data, or their Gram matrix with the training data, (m, n).

        Returns
        -------
        codes : array of shape (m, d)
            Codes, in the dtype of X.
        """
        X, V = self._coordinates(X)
        return like(self.model_.network.codes(V - self.representation_.mean_), X)

    def embed(self, X: Array) -> Array:
        """Return the reconstructions as coordinates in the feature space, shape (m, p)."""
        X, V = self._coordinates(X)
        return like(self._reconstructed(V), X)

    def reconstruct(self, X: Array, squared_norms: Array | None = None) -> Array:
        r"""Return the distances :math:`\|\phi(x) - h(f(x))\|` between data and their reconstructions.

        Parameters
        ----------
        X : array of shape (m, d)
            Data, or their Gram matrix with the training data, (m, n).
        squared_norms : array of shape (m,) or None, default=None
            Values k(x, x) of the points, which some precomputed kernels need; see the Notes of the class.

        Returns
        -------
        distances : array of shape (m,)
            Distances in the feature space.
        """
        X, V = self._coordinates(X)
        xp, norms = namespace(V), self.representation_.known_norms(doubled(X), squared_norms)
        # the component outside the span of the training data is orthogonal to both
        outside = xp.clip(norms - row_norms(V)[:, 0] ** 2, min=0.0)
        return like(xp.sqrt(row_norms(V - self._reconstructed(V))[:, 0] ** 2 + outside), X)

    def inverse_transform(self, X: Array, candidates: Outputs = None) -> Outputs:
        """Decode codes: return data whose images are nearest to the reconstructions.

        Parameters
        ----------
        X : array of shape (m, d)
            Codes.
        candidates : array, list of arrays or None, default=None
            Candidates shared by all codes, or a list with one set for each code; ``None`` leaves the choice to the
            decoder.

        Returns
        -------
        data : array or list
            One object for each code, or its index among the training data with a precomputed kernel.
        """
        check_is_fitted(self)
        codes = check_array(np.asarray(X) if is_host(X) else X, "X")
        if codes.shape[1] != self._n_features_out:
            raise ValueError(f"X must hold codes, with {self._n_features_out} columns. Got {codes.shape[1]}.")
        mean = self.representation_.mean_
        coordinates = self.model_.network.decoded(as_like(codes, mean)) + mean
        if candidates is None:
            return self.decoder_.decode(coordinates)
        decoder = Candidates().fit(None, self.decoder_.representation_)
        if self.representation_.is_pairwise:
            return np.array([order[0] for order in decoder.nearest(coordinates, 1, candidates)])
        return decoder.decode(coordinates, candidates)

    def score(self, X: Array, y: Outputs = None, squared_norms: Array | None = None) -> float:
        """Return the negative mean squared distance between data and their reconstructions.

        Parameters
        ----------
        X
            As for ``reconstruct``.
        y : None
            Ignored.
        squared_norms
            As for ``reconstruct``.

        Returns
        -------
        score : float
            At most 0.
        """
        return -float(np.mean(host(self.reconstruct(X, squared_norms)).astype(np.float64) ** 2))

    def _checked(self) -> tuple[tuple[int, ...], ScalarKernel]:
        """Return the layer sizes and the kernel of the codes; raise if a parameter is invalid."""
        check_parameters(self, _LIMITS)
        hidden = as_scalar_kernel(self.hidden_kernel).validate()
        if hidden.tags.is_pairwise:
            raise ValueError("The 'hidden_kernel' parameter must be a kernel of vectors. Got a precomputed one.")
        return layer_sizes(type(self).__name__, self.n_components), hidden

    def _fit_outer_layer(self, objective: Reduced, layers: Layers, space: DataSpace, spec: Spec) -> None:
        """Solve the outer layer to ``tol``, and store what predictions need."""
        V = objective.V
        codes = layers.codes(V)
        problem = objective.problem(layers.kernels[-1], codes[-1])
        objective.tol = self.tol
        with keeping_best(), approaching(self.tol):
            solution = objective.solve(problem)
        duals = duals_of(problem, solution)
        warn_unless_converged(solution, spec)
        support = as_index(np.asarray(duals.support), V)
        weighted = duals.coef if space.weights is None else duals.coef * space.weights[:, None]
        outer = namespace(V).take(weighted, support, axis=0) / (self.lam * space.total)
        network = Network(layers, codes, support, outer)
        self.model_ = Autoencoder(network, space, duals.among(space.index, space.n_given), Record.of(solution, "exact"))
        self.codes_ = codes[network.narrow]
        self._n_features_out = int(self.codes_.shape[1])
        self.inner_coef_ = list(layers.coefs)
        self.hidden_kernel_ = layers.kernels[-1]
        self.objective_ = solution.certificate.primal + objective.inner_lam * float(layers.penalty(codes))

    def _coordinates(self, X: Array) -> tuple[Array, Array]:
        """Return checked data in their own dtype, and their coordinates in the feature space."""
        check_is_fitted(self)
        X = self.model_.space.read(self, X)
        return X, self.model_.space.coordinates(X)

    def _reconstructed(self, V: Array) -> Array:
        mean = self.representation_.mean_
        return self.model_.network.decoded(self.model_.network.codes(V - mean)) + mean

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = is_pairwise(self.kernel)
        return tags
