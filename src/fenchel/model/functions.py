"""Outputs that are curves."""

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from fenchel import representations as representation_room
from fenchel._array import Array, Outputs, as_like, host
from fenchel._check import Options, check_memory, check_parameter, outputs_like
from fenchel.data.fdata import function_names
from fenchel.data.frames import column_names
from fenchel.data.functional import Curves, as_curves
from fenchel.data.parts import is_parts
from fenchel.data.quadrature import as_points
from fenchel.exceptions import DataWarning, warn_user
from fenchel.kernels import (
    FunctionalGaussian,
    IntegralOperator,
    KernelLike,
    Laplacian,
    OperatorKernel,
    ScalarKernel,
    Separable,
    Standardized,
    as_scalar_kernel,
    is_pairwise,
)
from fenchel.kernels.scalar_kernel import BoundKernel
from fenchel.kernels.separable import BoundTerms
from fenchel.model.codec import Codec, Reading, Task
from fenchel.model.curve_center import CurveCenter, channel_scales
from fenchel.model.forms import InputForm, OutputForm
from fenchel.model.input_gaps import fills_gaps, is_open, with_medians
from fenchel.model.parts import default_kernel
from fenchel.model.sample import Sample
from fenchel.model.spec import part_of
from fenchel.representations import Coordinates, CurveRepresentation

__all__ = ["FunctionCodec", "Functions"]


@dataclass(frozen=True)
class FunctionCodec(Codec):
    """Curves, centred and scaled if requested, in the coordinates of a representation."""

    representation: CurveRepresentation
    operator: IntegralOperator | None  # None: the kernel is operator-valued
    center: CurveCenter | None = None
    scale: np.ndarray | None = None  # one for each channel
    grid: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def is_returned(self) -> bool:  # type: ignore[override]  # depends on the representation
        """Whether coordinates are the values that ``predict`` returns at the points of the training curves."""
        return self.representation.has_points

    @property
    def units(self) -> float | np.ndarray:
        """Units of the channels where coordinates are values at points, else one for all coordinates."""
        if self.scale is None:
            return 1.0
        if self.representation.has_points:
            return np.tile(self.scale, len(self.grid))
        return float(np.sqrt(np.mean(self.scale**2)))

    def encode(self, y: Curves) -> Coordinates:
        """Return the curves in coordinates."""
        return self.representation.encode(self.standardized(self.on_grid(y)))

    def on_grid(self, y: Curves) -> Curves:
        """Return curves at the points of the training curves; they may have others at which none is observed."""
        places = np.minimum(np.searchsorted(y.grid, self.grid), len(y.grid) - 1)
        if not np.array_equal(y.grid[places], self.grid):
            raise ValueError(
                f"y must be observed at the {len(self.grid)} points of the training curves. Got {len(y.grid)} others."
            )
        return y if len(y.grid) == len(self.grid) else Curves(self.grid, y.values[:, places, ...])

    def standardized(self, y: Curves) -> Curves:
        """Return centred and scaled curves."""
        values = y.values
        if self.center is not None:
            values = values - as_like(self.center.values.reshape((1, *values.shape[1:])), values)
        return Curves(y.grid, values if self.scale is None else values / as_like(self.scale, values))

    def decode(self, rows: Array) -> Array:
        """Return the curves with these coordinates at the points of the training curves, (n, m) or (n, m, c)."""
        values = self.representation.decode(rows)
        values = values if self.scale is None else values * as_like(self.scale, values)
        if self.center is None:
            return values
        return values + as_like(self.center.values.reshape((1, *values.shape[1:])), values)

    def encode_values(self, values: Array) -> Coordinates:
        """Return predicted curves in coordinates."""
        return self.encode(Curves(self.grid, values))

    def truth(self, y: Curves) -> Array:
        """Return the values of the curves."""
        return self.on_grid(y).values

    def reading(self, kernel: BoundKernel, at: ArrayLike | None = None, derivative: int = 0) -> Reading:
        """Return how an expansion of a kernel is read at any points."""
        points = self.grid if at is None else as_points(at)
        is_sum, curves = isinstance(kernel, BoundTerms), self.representation
        if self.operator is not None:
            matrices: tuple[Array, ...] = (curves.evaluation(self.operator, points, derivative),)
        elif is_sum:
            matrices = cast(BoundTerms, kernel).evaluations(curves, points, derivative)
        else:
            matrices = (curves.interpolation(points, derivative),)
        scale = None if self.scale is None else np.tile(self.scale, len(points))  # channels of a point are adjacent
        shift = None if self.center is None else self.center(points, derivative).reshape(-1)
        return Reading(matrices, scale, shift, has_operator=is_sum)

    def read(self, expansion, X, at=None, derivative=0):  # type: ignore[no-untyped-def]  # as in the base class
        """Return the values of an expansion as curves, (n, m) or (n, m, c)."""
        return self.representation.shaped(super().read(expansion, X, at, derivative))


@dataclass(frozen=True)
class Functions(Task):
    """Curves as outputs of vectors, curves or a Gram matrix."""

    kernel: KernelLike | None = None
    output_kernel: KernelLike | None = None
    channels: Array | None = None
    representation: CurveRepresentation | str = "spline"
    n_components: float | None = None
    center: bool | str = True
    scale: bool | str = False
    grid: ArrayLike | None = None

    def sample(self, owner: BaseEstimator, X: Outputs, y: Outputs, sample_weight: Array | None = None) -> Sample:
        """Return checked data."""
        check_parameter(type(owner).__name__, "center", self.center, Options((True, False, "median")))
        check_parameter(type(owner).__name__, "scale", self.scale, Options((False, True, "robust")))
        if y is None:
            raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None.")
        X, _, inputs = InputForm.learn(
            owner,
            X,
            takes_channels=True,
            takes_missing=fills_gaps(self.kernel) or (self.kernel is None and is_parts(X)),
            is_pairwise=is_pairwise(self.kernel),
        )
        curves = as_curves(y, self.grid, "y")
        if len(curves) != X.shape[0]:
            raise ValueError(f"X and y must have the same number of samples. Got {X.shape[0]} and {len(curves)}.")
        outputs_like(curves.values, X, "y")  # raises if they overflow
        _check_operator_fits(curves)
        labels = function_names(y, "argument_names", "coordinate_names")
        form = OutputForm(tuple(curves.values.shape[1:]), labels, names=column_names(y))
        return with_medians(Sample.of(X, curves, inputs, form, sample_weight), self.kernel)

    def unlearned(self) -> CurveRepresentation:
        """Return the representation of the curves, not fitted."""
        return self._representation()

    def learn(self, sample: Sample) -> tuple[FunctionCodec, Coordinates]:
        """Return the centre, the scales and the representation of the curves."""
        curves = Curves(sample.y.grid, outputs_like(sample.y.values, sample.X, "y"))
        representation = self._representation()
        values = host(curves.values).astype(np.float64).reshape(len(curves), len(curves.grid), -1)
        center, scale = None, None
        if self.center is not False:
            kind = "median" if self.center == "median" else "mean"
            center = CurveCenter.of(curves, values, sample.counts, kind)
            values = values - center.values
        if self.scale:
            scale = channel_scales(values, sample.counts, self.scale == "robust")
        operator = self.operator_on(curves.grid, representation)
        own = None if isinstance(self.kernel, OperatorKernel) else operator.resolve(curves.grid)
        codec = FunctionCodec(representation, own, center, scale, curves.grid)
        return codec, representation.learn(codec.standardized(curves), sample.weights, operator)

    def kernel_of(self, sample: Sample, codec: Codec) -> OperatorKernel:
        """Return the operator-valued kernel as given, or the kernel of the inputs times the operator on the curves."""
        assert isinstance(codec, FunctionCodec)  # what ``learn`` returns
        if isinstance(self.kernel, OperatorKernel):
            return self.kernel.validate().mapped(lambda kernel: _on_inputs(kernel, sample))
        return Separable(self._input_kernel(sample), codec.operator)

    def operator_on(self, grid: np.ndarray, representation: CurveRepresentation) -> IntegralOperator:
        """Return the output operator; by default its kernel is a Laplacian with a tenth of the domain as length."""
        kernel = self.output_kernel
        if isinstance(self.kernel, OperatorKernel):
            self._check_operator_kernel(representation)
        if kernel is None and not representation.has_eigenvalues:
            length = float(grid[-1] - grid[0]) if len(grid) > 1 else 1.0
            kernel = Laplacian(10 / length)
        return IntegralOperator(kernel, self.channels).validate()  # type: ignore[arg-type]  # checked by the operator

    def _input_kernel(self, sample: Sample) -> ScalarKernel:
        """Return the scalar kernel of the inputs."""
        if sample.inputs.blocks is not None and (self.kernel is None or is_open(self.kernel)):
            return default_kernel(sample.X, sample.inputs.blocks, sample.weights)
        kernel = FunctionalGaussian("median") if self.kernel is None else as_scalar_kernel(self.kernel)
        if is_open(self.kernel):
            by = "auto" if sample.inputs.grid is None else "channel"
            kernel = Standardized(FunctionalGaussian("median"), by=by)
        return _on_inputs(kernel, sample)

    def _check_operator_kernel(self, representation: CurveRepresentation) -> None:
        """Raise if a parameter describes an output operator besides those of an operator-valued kernel."""
        if self.channels is not None:
            raise ValueError(
                f"The 'channels' parameter must be None when 'kernel' is operator-valued: couple the channels by "
                f"IntegralOperator(kernel, channels). Got {self.kernel!r}."
            )
        takes_basis = representation.takes_basis_of_operator
        if (self.output_kernel is None) == takes_basis:
            wanted = "be the kernel whose eigenfunctions are the basis" if takes_basis else "be None"
            raise ValueError(
                f"The 'output_kernel' parameter must {wanted} when 'kernel' is operator-valued and the representation "
                f"is {type(representation).__name__}. Got {self.output_kernel!r} with {self.kernel!r}."
            )

    def _representation(self) -> CurveRepresentation:
        part = part_of(self.representation, representation_room, "representation", CurveRepresentation)
        if self.n_components is not None and "n_components" in part.get_params():
            part.set_params(n_components=self.n_components)
        elif self.n_components is not None:
            warn_user(
                f"n_components has no effect on {type(part).__name__}, which keeps all coordinates. Leave it at None, "
                "or use representation='eigen' or 'fourier'.",
                DataWarning,
                "unused-components",
            )
        return part.validate()


def _on_inputs(kernel: ScalarKernel, sample: Sample) -> ScalarKernel:
    """Return a kernel on the columns of the inputs by position, and on the grid of inputs that are curves."""
    kernel, grid = sample.inputs.named(kernel.validate()), sample.inputs.grid
    if grid is None:
        return kernel
    # kernels of curves without a grid get that of the inputs
    open_ones = [name for name, value in kernel.get_params().items() if value is None and name.endswith("grid")]
    return clone(kernel).set_params(**dict.fromkeys(open_ones, grid)) if open_ones else kernel


def _check_operator_fits(curves: Curves) -> None:
    """Raise if the output operator on the points of the curves does not fit in memory."""
    width = curves.values.shape[1] * (1 if curves.values.ndim == 2 else curves.values.shape[2])
    what = f"The output operator on {len(curves.grid)} points"
    check_memory(24 * width**2, what, "Use fewer points, or round them")
