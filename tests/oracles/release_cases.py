"""The recorded cases as data: what is fitted, on which sample, and what is asked of it. Public names only.

A case is an expression, evaluated when it runs, so that a part that is gone is one case that differs. An expression
that speaks of ``s``, the sample, gives the fitted object itself; any other is an estimator, which is fitted.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import linear_model, model_selection, pipeline, preprocessing

import fenchel
from fenchel import (
    approximations,
    decoders,
    estimators,
    kernels,
    losses,
    metrics,
    representations,
    solvers,
    task_losses,
)
from tests.oracles.release_data import GRID, Sample, sample_of

_ATTRIBUTES = """
best_kernel_ best_loss_ best_lam_ best_output_kernel_ best_level_kernel_ search_ loss_ lam_ kernel_ decoder_
task_loss_ hidden_kernel_ output_operator_ status_ n_iter_ certificate_ duality_gap_ duality_gap_standard_error_
primal_objective_ dual_objective_ dual_coef_ support_ sparsity_ outlier_score_ point_outlier_score_ grid_ center_
scale_ representation_error_ lams_ losses_ cv_errors_ fold_errors_ cv_gaps_ kernel_errors_ classes_ levels_
level_weights_ crossing_rate_ scores_ codes_ inner_coef_ objective_ n_inner_iter_ inner_status_ relevances_ metric_
gaps_ best_round_ share_ errors_ left_out_ is_outlier_ kept_fit_ n_features_in_ feature_names_ target_names_
"""
ATTRIBUTES = tuple(_ATTRIBUTES.split())


def _entries(*rooms: Any) -> dict[str, Any]:
    return {name: getattr(room, name) for room in rooms for name in room.__all__ if hasattr(room, name)}


NAMES = {
    **_entries(approximations, decoders, solvers, representations, estimators, fenchel, kernels, losses),
    **{
        "np": np,
        "task_losses": task_losses,
        "metrics": metrics,
        "GRID": GRID,
        "TableRegressor": estimators.TableRegressor,
    },
    **{name: getattr(model_selection, name) for name in ("KFold", "GroupKFold", "LeaveOneGroupOut", "ShuffleSplit")},
    **{"GridSearchCV": model_selection.GridSearchCV, "make_pipeline": pipeline.make_pipeline},
    **{"StandardScaler": preprocessing.StandardScaler, "LinearRegression": linear_model.LinearRegression},
    "same_letters": lambda A, B: np.array([[len({*a} & {*b}) / len({*a} | {*b}) for b in B] for a in A]),
    "coupled": lambda X, Z: np.exp(-0.5 * np.sum((X[:, None] - Z) ** 2, axis=2))[:, :, None, None] * (np.eye(3) + 0.5),
    "absolute_errors": lambda y, found: np.abs(np.asarray(y) - found).reshape(len(y), -1).mean(axis=1),
}


def _band(band: Any, s: Sample) -> dict[str, Any]:
    found = {"lower": band.lower, "upper": band.upper, "contains": band.contains(s.y_new), "width": band.width}
    return found | ({"radius": band.ellipsoid.radius} if band.ellipsoid is not None else {})


def _report(report: Any) -> dict[str, Any]:
    names = (
        "scores",
        "p_values",
        "conformal_p_values",
        "kinds",
        "residuals",
        "expected_sizes",
        "ranking",
        "output_names",
    )
    found = {name: getattr(report, name) for name in names} | {"flagged": report.flagged(0.1), "text": str(report)}
    return found | {"table": [list(row) for row in report.table()[:3]]}


def _reloaded(model: Any, s: Sample) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.skops"
        fenchel.save(model, file)
        return {"predict": fenchel.load(file).predict(s.new), "bytes": float(file.stat().st_size)}


def _conformal_sets(model: Any, s: Sample) -> dict[str, Any]:
    found = model.predict_set(s.new, strata=s.more.get("strata"))
    return {"size": found.size, "places": found.places, "contains": found.contains(s.y_new)}


ASK: dict[str, Callable[[Any, Sample], Any]] = {
    "predict": lambda model, s: model.predict(s.new),
    "score": lambda model, s: model.score(s.X, s.y, **{k: v for k, v in s.fit.items() if k == "grid"}),
    "gradient": lambda model, s: model.gradient(s.new),
    "at": lambda model, s: model.predict(s.new, grid=np.linspace(0.1, 1.9, 7)),
    "derivative": lambda model, s: model.predict(s.new, grid=np.linspace(0.1, 1.9, 7), derivative=True),
    "gradient_at": lambda model, s: model.gradient(s.new[:2], grid=np.array([0.5, 1.0])),
    "distances": lambda model, s: model.decision_scores(s.new, s.more.get("candidates")),
    "top": lambda model, s: model.top_k(s.new, 3, s.more.get("candidates"), indices=True),
    "chosen": lambda model, s: model.predict(s.new, s.more.get("candidates")),
    "shares": lambda model, s: model.weights(s.new),
    "quantiles": lambda model, s: model.predict(s.new, [0.05, 0.5, 0.9]),
    "interval": lambda model, s: model.predict_interval(s.new, 0.8),
    "sample": lambda model, s: model.sample(s.new, 5, random_state=0),
    "decision": lambda model, s: model.decision_function(s.new, [0.2, 0.5, 0.7]),
    "costs": lambda model, s: model.predict(s.new, 0.8),
    "curve": lambda model, s: vars(model.cost_curve(s.X, s.y, [0.1, 0.4])),
    "transform": lambda model, s: model.transform(s.new),
    "reconstruct": lambda model, s: model.reconstruct(s.new),
    "inverse": lambda model, s: model.inverse_transform(model.transform(s.new)),
    "band": lambda model, s: _band(model.predict_interval(s.new), s),
    "band_80": lambda model, s: _band(model.predict_interval(s.new, 0.8, **s.more), s),
    "set": _conformal_sets,
    "report": lambda report, s: _report(report),
    "points": lambda report, s: report.flagged_points(0.1),
    "of_new": lambda report, s: _report(report.of_new(s.new, s.y_new)),
    "path": lambda path, s: {
        name: getattr(path, name) for name in ("gaps", "primal_objectives", "dual_objectives", "sparsity", "n_iter")
    },
    "model": lambda path, s: path.model(0, 1).predict(s.new),
    "values": lambda found, s: vars(found),
    "saved": _reloaded,
    "table_interval": lambda model, s: dict(zip("lu", model.predict_interval(s.new), strict=True)),
}


@dataclass(frozen=True)
class Case:
    """An expression, the name of a sample, and the names of questions."""

    data: str
    expression: str
    ask: str = "predict"

    @property
    def name(self) -> str:
        """The name under which the case is recorded."""
        return f"{self.data}: {self.expression}"

    def fit(self) -> tuple[Sample, Any]:
        """Return the sample and what was fitted to it."""
        sample = sample_of(self.data)
        found = eval(self.expression, NAMES, {"s": sample})
        if re.search(r"\bs\.", self.expression):
            return sample, found
        given = (sample.X,) if sample.y is None or "Autoencoder" in self.expression else (sample.X, sample.y)
        return sample, found.fit(*given, **sample.fit)

    def questions(self) -> Iterator[tuple[str, Callable[[Any, Sample], Any]]]:
        """Iterate over the questions and their names."""
        return ((name, ASK[name]) for name in self.ask.split())


# a row: samples | expression | values that are put for @ | questions; $NAME is a list of the other text
_LISTS = """
RADIAL: Square() ; Huber(0.3) ; Huber('auto') ; Huber('scale:1.5') ; EpsilonRidge(0.2) ; EpsilonRidge('auto') ;
    EpsilonSVR(0.2) ; Norm(0.5) ; Power(1.5) ; Power(3.0) ; Exponential(0.5) ; NormLog(0.5) ; Ball(0.5) ;
    InfimalConvolution(Square(), Norm(0.4)) ; InfimalConvolution(Power(1.5), Square())
POINTWISE: Huber(0.3, p=1) ; Huber(0.3, p=1.5) ; Huber(0.3, p=np.inf) ; EpsilonRidge(0.2, p=1) ;
    EpsilonRidge(0.2, p=1.5) ; EpsilonRidge(0.2, p=np.inf) ; EpsilonSVR(0.2, p=1) ; Pinball(0.7) ;
    IntegralLoss(AsymmetricSquare(), 0.8)
SCALAR: 'gaussian' ; 'laplacian' ; 'linear' ; 'rbf' ; Gaussian('median') ; Matern(1.0, 2.5) ; Polynomial(2) ;
    Gaussian(0.5) + Constant(1.0) ; Gaussian(0.3) * Linear() ; RationalQuadratic() ; Scaled(Gaussian(0.5), 2.0) ;
    Part(Gaussian(0.5), [0, 2]) ; Projected(Gaussian(0.5), np.array([[1.0], [0.5], [0.0]])) ;
    Standardized(Gaussian(0.5)) ; MultipleKernel([('a', Gaussian(0.5), [0]), ('b', Linear(), [1, 2])])
OPERATOR: 'covariance' ; Matrix(np.eye(3) + 0.5) ; Diagonal(np.array([1.0, 0.5, 0.2]))
FORMS: flat, column, vectors float32, vectors sparse, vectors pandas, flat polars, vectors polars, vectors weights,
    vectors zeros, vectors lists, vectors large, vectors constant, vectors same_inputs
CURVES: curves, curves_of_vectors, curves float32, curves weights, curves zeros, gaps, gaps weights, ragged, channels,
    channel_gaps, channel_inputs, fdata
SETS: 'linear' ; Gaussian(0.5) ; Tanimoto()
INTERVAL: 'absolute' ; task_losses.Huber(0.5) ; task_losses.Cauchy(0.5) ; task_losses.Fair() ; task_losses.L2L1() ;
    task_losses.GemanMcClure() ; task_losses.Pinball(0.7) ; task_losses.EpsilonInsensitive(0.1)
SQUARE: losses=['square'], lams=[1e-4, 1e-2, 1.0]
ROBUST: losses=['square', Huber(0.1), EpsilonRidge('auto')], lams=[1e-3, 1e-1]
KINDS: cv=3 ; cv='loo' ; cv=KFold(3) ; cv=4, aggregate='median' ; cv=3, aggregate='trimmed_mean' ;
    aggregate='fold_median'
LABELS: None ; 'rank' ; 'top_1' ; 'f1_samples' ; metrics.label_scorer('f1')
SCORES: 'neg_mean_absolute_error' ; 'r2' ; absolute_errors
INNER: OperatorKernelRegressor(Gaussian(0.5), loss='square', lam=1e-2)
WIDTHS: modulation='constant' ; modulation='local' ; modulation=LinearRegression() ; joint=False
MORE: joint='ellipsoid' ; joint='ellipsoid', modulation='local' ; contamination=0.1 ;
    calibration_size=0.4 ; random_state=3
METHODS: method='split' ; method='cv+' ; method='jackknife+'
BAD: lam=0.0 ; lam='a' ; tol=-1.0 ; max_iter=0 ; kernel='gauss' ; loss='hubber' ; loss=Huber(-1.0) ; solver='newtn' ;
    approximation='nystrm' ; kernel=Gaussian(-1.0) ; center='mean' ; certificate='all' ; operator=Matrix(-np.eye(3))
FAULTS: vectors nan_inputs, vectors infinite_outputs, vectors missing_output, vectors short, vectors empty,
    vectors text, vectors negative_weights, vectors short_weights, vectors no_weight, vectors three_axes, vectors wide
SEARCH: lams=[] ; lams=[-1.0] ; cv=1 ; cv='all' ; aggregate='mode' ; losses=[] ; scoring='nothing'
APPROXIMATE: Nystrom(8) ; RandomFeatures(20) ; PSparsified(10) ; Nystrom(8), certificate='sampled' ;
    Nystrom(8), certificate='exact' ; PSparsified(10), certificate='sampled' ; PSparsified(10), certificate='exact'
"""

_ROWS = """
# regressors
vectors | OperatorKernelRegressor(Gaussian(0.5), loss=@, lam=1e-2) | $RADIAL ; $POINTWISE
signs | OperatorKernelRegressor(Gaussian(0.5), loss=@, lam=1e-2) | MaxMargin() ; InnerProduct(SquaredHinge())
vectors | OperatorKernelRegressor(Gaussian(0.5), loss=@, lam=1e-2) | InnerProduct(Hinge(), lambda Y: Y[:, ::-1])
vectors | OperatorKernelRegressor(@, loss=Huber(0.3), lam=1e-2) | $SCALAR | predict gradient
bits | OperatorKernelRegressor(@, lam=1e-2) | Tanimoto() ; GaussianTanimoto(0.5)
vectors | OperatorKernelRegressor(Gaussian(0.5), @, EpsilonRidge(0.2), 1e-2) | $OPERATOR | predict gradient
vectors | OperatorKernelRegressor(@, lam=1e-2) | Aligned(Gaussian(0.5)) ; Blocks(coupled)
vectors | OperatorKernelRegressor(SeparableSum([Separable(Gaussian(0.5)), Separable(Linear(), 'covariance')]))
$FORMS | OperatorKernelRegressor(loss=@, lam=1e-2) | 'square' ; 'huber' | predict score
gram, gram weights | OperatorKernelRegressor('precomputed', loss=@) | 'square' ; Huber(0.3)
vectors | OperatorKernelRegressor(Gaussian(0.5), loss=Huber(0.3), lam=1e-2, solver=@) | 'apgd' ; 'krylov'
vectors | OperatorKernelRegressor(Gaussian(0.5), loss=EpsilonRidge(0.2), solver=@) | 'row_newton' ; PGD(9)
flat | OperatorKernelRegressor(Gaussian(0.5), loss=Pinball(0.7), solver=@) | 'douglas_rachford' ; 'box_newton'
vectors | OperatorKernelRegressor(Gaussian(0.5), loss=EpsilonSVR(0.2), solver=@) | BCD(5) ; 'bcd'
vectors | OperatorKernelRegressor(loss=Huber(0.3), lam=1e-2, center=@) | True ; 'robust' | predict saved
vectors wrong | OperatorKernelRegressor(loss='huber', center=@, scale=@) | True ; 'robust'
vectors | OperatorKernelRegressor(loss=Huber(0.3), lam=1e-4, max_iter=@) | 1 ; 3
vectors | OperatorKernelRegressor(lam=1e-3, tol=@) | 1e-3 ; 1e-10
vectors | OperatorKernelRegressor(Gaussian(0.5), None, 'square', 1e-2, approximation=@) | $APPROXIMATE
vectors | OperatorKernelRegressor(Gaussian(0.5), None, Huber(0.3), 1e-2, approximation=@) | $APPROXIMATE
# functional
curves | FunctionalRegressor(loss=@, lam=5e-3) | $RADIAL ; $POINTWISE
$CURVES | FunctionalRegressor(loss=@, lam=1e-2) | 'square' ; Huber(0.3) | predict score at
curves | FunctionalRegressor(representation=@, output_kernel=Gaussian(3.0), n_components=3) | 'eigen' ; 'fourier'
curves | FunctionalRegressor(representation=@, lam=1e-2) | Spline('mean') ; Eigen(0.9) ; Fourier(5) | at
curves | FunctionalRegressor(output_kernel=@, lam=1e-2) | Gaussian(5.0) ; Matern(0.3, 1.5) | derivative at
curves_of_vectors | FunctionalRegressor(Gaussian(0.5), Gaussian(5.0), lam=1e-2) | | gradient gradient_at
curves, gaps | FunctionalRegressor(center=@, lam=1e-2) | False ; 'median' | predict at saved
curves, gaps | FunctionalRegressor(scale=@, loss='huber', lam=1e-2) | True ; 'robust' | predict score
channels | FunctionalRegressor(channels=[[1.0, 0.5], [0.5, 1.0]], lam=1e-2) | | predict at saved
channels | FunctionalRegressor(output_kernel=[Gaussian(5.0), Laplacian(3.0)], lam=1e-2) | | predict derivative
curves | FunctionalRegressor(@, lam=1e-2) | FunctionalGaussian('median') ; FunctionalLaplacian(2.0) ; 'linear'
channel_inputs | FunctionalRegressor(@, lam=1e-2) | IntegralGaussian(1.0) ; IntegralLaplacian(1.0)
curves | FunctionalRegressor(approximation=@, lam=1e-2) | Nystrom(8) ; Nystrom('auto')
curves | FunctionalRegressor(Separable(FunctionalGaussian(1.0), IntegralOperator('laplacian'))) | | predict
# structured
sets, sets float32 | StructuredPredictor(Gaussian(0.5), @, lam=1e-2) | $SETS | predict score top
sets | StructuredPredictor(Gaussian(0.5), loss=@) | Huber(0.5) ; EpsilonRidge(0.2) | chosen distances saved
sets own_candidates | StructuredPredictor(Gaussian(0.5), @) | 'linear' ; Gaussian(0.5) | chosen top
sets, sets weights, sets zeros | StructuredPredictor(decoder=@) | 'threshold' | predict score
vectors | StructuredPredictor(output_kernel=@, lam=1e-2) | Gaussian(0.5) ; 'linear' | predict distances
vectors | StructuredPredictor(output_kernel=Gaussian(0.2), decoder=@, lam=1e-2) | Preimage() ; Clamp()
histograms | StructuredPredictor(decoder=@, lam=1e-2) | 'training_set' ; Clamp()
objects | StructuredPredictor(Gaussian(0.5), same_letters, lam=1e-2)
sets | StructuredPredictor(center=True, lam=1e-2, @) | approximation=Nystrom(8) ; output_approximation=Nystrom(3)
flat | LossTrickPredictor(Gaussian(0.5), @, 1e-2) | $INTERVAL | predict score
flat | LossTrickPredictor(task_loss='absolute', surrogate=@) | 'square' ; Huber(0.5) | predict shares
sets | LossTrickPredictor(Gaussian(0.5), @, 1e-2) | 'hamming' ; 'f1' | predict shares saved
classes | LossTrickPredictor(Gaussian(0.5), @, 1e-2) | 'zero_one' ; [[0, 2, 1], [1, 0, 3], [1, 1, 0]]
histograms | LossTrickPredictor(Gaussian(0.5), @, 1e-2) | 'chi_square' ; 'hellinger'
angles | LossTrickPredictor(Gaussian(0.5), @, 1e-2) | 'circle_diffusion' ; task_losses.CircleGeodesic()
sphere | LossTrickPredictor(Gaussian(0.5), @, 1e-2) | 'sphere_diffusion' ; task_losses.SphereGeodesic()
vectors | LossTrickPredictor(Gaussian(0.5), lam=1e-2, task_loss=@) | 'rank_loss', decoder=FeedbackArcSet(2) ;
    'least_squares' ; 'kernel_induced'
# others
vectors | KernelAutoencoder(@, max_inner_iter=4, random_state=0) | 2, Gaussian(0.3) ;
    1, Gaussian(0.3), loss=Huber(0.3) ; 2, 'auto', loss=EpsilonRidge(0.1) | transform reconstruct
vectors | KernelAutoencoder((2, 1), 'linear', max_inner_iter=4, random_state=0) | | transform inverse
flat, flat weights | QuantileFunctionRegressor(lam=1e-2, levels=@) | 3 ; [0.2, 0.6] | quantiles interval
flat | QuantileFunctionRegressor(levels=5, non_crossing=True) | | quantiles sample score saved
vectors | QuantileFunctionRegressor(levels=3, lam=1e-2) | | quantiles
flat | QuantileFunctionRegressor(levels=5, lam=10.0, pilot=True) | | quantiles interval
flat | QuantileFunctionRegressor(levels=3, approximation=Nystrom(8), certificate='exact') | | quantiles
two, two weights | CostSensitiveClassifier(lam=@, levels=4) | 1e-1 ; 1e-3 | decision costs curve score
lines | FieldRegressor(OperatorKernelRegressor(lam=1e-2, center=True)@) | , 'fourier', 3, 'fourier', 3 ;  | predict
    score
images | FieldRegressor(OperatorKernelRegressor(lam=1e-2, center=True), input_components=3) | | predict saved
vectors | LearnedMetricRegressor(OperatorKernelRegressorCV(losses=['square'], lams=[1e-3, 1e-1]), 'diagonal', 2)
vectors | LearnedMetricRegressor(OperatorKernelRegressorCV(losses=['square'], lams=[1e-3, 1e-1]), 'full', 1)
vectors | LearnedOutputRegressor(OperatorKernelRegressorCV(Gaussian(0.5), lams=[1e-3, 1e-2]))
vectors | path(OperatorKernelRegressor(Gaussian(0.5)), s.X, s.y, [1.0, 1e-2], [@]) | 'square' ; 'square', Huber(0.3) |
    path model
gaps | path(FunctionalRegressor(), s.X, s.y, [1.0, 1e-2], [Huber(0.3)], grid=s.fit['grid']) | | path model
flat | generalization_bound(OperatorKernelRegressor(loss=@, lam=0.1).fit(s.X, s.y), 0.05, 1.5, X=s.X, y=s.y) |
    'huber' ; EpsilonSVR(0.1) | values
vectors | learn_kernel_weights(MultipleKernel([('a', Gaussian('median'), [0]), ('b', Linear(), [1, 2])]), s.X, s.y,
    9) | | values
table, bad_table | TableRegressor(@, ['u', 'v']) | OperatorKernelRegressor(lam=1e-2) | predict saved
table | TableRegressor(ConformalRegressor(OperatorKernelRegressor(), 0.6), ['u']) | | predict table_interval
vectors | make_pipeline(StandardScaler(), OperatorKernelRegressor(lam=1e-2)) | | predict saved
vectors | GridSearchCV(OperatorKernelRegressor(loss='huber'), {'lam': [1e-3, 1e-1], 'loss__kappa': [0.2, 1.0]},
    cv=3)
vectors | OperatorKernelRegressor(lam=1e-2).fit(s.X, s.y).set_params(lam=1.0, kernel='linear') | | predict saved
# searches
vectors | OperatorKernelRegressorCV(Gaussian(0.5), $ROBUST, @) | $KINDS
vectors | OperatorKernelRegressorCV(Gaussian(0.5), $SQUARE, @) | $KINDS ; scale=True, center='robust'
vectors | OperatorKernelRegressorCV(Gaussian(0.5), $ROBUST, cv=3, scoring=@) | $SCORES
flat, vectors, vectors wrong, flat weights, vectors float32, vectors sparse, vectors pandas, vectors groups |
    OperatorKernelRegressorCV() | | predict score
vectors groups | OperatorKernelRegressorCV(Gaussian(0.5), $ROBUST, cv=@) | GroupKFold(3) ; 'loo' ; 4
gram, gram groups | OperatorKernelRegressorCV('precomputed', $ROBUST, cv=3)
vectors | OperatorKernelRegressorCV(Gaussian('median'), losses=@, cv=3) | 'auto' ; [EpsilonRidge('scale:0.5')]
vectors | OperatorKernelRegressorCV(Gaussian(0.5), 'covariance', $SQUARE, approximation=@) | Nystrom(9) ; None
vectors | OperatorKernelRegressorCV(metric=np.array([1.0, 0.5, 0.0]), $SQUARE)
curves, gaps, channels | FunctionalRegressorCV(FunctionalGaussian(1.0), $ROBUST, cv=3) | | predict at
curves | FunctionalRegressorCV('gaussian', Gaussian(5.0), $SQUARE, @) | cv='loo' ; cv=3, representation='fourier'
curves | FunctionalRegressorCV('gaussian', $ROBUST, cv=3, aggregate=@) | 'median' ; 'trimmed_mean'
curves | FunctionalRegressorCV('gaussian', $ROBUST, cv=3, scoring=@) | absolute_errors ;
    metrics.curve_scorer('median')
curves, curves_of_vectors, curves wrong, curves weights, fdata, ragged | FunctionalRegressorCV(cv=3)
curves groups | FunctionalRegressorCV('gaussian', $ROBUST, cv=@) | GroupKFold(3) ; 'loo'
sets | StructuredPredictorCV(Gaussian(0.5), 'linear', $SQUARE, cv=3, scoring=@) | $LABELS
sets, vectors, histograms | StructuredPredictorCV(cv=3) | | predict score
sets | StructuredPredictorCV('gaussian', ['linear', Gaussian(0.5)], $ROBUST, task_loss=metrics.hamming_losses)
sets groups | StructuredPredictorCV('gaussian', 'linear', $SQUARE, cv=@) | GroupKFold(3) ; 'loo' | chosen
flat | QuantileFunctionRegressorCV([Gaussian(0.5), Gaussian(2.0)], lams=[1e-3, 1e-1], levels=3, cv=3) | | quantiles
flat | QuantileFunctionRegressorCV(levels=3, cv=2@) |  ; , pilot=False | quantiles interval
flat groups | QuantileFunctionRegressorCV('gaussian', lams=[1e-3, 1e-1], levels=3, cv=2) | | quantiles
flat | LossTrickPredictor(task_loss='absolute', @) | cv=3 ; lams=[1e-3, 1e-1], cv=3, aggregate='median'
classes | LossTrickPredictor(task_loss='zero_one', cv=3) | | predict score
# bands
bands, band_vectors | ConformalRegressor($INNER, 0.8, @) | $METHODS ; method='cv+', cv=3 | band band_80
band_vectors | ConformalRegressor($INNER, 0.8, @) | $WIDTHS ; $MORE | band
band_vectors | ConformalRegressor($INNER, 0.8, 'cv+', @) | $WIDTHS | band
band_vectors | ConformalRegressor($INNER, 0.8, 'jackknife+', @) | $WIDTHS | band
band_vectors | ConformalRegressor(OperatorKernelRegressor(loss=Huber(0.3)), 0.8, @) | $METHODS | band
many_curves, gaps | ConformalRegressor(FunctionalRegressor(lam=1e-2), 0.7, @) | $METHODS ; modulation='local' | band
channels, ragged | ConformalRegressor(FunctionalRegressor(lam=1e-2), 0.6, @) | $METHODS | band
bands two_groups | ConformalRegressor($INNER, 0.8, @) | $METHODS | band_80
bands replicates | ConformalRegressor(OperatorKernelRegressorCV(Gaussian(0.5)), 0.6, @) | $METHODS | band
bands weights | ConformalRegressor($INNER, 0.8, @) | $METHODS | band
bands | ConformalRegressor(@, 0.8) | LinearRegression() ; make_pipeline(StandardScaler(), LinearRegression()) | band
bands | ConformalRegressor(QuantileFunctionRegressor(levels=3), 0.8) | | band
flat | ConformalRegressor($INNER, 0.99) | | band
many_sets, many_sets two_groups | ConformalPredictor(StructuredPredictor(), 0.8, @) | 'margin' ; 'distance' | set
# outliers
bands wrong, band_vectors wrong | OutlierReport.of(OperatorKernelRegressor(Gaussian(0.5), loss=@, lam=1e-2).fit(s.X,
    s.y), s.X, s.y) | 'square' ; Huber(0.3) ; EpsilonRidge(0.2) | report of_new
band_vectors wrong | OutlierReport.of($INNER.fit(s.X, s.y), s.X, s.y, @) | cv=5 ; groups=s.labels | report
bands wrong | OutlierReport.of(@.fit(s.X, s.y), s.X, s.y) | LinearRegression() ; OperatorKernelRegressorCV() |
    report
many_curves wrong, gaps, channels, channel_gaps | OutlierReport.of(FunctionalRegressor(loss=@, lam=1e-2).fit(s.X,
    s.y, **s.fit), s.X, s.y) | 'square' ; Huber(0.3) | report points
many_curves wrong, gaps, channels | OutlierReport.of_curves(s.y, s.fit['grid']) | | report points
band_vectors wrong | RobustRefit(OperatorKernelRegressor(loss=@), fdr=0.2) | 'square' ; Huber(0.3) | predict score
bands groups | RobustRefit(OperatorKernelRegressorCV(Gaussian(0.5), losses=['square']), cv=3, max_rounds=2)
many_curves wrong | RobustRefit(FunctionalRegressor(lam=1e-2))
# hostile
vectors | OperatorKernelRegressor(@) | $BAD
$FAULTS | @() | OperatorKernelRegressor ; OperatorKernelRegressorCV ; StructuredPredictor
curves unsorted, curves short_grid, curves nan_inputs, curves short | @() | FunctionalRegressor ;
    FunctionalRegressorCV
flat | OperatorKernelRegressorCV(Gaussian(0.5), @) | $SEARCH
gram three_axes | OperatorKernelRegressor('precomputed')
vectors | OperatorKernelRegressor('precomputed')
gaps | FunctionalRegressor(representation='eigen', output_kernel=Gaussian(3.0))
bands | ConformalRegressor(@) | coverage=1.0 ; method='cv' ; OperatorKernelRegressor(), joint='all'
bands | ConformalRegressor($INNER).conformalize(s.X, s.y)
bands replicates | ConformalRegressor($INNER, method='jackknife+')
two | @() | OperatorKernelRegressor ; QuantileFunctionRegressor ; StructuredPredictor
classes | CostSensitiveClassifier()
bands | OutlierReport.of($INNER.fit(s.X, s.y), s.X[1:], s.y)
vectors | @.predict(s.X) | OperatorKernelRegressor() ; OperatorKernelRegressorCV() ; ConformalRegressor()
"""


def _joined(text: str) -> list[str]:
    """Return the rows of a text, in which a continued line is indented."""
    lines = [line for line in text.strip().splitlines() if not line.startswith("#")]
    return [re.sub(r"\s*\n\s+", " ", line) for line in re.split(r"\n(?=\S)", "\n".join(lines))]


def _read(rows: str, lists: str) -> Iterator[Case]:
    """Iterate over the cases of rows ``samples | expression | values of @ | questions``."""
    shorthands = dict(row.split(": ", 1) for row in _joined(lists))
    for row in _joined(rows):
        full = re.sub(r"\$([A-Z]+)", lambda found: shorthands[found[1]], row)
        data, expression, values, ask = (*(part.strip() for part in re.split(r" \|(?= |$)", full)), "", "")[:4]
        for name, value in product(data.split(","), re.split(r"\s*;\s*", values)):
            yield Case(name.strip(), expression.replace("@", value), ask or "predict")


# cases of containers that are not installed are left out: they would all raise the same error
_CONTAINERS = {"polars": "polars", "pandas": "pandas", "table": "pandas", "fdata": "skfda"}
_MISSING = [word for word, module in _CONTAINERS.items() if not find_spec(module)]
CASES = [case for case in _read(_ROWS, _LISTS) if not any(word in case.data for word in _MISSING)]
