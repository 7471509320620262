"""Infimal convolutions: losses whose conjugate is the sum of two conjugates."""

from collections.abc import Callable
from typing import Self

from fenchel._array import Array, namespace, row_norms
from fenchel.losses import profile as profiles
from fenchel.losses._splitting import convolution_prox, convolution_value
from fenchel.losses.integral import Pinball
from fenchel.losses.loss import Loss, is_square, row_saturation
from fenchel.losses.pnorm import Huber
from fenchel.losses.profile import Step
from fenchel.losses.radial import Ball, Exponential, Norm, Power, ProfileLoss, Square

__all__ = ["InfimalConvolution"]


class InfimalConvolution(Loss):
    r"""Infimal convolution of two losses.

    .. math:: (f \,\square\, g)(r) = \inf_u f(u) + g(r - u), \qquad (f \,\square\, g)^* = f^* + g^*.

    Parameters
    ----------
    f, g : Loss
        Any two losses, ``Square()`` by default; they may themselves be convolutions.

    Notes
    -----
    The prox of the sum of two conjugates is one-dimensional for two losses of the Euclidean norm: it has a formula if
    one of the two is ``Square``, ``Norm`` or ``Ball``, and is otherwise computed by bisection on all rows at once. With
    ``Square``, the convolution is the Moreau envelope of the other loss, whose prox is known. Any other pair, such as
    two p-norms, or a pinball loss and a norm, needs a splitting in each prox, some fifty times the cost. The
    certificate of a fit does not rely on it: duals lie in both domains, and values are attained.

    References
    ----------
    [Laforgue2020]_, Prop. 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Huber, InfimalConvolution, Norm, Square
    >>> residuals = np.array([[3.0, 4.0]])
    >>> bool(np.allclose(InfimalConvolution(Square(), Norm(2.0)).value(residuals), Huber(2.0).value(residuals)))
    True

    Single values and whole samples may be wrong: a sum of norms of order 1 and 2 in the dual domain.

    >>> InfimalConvolution(Huber(0.5, p=1), Norm(0.7)).value(residuals).round(4).tolist()
    [3.2247]
    """

    def __init__(self, f: Loss | None = None, g: Loss | None = None) -> None:
        self.f = f
        self.g = g

    def validate(self) -> Self:
        """Raise unless both parts are losses with valid parameters."""
        for name, part in zip("fg", self._losses, strict=True):
            if not isinstance(part, Loss):
                raise TypeError(f"The {name!r} parameter of InfimalConvolution must be a Loss. Got {part!r} instead.")
        return super().validate()

    def bind(self, targets: Array, point_scale: Array | None = None) -> Self:
        """Return the convolution of the bound parts."""
        return self._changed(lambda part: part.bind(targets, point_scale))

    def resolve(self, residuals: Array, weights: Array | None = None, point_scale: Array | None = None) -> Self:
        """Return the convolution of the parts with thresholds relative to the residuals replaced by numbers."""
        return self._changed(lambda part: part.resolve(residuals, weights, point_scale))

    @property
    def profile(self) -> profiles.Profile | None:
        """The convolution of the two profiles if both losses are functions of the Euclidean norm, else ``None``."""
        f, g = (part.profile for part in self._losses)
        return None if f is None or g is None else profiles.Convolution(f, g)

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """Return the sum of the two."""
        return sum(part.curvature for part in self._losses)

    @property
    def pointwise(self) -> bool:  # type: ignore[override]
        """Whether one of the two depends on the values."""
        return any(part.pointwise for part in self._losses)

    @property
    def fits_targets(self) -> bool:  # type: ignore[override]
        """Whether both do."""
        return all(part.fits_targets for part in self._losses)

    @property
    def compares_products(self) -> bool:  # type: ignore[override]
        """Whether one of the two decreases in an inner product."""
        return any(part.compares_products for part in self._losses)

    @property
    def is_relative(self) -> bool:  # type: ignore[override]
        """Whether a parameter of one of the two is relative to the residuals."""
        return any(part.is_relative for part in self._losses)

    @property
    def is_unit_free(self) -> bool:
        """Whether no parameter is a size of residuals."""
        return all(part.is_unit_free for part in self._losses)

    @property
    def sparse(self) -> bool:
        """Whether one of the conjugates has a kink at zero, and with it their sum."""
        return any(part.sparse for part in self._losses)

    def value(self, residuals: Array) -> Array:
        """Return the infimum over the two parts of each row, shape (n,)."""
        if self.profile is not None:
            return ProfileLoss(self.profile).value(residuals)
        if (envelope := self._envelope) is None:
            return convolution_value(*self._losses, residuals)
        total = 1 + envelope.curvature
        duals = envelope.prox_remainder(residuals / total, 1 / total)  # also the part that the square loss takes
        return row_norms(duals)[:, 0] ** 2 / 2 + envelope.value(residuals - duals)

    def conjugate(self, duals: Array) -> Array:
        """Return the sum of the two conjugates, shape (n,)."""
        f, g = self._losses
        return f.conjugate(duals) + g.conjugate(duals)

    def prox_conjugate(self, duals: Array, step: Step) -> Array:
        """Return the prox of ``step`` times the sum of the conjugates, row by row."""
        if self.profile is not None:
            return ProfileLoss(self.profile).prox_conjugate(duals, step)
        shrink = 1 + step * self.curvature
        return self.prox_remainder(duals / shrink, step / shrink)

    def prox_remainder(self, duals: Array, step: Step) -> Array:
        """Return the prox of the sum of the conjugates without their quadratic parts."""
        if self.profile is not None:
            return ProfileLoss(self.profile).prox_remainder(duals, step)
        envelope = self._envelope
        return (
            convolution_prox(*self._losses, duals, step) if envelope is None else envelope.prox_remainder(duals, step)
        )

    def saturation(self, duals: Array) -> Array | None:
        """Return the larger of the two ratios of the duals to their bounds, of rows or of values."""
        ratios = [ratio for part in self._losses if (ratio := part.saturation(duals)) is not None]
        if len({ratio.ndim for ratio in ratios}) > 1:
            ratios = [ratio for part in self._losses if (ratio := row_saturation(part, duals)) is not None]
        if not ratios:
            return None
        return ratios[0] if len(ratios) == 1 else namespace(duals).maximum(*ratios)

    @property
    def _losses(self) -> tuple[Loss, Loss]:
        return (Square() if self.f is None else self.f), (Square() if self.g is None else self.g)

    @property
    def _envelope(self) -> Loss | None:
        """The loss whose Moreau envelope this is, if the other one is half the squared norm."""
        f, g = self._losses
        return g if is_square(f) else f if is_square(g) else None

    def _changed(self, change: Callable[[Loss], Loss]) -> Self:
        """Return the convolution of the changed parts."""
        return type(self)(*map(change, self._losses))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return pairs with a formula, by bisection and by splitting, a Moreau envelope and a nested convolution."""
        return [
            cls(Square(), Norm(0.5)),
            cls(Norm(1.0), Ball(0.2)),
            cls(Power(1.5), Square()),
            cls(Power(3.0), Exponential(0.3)),
            cls(cls(Square(), Ball(0.1)), Norm(0.7)),
            cls(Huber(0.5, p=1), Norm(0.4)),
            cls(Pinball(0.3), Square()),
        ]
