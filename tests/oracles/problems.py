"""Small random problems of every kind: duplicated inputs, rank deficiency, one sample, one output, weights."""

from dataclasses import dataclass

import numpy as np

from fenchel.kernels import Aligned, Blocks, Gaussian, Laplacian, Linear, Separable, SeparableSum
from fenchel.problem import DualProblem
from fenchel.representations import Euclidean, GramFactor
from tests.matrices import full_matrix
from tests.parts import space

FAMILIES = ("separable", "sum", "aligned", "blocks")
COUNT = 10


@dataclass
class Case:
    """One problem: inputs, outputs in coordinates, regularisation, weights."""

    X: np.ndarray
    representation: object
    lam: float
    weights: np.ndarray | None = None

    def build(self, family, k, loss):
        """Return the dual problem and the full Gram matrix without weights."""
        targets = self.representation.targets
        bound = kernel(family, k, *targets.shape).bind(self.X, self.representation)
        problem = DualProblem.build(bound.gram(self.X), targets, loss, self.lam, self.weights)
        return problem, full_matrix(bound.gram(self.X), targets.shape[1])


@dataclass(frozen=True)
class Problem:
    """The k-th random problem with a kernel of a family."""

    family: str
    k: int

    def __str__(self):
        return f"{self.family}-{self.k}"

    @property
    def kind(self):
        """The family: the core takes every loss with each family, and every problem with some loss."""
        return self.family

    def build(self, loss):
        """Return the dual problem and the full Gram matrix without weights."""
        return case(self.k).build(self.family, self.k, loss)


PROBLEMS = [Problem(family, k) for family in FAMILIES for k in range(COUNT)]


def case(k):
    """Return the k-th random problem."""
    rng = np.random.default_rng(k)
    n, p = [8, 10, 12, 1, 6, 9, 7, 25, 10, 8][k], [3, 2, 3, 3, 1, 2, 3, 2, 3, 3][k]
    lam = [1e-2, 1e-4, 1e-5, 1.0, 1e-3, 1e-2, 1e-1, 10.0, 1e-1, 1e-3][k]
    X, Y = rng.standard_normal((n, 2)), rng.standard_normal((n, p))
    weights = None
    if k == 1:  # duplicated inputs, some with the same output, some with another
        X[5:] = X[:5]
        Y[5:7] = Y[:2]
    elif k == 2:  # K of rank 3
        X = X[rng.integers(0, 3, n)]
    elif k == 5:  # K_Y of rank 2
        return Case(X, space(GramFactor(), Y @ Y.T), lam)
    elif k == 6:
        weights = rng.uniform(0.2, 3, n)
    elif k == 8:  # outliers
        Y[:2] *= 30
    elif k == 9:  # an output of norm zero, and one twice
        Y[0], Y[1] = 0, Y[2]
    return Case(X, space(Euclidean(), Y, weights), lam, weights)


def kernel(family, k, n, p):
    """Return an operator-valued kernel of a family that fits n samples and p output coordinates."""
    rng = np.random.default_rng(100 + k)
    root = rng.standard_normal((p, p))
    matrix, diagonal = root @ root.T / p, rng.uniform(0.2, 2, p)
    if family == "separable":
        return [
            Separable(Gaussian(0.5)),
            Separable(Laplacian(0.7), matrix if k != 5 else "covariance"),
            Separable(Linear(), diagonal if k != 5 else None),
            Separable(Gaussian(0.5), "covariance"),
        ][k % 4]
    if family == "sum":
        second = Separable(Linear(), "covariance") if k == 5 else Separable(Linear(), matrix)
        third = Separable(Gaussian(2.0)) if k == 5 else Separable(Gaussian(2.0), diagonal)
        return [SeparableSum([Separable(Gaussian(0.3)), second]), SeparableSum([third, second])][k % 2]
    if family == "aligned":
        kernels = [Gaussian(gamma) for gamma in np.linspace(0.2, 2, n)]
        return [
            Aligned(Gaussian(0.5), weights=rng.uniform(0, 1, n)),
            Aligned(kernels),
            Aligned(Gaussian(0.5), anchored=True),
            Aligned(Gaussian(0.5), pairs=True),
            Aligned(Gaussian(0.5), pairs=True, anchored=True),
        ][k % 5]
    return Blocks(lambda X, Z: transformed(X, Z, p))


def transformed(X, Z, p):
    """Blocks exp(-|x - z|^2 / 2) B(x) B(z)' with B(x) = I + tanh(x_1) N: not separable."""
    shift = np.eye(p, k=1)
    left = np.eye(p) + np.tanh(X[:, :1])[:, :, None] * shift
    right = np.eye(p) + np.tanh(Z[:, :1])[:, :, None] * shift
    distances = np.sum((X[:, None] - Z[None]) ** 2, axis=2)
    return np.exp(-distances / 2)[:, :, None, None] * np.einsum("iab,jcb->ijac", left, right)
