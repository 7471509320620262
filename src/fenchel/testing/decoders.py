"""Contract checks for decoders."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from inspect import signature

import numpy as np
from numpy.testing import assert_array_equal
from sklearn.base import clone

from fenchel._array import Outputs
from fenchel.decoders import Decoder
from fenchel.decoders.decoder import Space
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Linear
from fenchel.representations import KernelOutputs
from fenchel.task_losses import (
    Cauchy,
    ChiSquare,
    CircleGeodesic,
    Hamming,
    Hellinger,
    LeastSquares,
    RankLoss,
    SphereGeodesic,
    TaskSpace,
)
from fenchel.testing._checks import expect, register, run

__all__ = ["check_decoder", "decoding_spaces"]


def check_decoder(decoder: Decoder, Y: Outputs = None, representation: Space | None = None) -> None:
    """Raise ``AssertionError`` if a decoder breaks the contract of decoders.

    Parameters
    ----------
    decoder : Decoder
        An instance.
    Y : array or list, default=None
        Training outputs, to be used with ``representation`` instead of the spaces of :func:`decoding_spaces`.
    representation : Representation or TaskSpace, default=None
        Space of the predictions: a fitted representation of ``Y``, or the space of the loss trick.

    Examples
    --------
    >>> from fenchel.decoders import Clamp
    >>> from fenchel.testing import check_decoder
    >>> check_decoder(Clamp())
    """
    run(decoder, Decoder, spaces=None if representation is None else [(Y, representation)])


def decoding_spaces() -> list[tuple[np.ndarray, Space]]:
    """Return training outputs and spaces such that every decoder of the library supports at least one."""
    Y = np.random.default_rng(0).random((5, 4))
    sets, directions, histograms = (Y > 0.5) * 1.0, Y / np.linalg.norm(Y, axis=1, keepdims=True), Y / Y.sum(1)[:, None]
    return [
        (Y, KernelOutputs(Linear()).fit(Y)),
        (Y, KernelOutputs(Gaussian(1.0)).fit(Y)),
        (Y, TaskSpace(LeastSquares(), Y)),
        (Y, TaskSpace(Cauchy(), Y)),
        (Y, TaskSpace(RankLoss(), Y)),
        (sets, TaskSpace(Hamming(), sets)),
        (Y[:, 0], TaskSpace(CircleGeodesic(), Y[:, 0])),
        (directions, TaskSpace(SphereGeodesic(), directions)),
        (histograms, TaskSpace(Hellinger(), histograms)),
        (histograms, TaskSpace(ChiSquare(), histograms)),
    ]


def _suitable(decoder: Decoder, spaces: list[tuple[Outputs, Space]] | None) -> list[tuple[Decoder, Outputs, Space]]:
    """Return clones of the decoder, each fitted to a space that it supports."""
    fitted = []
    for Y, space in decoding_spaces() if spaces is None else spaces:
        copy = clone(decoder)
        with suppress(IncompatibleError):
            fitted.append((copy.fit(Y, space), Y, space))
        expect(repr(copy) == repr(decoder), f"{decoder!r}: fit changes a parameter.")
    expect(len(fitted) > 0, f"{decoder!r} supports none of the spaces.")
    return fitted


def check_decoder_fit(decoder: Decoder, spaces: list[tuple[Outputs, Space]] | None = None) -> None:
    """``fit`` returns the decoder, stores the space and changes no parameter, or raises ``IncompatibleError``."""
    for fitted, _, space in _suitable(decoder, spaces):
        expect(isinstance(fitted, type(decoder)), f"{decoder!r}: fit does not return the decoder.")
        expect(fitted.representation_ is space, f"{decoder!r}: representation_ is not the one passed to fit.")


def check_decode_each(decoder: Decoder, spaces: list[tuple[Outputs, Space]] | None = None) -> None:
    """There is one object per prediction, the same twice, and predictions are not modified."""
    for fitted, Y, space in _suitable(decoder, spaces):
        weights = np.full((len(Y), len(Y)), 0.05) + 0.75 * np.eye(len(Y))
        coordinates = np.array(getattr(space, "targets_", weights))
        options = {"candidates": Y} if "candidates" in signature(fitted.decode).parameters else {}
        decode: Callable[..., Outputs] = partial(fitted.decode, **options)
        before, objects = coordinates.copy(), decode(coordinates)
        expect(len(objects) == len(coordinates), f"{decoder!r}: {len(objects)} objects of {len(coordinates)}.")
        assert_array_equal(coordinates, before, err_msg=f"{decoder!r}: an argument is modified.")
        assert_array_equal(decode(coordinates), objects, err_msg=f"{decoder!r}: a second call returns other objects.")


register(Decoder, check_decoder_fit, check_decode_each)
