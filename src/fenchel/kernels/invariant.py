"""Kernels that are invariant to a group of permutations of the columns."""

import itertools
from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, as_index, host, namespace
from fenchel._check import Interval, Options, check_array, check_parameter
from fenchel.exceptions import IncompatibleError
from fenchel.kernels.scalar import Gaussian, Matern
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.tags import KernelTags

__all__ = ["Invariant"]

_NAMES = ("shifts", "reflections", "permutations")
_MOST = 6  # largest set for group="permutations": 720 permutations
_BLOCK = 64  # samples per block when computing the diagonal from the kernel matrix


class Invariant(ScalarKernel):
    r"""Kernel averaged over a group G of permutations of the columns, so that models ignore their order.

    .. math:: k(x, z) = \frac{1}{|G|} \sum_{g \in G} k_1(x, g z) .

    Training with this kernel is equivalent to training on all images of every input, at the cost of evaluating |G|
    kernels on the sample itself.

    Parameters
    ----------
    kernel : ScalarKernel
        The kernel :math:`k_1` on vectors. It must be invariant to permuting both of its arguments, as is any kernel of
        their distance or inner product.
    group : {"shifts", "reflections", "permutations"} or int array of shape (G, d), default="shifts"
        Cyclic shifts of the elements, shifts and mirror images, all permutations of at most 6 elements, or the
        permutations themselves: row g holds the columns in their new order. The rows must form a group.
    size : int, default=1
        Number of columns per element, which stay together: a set of 4 points in the plane has 8 columns and ``size=2``.

    See Also
    --------
    Equivariant : For outputs that are signals and shift with the inputs.
    SquareEquivariant : For outputs that are fields on a square and turn with the inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Gaussian, Invariant
    >>> X = np.random.default_rng(0).standard_normal((50, 6))  # sets of three points of the plane
    >>> y = X[:, ::2].max(axis=1) + X[:, 1::2].sum(axis=1)
    >>> model = OperatorKernelRegressor(Invariant(Gaussian(0.2), "permutations", size=2), lam=1e-3).fit(X, y)
    >>> bool(np.allclose(model.predict(X[:, [4, 5, 0, 1, 2, 3]]), model.predict(X)))
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"size": Interval(1, np.inf, "left", integer=True)}

    def __init__(self, kernel: ScalarKernel, group: str | Array = "shifts", size: int = 1) -> None:
        self.kernel = kernel
        self.group = group
        self.size = size

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        X = check_array(X, "X")
        images = list(self.images(X if Z is None else check_array(Z, "Z")))
        values = sum(self.kernel(X, image) for image in images) / len(images)
        return (values + values.T) / 2 if Z is None else values  # exactly symmetric despite round-off

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        xp, X = namespace(X), check_array(X, "X")
        parts = [X[k : min(k + _BLOCK, X.shape[0]), :] for k in range(0, X.shape[0], _BLOCK)]
        return xp.concat([self._diag_of_block(part) for part in parts]) if parts else self.kernel.diag(X)

    @property
    def tags(self) -> KernelTags:
        """Those of the kernel, whose bound is attained by constant vectors, which every permutation fixes."""
        tags = self.kernel.tags
        return KernelTags(is_trusted=tags.is_trusted, diag_bound=tags.diag_bound)

    def resolve(self, X: Array, weights: Array | None = None) -> Self:
        """Return the kernel with its data-dependent parameters resolved; raise if it is not invariant."""
        self.check()
        resolved = self.ready(kernel=self.kernel.resolve(X, weights))
        some = X[: min(3, X.shape[0]), :]
        for image in itertools.islice(resolved.images(some), 1, 4):
            advice = "give corresponding columns of all elements the same scale"
            check_invariance(resolved.kernel, some, image, "Invariant", "inputs are permuted", advice)
        return resolved

    @classmethod
    def examples(cls) -> list[Self]:
        """Return kernels invariant to shifts, and to shifts and reversal."""
        return [cls(Gaussian(0.5)), cls(Matern(nu=1.5), "reflections")]

    def _diag_of_block(self, X: Array) -> Array:
        images = list(self.images(X))
        return sum(namespace(X).linalg.diagonal(self.kernel(X, image)) for image in images) / len(images)

    def images(self, X: Array) -> Iterator[Array]:
        """Yield the images of the inputs, starting with the inputs themselves."""
        self.check()
        for columns in self._orders(X.shape[1]):
            yield namespace(X).take(X, as_index(columns, X), axis=1)

    def _orders(self, d: int) -> np.ndarray:
        """Return the column order of each image, (G, d)."""
        if not isinstance(self.group, str):
            return _checked(np.asarray(self.group), d)
        check_parameter("Invariant", "group", self.group, Options(_NAMES))
        if d % self.size:
            raise ValueError(f"The {d} columns of the inputs are not elements of size={self.size} each.")
        count = d // self.size
        if self.group == "permutations":
            if count > _MOST:
                raise ValueError(
                    f"group='permutations' takes at most {_MOST} elements. Got {count}. Give the rows of a smaller "
                    "group, or features that do not depend on the order."
                )
            orders = np.array(list(itertools.permutations(range(count))))
        else:
            orders = (np.arange(count) + np.arange(count)[:, None]) % count
            orders = orders if self.group == "shifts" else np.concatenate([orders, orders[:, ::-1]])
        return np.reshape(orders[:, :, None] * self.size + np.arange(self.size), (len(orders), d))


def check_invariance(
    kernel: ScalarKernel,
    some: Array,
    moved: Array,
    owner: str,
    what: str,
    advice: str = "scale channels instead of columns, and leave points unweighted",
) -> None:
    """Raise if the values of a kernel change when both of its arguments are moved."""
    before, after = host(kernel(some, some)), host(kernel(moved, moved))
    if not np.allclose(before, after, rtol=1e-6, atol=1e-9 * float(np.abs(before).max())):
        raise IncompatibleError(
            f"{owner} needs a kernel that does not change when both {what}. {kernel!r} does: {advice}."
        )


def _checked(orders: np.ndarray, d: int) -> np.ndarray:
    """Return the rows of a group, identity first; raise if they do not form one."""
    rows = {tuple(row) for row in orders.tolist()} if orders.ndim == 2 else set()
    is_group = (
        bool(rows)
        and orders.shape[1] == d
        and all(sorted(row) == list(range(d)) for row in rows)
        and all(tuple(one[k] for k in other) in rows for one in rows for other in rows)
    )
    if not is_group:
        raise ValueError(
            f"The 'group' parameter of Invariant must hold permutations of the {d} columns that form a group: the "
            f"composition of any two rows must be a row. Got an array of shape {orders.shape}."
        )
    return np.array(sorted(rows))
