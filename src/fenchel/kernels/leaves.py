"""A kernel of trees: the share of the leaves that two inputs have in common."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.tree import DecisionTreeRegressor

from fenchel._array import Array, as_like, host
from fenchel._check import check_array
from fenchel.kernels.derivatives import Factors, factors, no_derivative
from fenchel.kernels.vectors import VectorKernel

__all__ = ["Leaves"]


class Leaves(VectorKernel):
    r"""Share of the trees of a forest in which two inputs are in the same leaf.

    .. math:: k(x, z) = \frac1T \sum_{t=1}^T [\mathrm{leaf}_t(x) = \mathrm{leaf}_t(z)].

    The functions of its space are piecewise constant. In a sum with a smooth kernel they take over the jumps.

    Parameters
    ----------
    columns : array of shape (nodes,)
        Column of the inputs by which each node of each tree splits, -1 for a leaf.
    thresholds : array of shape (nodes,)
        Inputs up to this value go left.
    children : array of shape (nodes, 2)
        The nodes to the left and to the right, as places in these arrays; ignored for leaves.
    roots : array of shape (trees,)
        The first node of each tree.

    Notes
    -----
    Inputs are compared in float32, as scikit-learn's trees do. If the trees were grown on the outputs of a sample, its
    held-out errors are only honest with trees that have not seen what is held out. ``OperatorKernelRegressorCV`` sees
    to that; whoever passes this kernel does it himself.

    References
    ----------
    [Breiman2000]_; [Davies2014]_.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import ExtraTreesRegressor
    >>> from fenchel.kernels import Leaves
    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> forest = ExtraTreesRegressor(5, max_depth=1, random_state=0).fit(X, X[:, 0] > 4)
    >>> Leaves.of(forest.estimators_)(X[:1], X).tolist()
    [[1.0, 1.0, 0.0, 0.0]]
    """

    _has_short_name = False
    tags = replace(VectorKernel.tags, sees_outputs=True)

    def __init__(self, columns: Array, thresholds: Array, children: Array, roots: Array) -> None:
        self.columns = columns
        self.thresholds = thresholds
        self.children = children
        self.roots = roots

    @classmethod
    def of(cls, trees: Iterable[Any]) -> Self:
        """Return the kernel of fitted trees of scikit-learn, such as ``forest.estimators_``."""
        parts = [tree.tree_ for tree in np.ravel(list(trees))]
        roots = np.cumsum([0, *(part.node_count for part in parts)])[:-1]
        children = [
            np.column_stack([part.children_left, part.children_right]) + root
            for part, root in zip(parts, roots, strict=True)
        ]
        columns = np.concatenate([np.maximum(part.feature, -1) for part in parts])
        return cls(columns, np.concatenate([part.threshold for part in parts]), np.concatenate(children), roots)

    def validate(self) -> Self:
        """Raise if the arrays are not those of trees."""
        super().validate()
        given = self.columns, self.thresholds, self.children, self.roots
        columns, thresholds, children, roots = map(np.asarray, given)
        n = len(columns)
        inner = children[columns >= 0] if children.shape == (n, 2) else np.array([n])
        places = np.concatenate([inner.ravel(), roots])
        if thresholds.shape != (n,) or len(roots) == 0 or places.min() < 0 or places.max() >= n:
            raise ValueError(
                "Leaves needs columns (nodes,), thresholds (nodes,), children (nodes, 2) and roots (trees,), the last "
                f"two with places of nodes. Got shapes {columns.shape}, {thresholds.shape}, {children.shape}, "
                f"{roots.shape}."
            )
        return self

    def points(self, values: Array, name: str) -> Array:
        """Return a sample with all columns that the trees split by, checked."""
        values, least = check_array(values, name), int(np.max(self.columns)) + 1
        if values.shape[1] < max(least, 1):
            raise ValueError(f"{name} must have at least {least} columns. Got shape {tuple(values.shape)} instead.")
        return values

    def places(self, X: Array) -> np.ndarray:
        """Return the leaf of each input in each tree, (n, trees)."""
        rows, everyone = host(X).astype(np.float32), np.arange(X.shape[0])[:, None]
        nodes = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        while (is_inner := (splits := np.asarray(self.columns)[nodes]) >= 0).any():
            goes_right = rows[everyone, np.maximum(splits, 0)] > np.asarray(self.thresholds)[nodes]
            below = np.asarray(self.children)[nodes, goes_right.astype(int)]
            nodes = np.where(is_inner, below, nodes)
        return nodes

    def _values(self, X: Array, Z: Array | None) -> Array:
        left = self._indicators(X)
        right = left if Z is None else self._indicators(Z)
        return as_like((left @ right.T).toarray() / len(self.roots), X)

    def _indicators(self, X: Array) -> csr_array:
        """Return the indicators of the leaves, (n, nodes)."""
        places = self.places(X)
        n, count = places.shape
        ends = np.arange(0, n * count + 1, count)
        return csr_array((np.ones(n * count), places.ravel(), ends), shape=(n, len(self.columns)))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        X = np.linspace(-0.1, 2.1, 7)[:, None]
        trees = [DecisionTreeRegressor(max_depth=depth).fit(X, np.sin(5 * X)) for depth in (1, 3)]
        return [cls.of(trees)]


@factors.register
def _(kernel: Leaves, X: Array, Z: Array, almost_everywhere: bool = False) -> Factors:
    if not almost_everywhere:
        raise no_derivative(kernel)
    return 0.0, 0.0
