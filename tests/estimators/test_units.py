"""Estimators with kernel="auto" do not depend on the units of their data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fenchel
from fenchel.decoders import Preimage
from fenchel.kernels import Gaussian, Standardized
from fenchel.losses import Huber

UNITS = np.array([1e3, 1e-3, 20.0])
SHIFT = np.array([5.0, -2.0, 100.0])


@pytest.fixture
def table(rng):
    X = rng.standard_normal((60, 3))
    return X[:45], np.sin(2 * X[:45, 0]) + X[:45, 1] + 0.1 * rng.standard_normal(45), X[45:]


CASES = {
    "regressor": (fenchel.OperatorKernelRegressor("auto", loss=Huber("auto"), center=True, scale=True), "number"),
    "structured": (fenchel.StructuredPredictor("auto", decoder="clamp"), "labels"),
    "structured search": (fenchel.StructuredPredictorCV(decoder="clamp"), "labels"),
    "loss trick": (fenchel.LossTrickPredictor(), "number"),
    "loss trick, lam given": (fenchel.LossTrickPredictor(task_loss="absolute", lam=1e-2), "number"),
    "loss trick, classes": (fenchel.LossTrickPredictor(task_loss="zero_one"), "class"),
    "costs": (fenchel.CostSensitiveClassifier("auto"), "class"),
}
OUTPUTS = {
    "number": lambda y: y,
    "class": lambda y: (y > 0).astype(int),
    "labels": lambda y: np.column_stack([y > 0, y > 1, y < -1]).astype(float),
}


@pytest.mark.parametrize("name", CASES)
def test_predictions_do_not_depend_on_units(table, name):
    X, y, X_new = table
    model, kind = CASES[name]
    Y, unit = OUTPUTS[kind](y), 1e4 if kind == "number" else 1
    reference = model.fit(X, Y).predict(X_new)
    rescaled = model.fit(X * UNITS + SHIFT, Y * unit).predict(X_new * UNITS + SHIFT) / unit
    assert_allclose(rescaled, reference, rtol=1e-6, atol=1e-6)
    assert np.ptp(reference, axis=0).max() > 0.1  # a model that predicts one value has no units either


class TestAutoencoder:
    def test_codes_do_not_depend_on_units(self, table):
        X, _, X_new = table
        one = fenchel.KernelAutoencoder(max_inner_iter=5).fit(X)
        other = fenchel.KernelAutoencoder(max_inner_iter=5).fit(X * UNITS + SHIFT)
        assert_allclose(other.transform(X_new * UNITS + SHIFT), one.transform(X_new), rtol=0, atol=1e-6)
        codes = one.transform(X_new)
        assert_allclose((other.inverse_transform(codes) - SHIFT) / UNITS, one.inverse_transform(codes), atol=1e-5)

    def test_raw_data_are_reconstructed(self, rng):
        """Points on a curve, in units that are far apart, have one code each."""
        t = np.linspace(0, 3, 60)
        X = np.column_stack([np.cos(t), 1e4 * np.sin(t), 1e-3 * t])
        model = fenchel.KernelAutoencoder(1, lam=1e-4).fit(X)
        back = model.inverse_transform(model.transform(X))
        assert (np.mean((back - X) ** 2, axis=0) < 0.05 * np.var(X, axis=0)).all()

    def test_a_preimage_in_standardised_coordinates(self, rng):
        """The decoder finds what it finds for data that were standardised before; a constant column is what it was."""
        X = rng.standard_normal((30, 2))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        raw = np.column_stack([3 + 1e3 * X[:, 0], X[:, 1] / 50, np.full(30, 7.0)])
        weights = rng.uniform(0, 1, (4, 30))
        plain = fenchel.StructuredPredictor("linear", Gaussian(0.5), decoder=Preimage()).fit(X, X)
        scaled = fenchel.StructuredPredictor("linear", Standardized(Gaussian(0.5)), decoder=Preimage()).fit(X, raw)
        found = scaled.decoder_.decode(weights @ scaled.representation_.targets_)
        wanted = plain.decoder_.decode(weights @ plain.representation_.targets_)
        assert_allclose(found[:, 0], 3 + 1e3 * wanted[:, 0], rtol=1e-5, atol=1e-2)
        assert_allclose(found[:, 1], wanted[:, 1] / 50, rtol=1e-5, atol=1e-6)
        assert_allclose(found[:, 2], 7.0, rtol=1e-12)


class TestLossTrick:
    def test_what_was_chosen(self, table):
        X, y, _ = table
        model = fenchel.LossTrickPredictor().fit(X * UNITS, y)
        assert model.lam_ == model.best_lam_ == model.lams_[int(np.argmin(model.cv_errors_))]
        assert isinstance(model.best_kernel_, Standardized)
        assert len(model.search_["error"]) > 50

    def test_a_raw_table_is_learned(self, table):
        X, y, _ = table
        model = fenchel.LossTrickPredictor().fit(X[:35] * UNITS, y[:35])
        assert np.mean((model.predict(X[35:] * UNITS) - y[35:]) ** 2) < 0.5 * np.var(y)

    def test_given_kernel_and_lam_mean_what_they_meant(self, table):
        X, y, X_new = table
        model = fenchel.LossTrickPredictor(Gaussian(0.3)).fit(X, y)
        K = Gaussian(0.3)(X)
        weights = Gaussian(0.3)(X_new, X) @ np.linalg.inv(K + 1e-3 * len(X) * np.eye(len(X)))
        wanted = np.clip(weights @ y / weights.sum(axis=1), y.min(), y.max())
        assert model.lam_ == 1e-3
        assert_allclose(model.predict(X_new), wanted, rtol=1e-6)
