"""Closed-form decoders of the loss trick: weighted sums and votes of the training outputs."""

from typing import Self

import numpy as np

from fenchel._array import Outputs
from fenchel.decoders._ties import round_off
from fenchel.decoders.decoder import Decoder, Space

__all__ = ["LabelVote", "WeightedMean"]


class WeightedMean(Decoder):
    r"""Closed form for squared distances: :math:`\sum_i w_i z_i / \sum_i w_i` for numbers and vectors.

    Notes
    -----
    The weights of kernel ridge regression need not sum to one, and their sum may be negative: the mean is clipped to
    the box of the training outputs. With ``LeastSquares("nearest")`` the decoder returns :math:`\sum_i w_i z_i`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LossTrickPredictor
    >>> from fenchel.decoders import WeightedMean
    >>> from fenchel.task_losses import LeastSquares
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = np.sin(X[:, 0])
    >>> model = LossTrickPredictor(task_loss=LeastSquares(), decoder=WeightedMean()).fit(X, Y)
    >>> bool(np.abs(model.predict(X) - Y).max() < 0.2)
    True
    """

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Check that the task loss is minimised by sums."""
        self._loss = self._task_loss(representation, "combine", what="squared distances of vectors")
        self._seen = Y
        return super().fit(Y, representation)

    def decode(self, coordinates: np.ndarray) -> Outputs:
        """Return one weighted mean for each row of weights."""
        return self._loss.combine(coordinates, self.representation_.outputs_, self._seen)


class LabelVote(Decoder):
    """Label-wise vote for 0/1 label vectors under the Hamming loss: the labels with more than half of the weight.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LossTrickPredictor
    >>> from fenchel.decoders import LabelVote
    >>> from fenchel.task_losses import Hamming
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> Y = (np.hstack([X, 3 - X]) > 1.5).astype(int)
    >>> model = LossTrickPredictor(task_loss=Hamming(), decoder=LabelVote()).fit(X, Y)
    >>> model.predict(X[[0, -1]]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Check that the task loss counts labels."""
        self._task_loss(representation, "labelwise", what="0/1 label vectors, label by label")
        return super().fit(Y, representation)

    def decode(self, coordinates: np.ndarray) -> np.ndarray:
        """Return label vectors; ties up to round-off give the label 0."""
        outputs = np.asarray(self.representation_.outputs_)
        votes = coordinates @ outputs - coordinates @ (1 - outputs)
        slack = round_off(np.sum(np.abs(coordinates), axis=1, keepdims=True))
        return (votes > slack).astype(np.float64)
