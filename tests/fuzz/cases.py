"""Estimators of a case: losses, kernels, solvers and parameters, some of them wrong on purpose."""

import re
from dataclasses import dataclass

import numpy as np

import fenchel
from fenchel import kernels as k
from fenchel import losses as l
from fenchel.approximations import Nystrom, PSparsified, RandomFeatures
from tests.fuzz.data import Sample, chance, pick, sample
from tests.fuzz.harder import harden, widen

_SEED = 21
_BASELINES = ("pgd", "apgd", "bcd")


@dataclass
class Case:
    """One fit: the estimator, its data, and whether a refusal is in order."""

    number: int
    estimator: object
    data: Sample
    may_refuse: list

    def __str__(self):
        given = "; ".join(self.data.words)
        call = "fit(X)" if self.data.y is None and "no y" in self.data.words else "fit(X, y)"
        if self.data.sample_weight is not None:
            call = "fit(X, y, sample_weight=sample_weight)"
        estimator = re.sub("0{99,}", "0...0", " ".join(repr(self.estimator).split()))
        return f"case {self.number}: {estimator}.{call}\n    {given}"


def case(number):
    """Return the case of a number, the same one every time; three of four have draws of a second or a third stream."""
    drawn = first_stream(number)
    if number % 2:
        harden(np.random.default_rng([_SEED + 1, number]), drawn)
    elif number % 4 == 2:
        widen(np.random.default_rng([_SEED + 2, number]), drawn)
    return drawn


def first_stream(number):
    """Return the case of a number without the draws of the second stream."""
    rng = np.random.default_rng([_SEED, number])
    make = pick(rng, *_FAMILIES)
    estimator, outputs, takes_sparse = make(rng)
    if getattr(estimator, "solver", None) in _BASELINES and estimator.max_iter is None:
        estimator.set_params(max_iter=300)  # of 20 000 that they would take on such problems
    data = sample(rng, outputs, takes_sparse, "Tanimoto" in repr(getattr(estimator, "kernel", "")) and chance(rng, 0.8))
    refusable = list(data.faults)
    if chance(rng, 0.06):
        refusable.append(wrong_parameter(rng, estimator))
    return Case(number, estimator, data, refusable)


def wrong_parameter(rng, estimator):
    """Set one parameter to a value that is none, and return its name."""
    values = {
        "lam": (0.0, -1.0, np.nan, np.inf, "a", None),
        "tol": (0.0, -1e-6, np.nan, "a"),
        "max_iter": (0, -1, 2.5, "a"),
        "kernel": ("gauss", 3, k.Gaussian(-1.0)),
        "loss": ("hubber", 3, l.Huber(-1.0), l.EpsilonSVR(np.nan)),
        "solver": ("newtn", 3),
        "lams": ([], [0.0], [-1.0], "a"),
        "cv": (1, 0, "a"),
        "approximation": ("nystrm", 3),
    }
    known = [name for name in values if name in estimator.get_params(deep=False)]
    name = pick(rng, *known)
    estimator.set_params(**{name: pick(rng, *values[name])})
    return name


def scalar_kernel(rng):
    """Return a kernel of vectors; widths that follow the data and widths that do not."""
    return pick(
        rng,
        k.Gaussian("median"),
        k.Gaussian("median"),
        k.Gaussian(0.5),
        k.Gaussian(),
        k.Laplacian("median"),
        k.Laplacian(1.0),
        k.Linear(),
        k.Polynomial(2),
        k.Polynomial(3, 1.0, 0.0),
        k.Matern(1.0, 2.5),
        k.Matern(1.0, 0.5),
        k.Tanimoto(),
        k.Gaussian("median") + k.Constant(1.0),
        k.Gaussian(1.0) * k.Linear(),
        "gaussian",
        "auto",
        "rbf",
        "laplacian",
    )


def radial_loss(rng):
    """Return a loss of the norm."""
    size = float(10.0 ** rng.integers(-3, 3))
    return pick(
        rng,
        "square",
        "huber",
        l.Square(),
        l.Huber(size),
        l.Huber("auto"),
        l.EpsilonRidge(size),
        l.EpsilonRidge("auto"),
        l.EpsilonSVR(size),
        l.Norm(size),
        l.Power(1.5, size),
        l.Power(3.0),
        l.Exponential(size),
        l.NormLog(size),
        l.Ball(size),
        l.InfimalConvolution(l.Square(), l.Norm(size)),
        l.InfimalConvolution(l.Power(1.5), l.Square()),
        l.MaxMargin(),
    )


def any_loss(rng):
    """Return a loss of the norm or of the values."""
    size = float(10.0 ** rng.integers(-3, 3))
    order = pick(rng, 1, np.inf, 1.5, 3.0)
    return pick(
        rng,
        radial_loss(rng),
        radial_loss(rng),
        l.Huber(size, p=order),
        l.EpsilonRidge(size, p=order),
        l.EpsilonSVR(size, p=order),
        l.Pinball(0.7),
        l.IntegralLoss(l.AsymmetricSquare(), 0.8),
    )


def lam(rng):
    """Return a regularisation weight, sometimes tiny or huge."""
    return float(10.0 ** pick(rng, -3, -3, -2, -1, 0, -6, -9, -12, 3, 9))


def solver(rng, names=("apgd", "pgd", "bcd", "krylov", "row_newton", "douglas_rachford")):
    """Return a solver's name; mostly the default, seldom one that is for other problems."""
    if chance(rng, 0.05):
        return pick(rng, "closed_form", "box_newton")
    return "auto" if chance(rng, 0.6) else pick(rng, *names)


def approximation(rng):
    """Return an approximation of the kernel, mostly none."""
    if chance(rng, 0.8):
        return None
    return pick(rng, Nystrom(4), Nystrom("auto"), RandomFeatures(6, random_state=0), PSparsified(4, random_state=0))


def limits(rng):
    """Return parameters of the iteration."""
    limit = {"max_iter": int(pick(rng, 1, 3, 50))} if chance(rng, 0.2) else {}
    return {**limit, "tol": float(pick(rng, 1e-6, 1e-6, 1e-6, 1e-3, 1e-9))}


def regressor(rng):
    operator = pick(rng, None, None, None, "covariance")
    estimator = fenchel.OperatorKernelRegressor(
        scalar_kernel(rng),
        operator,
        any_loss(rng),
        lam(rng),
        solver(rng),
        approximation=approximation(rng),
        center=pick(rng, False, False, True, "robust"),
        scale=pick(rng, False, False, True, "robust"),
        **limits(rng),
    )
    return estimator, pick(rng, "flat", "vectors"), True


def functional(rng):
    representation = pick(rng, "spline", "spline", "spline", "eigen", "fourier")
    estimator = fenchel.FunctionalRegressor(
        pick(rng, None, scalar_kernel(rng)),
        pick(rng, None, k.Gaussian(3.0), k.Laplacian(5.0)),
        any_loss(rng) if representation == "spline" else radial_loss(rng),
        lam(rng),
        representation,
        {"spline": None, "eigen": 0.95, "fourier": 1}[representation],
        pick(rng, True, False, "median"),
        solver=solver(rng),
        approximation=approximation(rng),
        scale=pick(rng, False, False, True, "robust"),
        **limits(rng),
    )
    return estimator, "curves", False


def structured(rng):
    estimator = fenchel.StructuredPredictor(
        scalar_kernel(rng),
        pick(rng, "linear", k.Gaussian(0.5), k.Gaussian("median"), k.Tanimoto()),
        radial_loss(rng),
        lam(rng),
        center=pick(rng, False, True),
        solver=solver(rng),
        approximation=approximation(rng),
        **limits(rng),
    )
    return estimator, pick(rng, "sets", "vectors"), True


def quantiles(rng):
    estimator = fenchel.QuantileFunctionRegressor(
        scalar_kernel(rng),
        pick(rng, None, k.Gaussian(4.0)),
        lam(rng),
        int(pick(rng, 1, 3, 5)),
        intercept=float(pick(rng, 1.0, 0.0)),
        solver=solver(rng, ("apgd", "krylov", "box_newton", "douglas_rachford")),
        approximation=approximation(rng),
        pilot=chance(rng, 0.15),
        **limits(rng),
    )
    return estimator, pick(rng, "flat", "flat", "vectors"), False


def costs(rng):
    estimator = fenchel.CostSensitiveClassifier(
        scalar_kernel(rng),
        None,
        lam(rng),
        int(pick(rng, 1, 3, 5)),
        intercept=float(pick(rng, 1.0, 0.0)),
        solver=solver(rng, ("apgd", "krylov", "box_newton", "douglas_rachford")),
        approximation=approximation(rng),
        **limits(rng),
    )
    return estimator, "labels", False


def loss_trick(rng):
    task, outputs = pick(
        rng,
        ("least_squares", "flat"),
        ("least_squares", "vectors"),
        ("absolute", "flat"),
        ("hamming", "sets"),
        ("f1", "sets"),
        ("zero_one", "labels"),
    )
    surrogate = "square" if outputs == "labels" else pick(rng, "square", "huber", l.EpsilonRidge(0.1))
    estimator = fenchel.LossTrickPredictor(
        scalar_kernel(rng), task, lam(rng), surrogate, solver=solver(rng, ("apgd", "krylov")), **limits(rng)
    )
    return estimator, outputs, False


def autoencoder(rng):
    estimator = fenchel.KernelAutoencoder(
        int(pick(rng, 1, 2)),
        scalar_kernel(rng),
        "gaussian",
        pick(rng, "square", "huber", l.EpsilonRidge(0.1)),
        lam(rng),
        max_inner_iter=3,
        random_state=0,
        **limits(rng),
    )
    return estimator, "none", False


def searches(rng):
    """Return a search: small grids, or everything left open."""
    shared = {"cv": pick(rng, 2, 3, "loo")}
    if chance(rng, 0.8):
        shared |= {"lams": [1e-3, 1e-1]}
    kernel = pick(rng, scalar_kernel(rng), scalar_kernel(rng), "auto")
    losses = pick(rng, ["square"], [l.Huber("auto")], [l.Square(), l.EpsilonRidge(0.1)])
    kind = rng.integers(4)
    if kind == 3:
        return fenchel.QuantileFunctionRegressorCV(kernel, levels=3, **{**shared, "cv": 2}), "flat", False
    make, outputs = (
        (fenchel.OperatorKernelRegressorCV, pick(rng, "flat", "vectors")),
        (fenchel.FunctionalRegressorCV, "curves"),
        (fenchel.StructuredPredictorCV, "sets"),
    )[kind]
    return make(kernel, losses=losses, **shared), outputs, kind != 1


_FAMILIES = (
    *3 * (regressor,),
    *3 * (functional,),
    *2 * (structured,),
    *2 * (quantiles,),
    costs,
    loss_trick,
    autoencoder,
    searches,
)
