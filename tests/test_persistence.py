"""Models go through a file and come back as they were; what is not a model, or not whole, is refused in one line."""

import io
import json
import os
import re
import subprocess
import sys
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from inspect import isabstract

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.metrics import get_scorer, get_scorer_names, make_scorer, mean_pinball_loss, root_mean_squared_error
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

import fenchel
from fenchel import kernels, losses
from fenchel.app.persistence import FORMAT, describe
from fenchel.data.files import write_whole
from fenchel.decoders import Candidates
from fenchel.exceptions import ModelFileError
from fenchel.kernels import Gaussian, Laplacian
from fenchel.losses import EpsilonRidge, Huber, MaxMargin, Norm
from fenchel.metrics import crps_scorer, curve_errors, curve_scorer, hamming_losses, label_scorer, pinball_loss

skops = pytest.importorskip("skops.io")

MODELS = {
    "vectors": (fenchel.OperatorKernelRegressor(loss=Huber(0.5)), "Y"),
    "numbers": (fenchel.OperatorKernelRegressor("rbf", loss="epsilon_svr"), "y"),
    "covariance": (fenchel.OperatorKernelRegressor(operator="covariance"), "Y"),
    "matrix": (fenchel.OperatorKernelRegressor(operator=np.array([[2.0, 0.5], [0.5, 1.0]])), "Y"),
    "sum of kernels": (fenchel.OperatorKernelRegressor(Gaussian(0.5) + 2.0 * Laplacian(0.1)), "Y"),
    "process kernel": (fenchel.OperatorKernelRegressor(RBF(2.0) + DotProduct()), "Y"),
    "pairwise function": (fenchel.OperatorKernelRegressor(rbf_kernel), "Y"),
    "gram factor": (fenchel.OperatorKernelRegressor(representation="gram_factor"), "gram"),
    "convolution": (fenchel.OperatorKernelRegressor(loss=losses.InfimalConvolution(losses.Square(), Norm(0.5))), "Y"),
    "vectors, chosen": (fenchel.OperatorKernelRegressorCV(lams=[1e-2, 1.0], losses=["square", Huber(0.5)]), "Y"),
    "fields": (fenchel.FieldRegressor(fenchel.OperatorKernelRegressor()), "Y"),
    "learned metric": (fenchel.LearnedMetricRegressor(max_rounds=1, cv=2), "Y"),
    "splitter": (fenchel.OperatorKernelRegressorCV(lams=[1e-2], cv=KFold(3, shuffle=True, random_state=0)), "Y"),
    "curves": (fenchel.FunctionalRegressor(), "curves"),
    "curves with gaps": (fenchel.FunctionalRegressor(loss=Huber(0.5, p=1)), "gaps"),
    "curves, eigen": (fenchel.FunctionalRegressor(representation="eigen", loss=EpsilonRidge(0.1)), "curves"),
    "curves, fourier": (fenchel.FunctionalRegressor(representation="fourier", n_components=5), "curves"),
    "curves, channels": (fenchel.FunctionalRegressor(channels=np.eye(2) + 0.5), "channels"),
    "curves, chosen": (fenchel.FunctionalRegressorCV(lams=[1e-2, 1.0], losses=[Huber(0.1), Huber(1.0)]), "curves"),
    "labels": (fenchel.StructuredPredictor(decoder="threshold"), "labels"),
    "training set": (fenchel.StructuredPredictor(output_kernel=Gaussian(1.0), loss=Huber(0.5)), "Y"),
    "margins": (fenchel.StructuredPredictor(loss=MaxMargin(), lam=0.1), "Y"),
    "candidates": (fenchel.StructuredPredictor(decoder=Candidates(np.eye(2)), center=True), "Y"),
    "labels, chosen": (
        fenchel.StructuredPredictorCV(lams=[1e-2, 1.0], decoder="threshold", task_loss=hamming_losses),
        "labels",
    ),
    "loss trick": (fenchel.LossTrickPredictor(), "y"),
    "loss trick, robust": (fenchel.LossTrickPredictor(task_loss="hamming", surrogate=Huber(0.5)), "labels"),
    "loss trick, chosen": (fenchel.LossTrickPredictor(task_loss="zero_one", lams=[1e-2, 1.0]), "classes"),
    "search": (
        GridSearchCV(
            fenchel.StructuredPredictor(decoder="threshold"), {"lam": [1e-2, 1.0]}, scoring=label_scorer("f1"), cv=3
        ),
        "labels",
    ),
    "pipeline": (make_pipeline(StandardScaler(), fenchel.OperatorKernelRegressor(loss="huber")), "Y"),
}


@pytest.fixture
def data(rng):
    Y = rng.normal(size=(30, 2))
    t = np.linspace(0, 1, 12)
    curves = np.sin(6 * t + Y[:, :1]) + 0.1 * rng.normal(size=(30, 12))
    return {
        "X": rng.normal(size=(30, 3)),
        "Y": Y,
        "y": Y[:, 0],
        "gram": Y @ Y.T,
        "curves": curves,
        "gaps": np.where(rng.uniform(size=curves.shape) < 0.2, np.nan, curves),
        "channels": np.stack([curves, curves**2], axis=2),
        "labels": (Y > 0).astype(float),
        "classes": np.where(Y[:, 0] > 0, "up", "down"),
    }


def through_file(model, folder, **options):
    fenchel.save(model, folder / "model.fenchel", **options)
    return fenchel.load(folder / "model.fenchel", **options)


@pytest.mark.parametrize("name", MODELS)
def test_predictions_agree_bit_for_bit(name, data, tmp_path, rng):
    template, target = MODELS[name]
    model = clone(template).fit(data["X"], data[target])
    same = through_file(model, tmp_path)
    new = rng.normal(size=(17, 3))
    assert type(same) is type(model)
    assert_same_bits(same.predict(new), model.predict(new))
    assert set(vars(same)) == set(vars(model))
    assert repr(same) == repr(model)


@pytest.mark.parametrize("order", ["F", "C"])
def test_the_layout_of_the_training_data_does_not_change_a_bit(order, data, tmp_path, rng):
    wide = np.asarray(rng.normal(size=(60, 6)), order=order)
    model = fenchel.OperatorKernelRegressor("linear", loss=Huber(0.5)).fit(wide[::2, ::2], data["Y"])
    new = np.asarray(rng.normal(size=(500, 3)), order=order)
    assert_same_bits(through_file(model, tmp_path).predict(new), model.predict(new))


@pytest.mark.parametrize("name", ["vectors", "curves", "labels", "loss trick"])
def test_single_precision_is_kept(name, data, tmp_path):
    template, target = MODELS[name]
    X = data["X"].astype(np.float32)
    model = clone(template).fit(X, data[target].astype(np.float32))
    same = through_file(model, tmp_path)
    assert same.X_fit_.dtype == model.X_fit_.dtype
    assert_same_bits(same.predict(X), model.predict(X))


def test_certificate_and_scores_are_kept(data, tmp_path):
    model = clone(MODELS["curves with gaps"][0]).fit(data["X"], data["gaps"])
    same = through_file(model, tmp_path)
    for name in ("primal_objective_", "dual_objective_", "duality_gap_", "n_iter_", "status_", "sparsity_"):
        assert getattr(same, name) == getattr(model, name)
    assert same.solver_info_ == model.solver_info_
    assert [tuple(pair) for pair in same.history_] == model.history_
    assert_same_bits(same.point_outlier_score_, model.point_outlier_score_)
    assert same.score(data["X"], data["gaps"]) == model.score(data["X"], data["gaps"])


def test_a_loaded_model_can_be_fitted_again(data, tmp_path):
    model = clone(MODELS["vectors, chosen"][0]).fit(data["X"], data["Y"])
    again = clone(through_file(model, tmp_path)).fit(data["X"], data["Y"])
    assert_same_bits(again.predict(data["X"]), model.predict(data["X"]))


def test_every_part_of_the_library_is_trusted(tmp_path, data):
    """Each loss and each scalar kernel can be in a model file, with the examples that its contract is tested on."""
    rooms = [losses.radial, losses.pnorm, losses.margin, losses.convolution, kernels.scalar, kernels.functional]
    parts = [getattr(room, name) for room in rooms for name in room.__all__]
    parts = [part for part in parts if hasattr(part, "examples") and not isabstract(part)]
    examples = [example for part in parts for example in part.examples()]
    assert len(examples) > 20
    model = fenchel.OperatorKernelRegressor().fit(data["X"], data["Y"])
    for example in examples:
        name = "loss" if isinstance(example, losses.Loss) else "kernel"
        assert repr(getattr(through_file(model.set_params(**{name: example}), tmp_path), name)) == repr(example)


def applies_to_regression(name):
    """Whether scikit-learn's scorer of this name has a value for positive real outputs."""
    y = np.linspace(1, 2, 10)
    model = DummyRegressor().fit(y[:, None], y)
    with warnings.catch_warnings(action="error"):
        try:
            return bool(np.isfinite(get_scorer(name)(model, y[:, None], y)))
        except (AttributeError, ValueError, UserWarning):  # scores of classes, of probabilities, of clusters
            return False


def scorers_of_regression():
    return [None, *(name for name in get_scorer_names() if applies_to_regression(name))]


def assert_same_search(search, X, y, folder):
    """Save a search and load it: predictions and its own score agree."""
    search.fit(X, y)
    same = through_file(search, folder)
    assert_same_bits(same.predict(X), search.predict(X))
    assert same.score(X, y) == search.score(X, y)


def test_the_names_of_scorers_are_those_of_regression():
    names = scorers_of_regression()
    assert {"r2", "neg_mean_squared_error", "neg_median_absolute_error", "neg_mean_gamma_deviance"} <= set(names)
    assert len(names) > 12


@pytest.mark.parametrize("scoring", scorers_of_regression())
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_search_with_any_scorer_is_saved(scoring, in_pipeline, data, tmp_path):
    model = fenchel.OperatorKernelRegressor(loss=Huber(0.5))
    estimator = make_pipeline(StandardScaler(), model) if in_pipeline else model
    grid = {"operatorkernelregressor__lam" if in_pipeline else "lam": [1e-3, 1e-2]}
    y = 5 + np.tanh(data["X"][:, 0])  # positive, and so are the predictions: some scores are of logarithms
    assert_same_search(GridSearchCV(estimator, grid, scoring=scoring, cv=3), data["X"], y, tmp_path)


@pytest.mark.parametrize(
    ("model", "scoring", "target"),
    [
        (fenchel.OperatorKernelRegressor(), ["r2", "neg_max_error"], "y"),
        (fenchel.OperatorKernelRegressor(), make_scorer(root_mean_squared_error, greater_is_better=False), "Y"),
        (fenchel.OperatorKernelRegressor(), make_scorer(mean_pinball_loss, alpha=0.3, greater_is_better=False), "y"),
        (fenchel.QuantileFunctionRegressor(), crps_scorer(), "y"),
        (fenchel.FunctionalRegressor(), curve_scorer("median"), "curves"),
        (fenchel.StructuredPredictor(decoder="threshold"), "f1_samples", "labels"),
    ],
)
@pytest.mark.filterwarnings("ignore:F-score is ill-defined")
def test_a_search_with_several_scores_or_a_made_scorer_is_saved(model, scoring, target, data, tmp_path):
    refit = scoring[0] if isinstance(scoring, list) else True
    search = GridSearchCV(model, {"lam": [1e-2, 1.0]}, scoring=scoring, refit=refit, cv=3)
    assert_same_search(search, data["X"], data[target], tmp_path)


def test_scorers_made_of_the_functions_of_this_library_are_saved(data, tmp_path):
    search = GridSearchCV(fenchel.OperatorKernelRegressor(), {"lam": [1e-2]}, cv=3).fit(data["X"], data["y"])
    for function in (hamming_losses, curve_errors, pinball_loss):
        search.set_params(scoring=make_scorer(function, greater_is_better=False))
        assert repr(through_file(search, tmp_path).scoring) == repr(search.scoring)


def test_distributions_of_scipy_are_refused_by_name(data, tmp_path):
    """Their state holds code that they run when they are loaded."""
    search = RandomizedSearchCV(fenchel.OperatorKernelRegressor(), {"lam": loguniform(1e-4, 1)}, n_iter=2, cv=3)
    search.fit(data["X"], data["y"])
    with pytest.raises(TypeError, match="cannot be saved: its 'param_distributions' is"):
        fenchel.save(search, tmp_path / "model.fenchel")
    assert_same_bits(
        through_file(search.set_params(param_distributions=None), tmp_path).predict(data["X"]),
        search.predict(data["X"]),
    )


def kernel_of_mine(X, Z):
    return X @ Z.T


class LossOfMine(Norm):
    """A loss that a user wrote."""


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (fenchel.OperatorKernelRegressor(kernel_of_mine), "kernel"),
        (fenchel.OperatorKernelRegressor(lambda X, Z: X @ Z.T), "kernel"),
        (fenchel.OperatorKernelRegressor(loss=LossOfMine(0.5)), "loss"),
        (fenchel.OperatorKernelRegressor(losses.InfimalConvolution), None),
        (fenchel.OperatorKernelRegressor(kernels.Separable(kernel_of_mine)), "kernel__kernel"),
        (fenchel.FunctionalRegressor(output_kernel=kernel_of_mine), "output_kernel"),
        (fenchel.OperatorKernelRegressorCV(lams=[1.0], progress=print), "progress"),
        (fenchel.StructuredPredictorCV(lams=[1.0], task_loss=lambda Y, Z: np.zeros(len(Y))), "task_loss"),
        (make_pipeline(StandardScaler(), fenchel.OperatorKernelRegressor(kernel_of_mine)), "kernel"),
    ],
)
def test_functions_of_the_user_are_refused_by_name(model, parameter, data, tmp_path, capsys):
    if parameter is None:
        with pytest.raises(NotFittedError):
            fenchel.save(model, tmp_path / "model.fenchel")
        return
    model.fit(data["X"], data["Y"])
    with pytest.raises(TypeError, match=rf"cannot be saved: its '\w*{parameter}' is ") as error:
        fenchel.save(model, tmp_path / "model.fenchel")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_parts_of_the_user_are_saved_when_they_are_trusted(data, tmp_path):
    model = fenchel.OperatorKernelRegressor(kernel_of_mine, loss=LossOfMine(0.5)).fit(data["X"], data["Y"])
    same = through_file(model, tmp_path, trusted=[kernel_of_mine, LossOfMine])
    assert_same_bits(same.predict(data["X"]), model.predict(data["X"]))
    with pytest.raises(ModelFileError, match=r"holds .*LossOfMine, .*kernel_of_mine, which fenchel does not trust"):
        fenchel.load(tmp_path / "model.fenchel")


def test_arrays_of_other_libraries_are_refused(data, tmp_path):
    torch = pytest.importorskip("torch")
    model = fenchel.OperatorKernelRegressor().fit(torch.asarray(data["X"]), torch.asarray(data["Y"]))
    with pytest.raises(TypeError, match=r"cannot be saved: its '\w+' is tensor"):
        fenchel.save(model, tmp_path / "model.fenchel")


def test_what_is_no_fitted_estimator_is_refused(tmp_path):
    with pytest.raises(TypeError, match="save takes a fitted estimator"):
        fenchel.save({"lam": 1.0}, tmp_path / "model.fenchel")
    with pytest.raises(TypeError, match="save takes a fitted estimator"):
        fenchel.save(fenchel.OperatorKernelRegressor, tmp_path / "model.fenchel")
    with pytest.raises(NotFittedError):
        fenchel.save(fenchel.OperatorKernelRegressor(), tmp_path / "model.fenchel")


# what can be wrong with a file


@pytest.fixture
def model_file(data, tmp_path):
    file = tmp_path / "model.fenchel"
    fenchel.save(fenchel.OperatorKernelRegressor(loss="huber").fit(data["X"], data["Y"]), file)
    return file


def rewritten(file, **changes):
    """Write the archive anew with some entries changed; the description stays the first."""
    with zipfile.ZipFile(file) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries.update(changes)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    file.write_bytes(buffer.getvalue())
    return file


def load_error(file):
    with pytest.raises(ModelFileError, match=re.escape(str(file))) as error:
        fenchel.load(file)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_description_names_versions(model_file):
    found = describe(model_file)
    assert found["estimator"] == "OperatorKernelRegressor"
    assert found["format"] == FORMAT
    assert found["fenchel"] == fenchel.__version__
    assert found["numpy"] == np.__version__


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no model file .*nothing\.fenchel"):
        fenchel.load(tmp_path / "nothing.fenchel")


@pytest.mark.parametrize("content", [b"", b"x,y\n1,2\n", b"PK\x03\x04", b"\x80\x04\x95."])
def test_other_files_are_refused(content, tmp_path):
    (tmp_path / "other").write_bytes(content)
    assert "is not a model file of fenchel" in load_error(tmp_path / "other")


def test_a_plain_skops_file_is_refused(tmp_path):
    skops.dump(StandardScaler(), tmp_path / "other.skops")
    assert "is not a model file of fenchel" in load_error(tmp_path / "other.skops")


def test_a_file_that_is_cut_off_anywhere_is_refused(model_file):
    whole = model_file.read_bytes()
    for length in np.linspace(60, len(whole) - 1, 25).astype(int):
        model_file.write_bytes(whole[:length])
        assert "is damaged or truncated" in load_error(model_file)


def test_a_flipped_byte_is_noticed_or_harmless(model_file, data):
    whole = bytearray(model_file.read_bytes())
    expected = fenchel.load(model_file).predict(data["X"])
    refused = 0
    for place in np.linspace(0, len(whole) - 1, 60).astype(int):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        model_file.write_bytes(bytes(broken))
        try:
            found = fenchel.load(model_file)
        except ModelFileError as error:
            assert "\n" not in str(error)
            refused += 1
        else:  # a time or a flag that nothing depends on
            assert_same_bits(found.predict(data["X"]), expected)
    assert refused > 40


def test_a_newer_release_is_named(model_file):
    header = {**describe(model_file), "fenchel": "99.1.0"}
    text = load_error(rewritten(model_file, **{"fenchel.json": json.dumps(header)}))
    assert "written by fenchel 99.1.0" in text
    assert "Upgrade fenchel to 99.1.0" in text


@pytest.mark.parametrize("version", ["²", "9" * 5000, "", "next", None, [1]], ids=lambda version: repr(version)[:9])
def test_a_release_that_is_no_version(model_file, version):
    """Some of them are digits to Python, but no numbers, or numbers with more digits than it converts."""
    header = {**describe(model_file), "fenchel": version}
    text = load_error(rewritten(model_file, **{"fenchel.json": json.dumps(header)}))
    assert "is damaged or truncated and was not loaded (its release is" in text


def test_another_format_is_named(model_file):
    header = {**describe(model_file), "format": 0, "fenchel": "0.0.3"}
    text = load_error(rewritten(model_file, **{"fenchel.json": json.dumps(header)}))
    assert "in format 0" in text
    assert "Load it with fenchel 0.0.3" in text


def test_an_older_release_is_loaded_with_a_warning(model_file):
    header = {**describe(model_file), "fenchel": "0.0.3"}
    rewritten(model_file, **{"fenchel.json": json.dumps(header)})
    with pytest.warns(UserWarning, match=r"written by fenchel 0\.0\.3, and this is"):
        fenchel.load(model_file)


@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("os.system", "FunctionNode"),
        ("fenchel._check.require", "FunctionNode"),  # a function of this library that imports what it is told
        ("fenchel._check.require", "ConstructorFromReduceNode"),
        ("subprocess.Popen", "ConstructorFromReduceNode"),
        ("fenchel.search.checkpoint.os.system", "ConstructorFromReduceNode"),
        ("fenchel.search.checkpoint.Checkpoint", "ObjectNode"),
    ],
)
def test_a_file_that_would_run_code_is_refused(model_file, tmp_path, name, loader):
    module, _, function = name.rpartition(".")
    mark = tmp_path / "mark"
    with zipfile.ZipFile(model_file) as archive:
        schema = json.loads(archive.read("schema.json"))
    argument = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "is_json": True}
    arguments = {
        "__class__": "tuple",
        "__module__": "builtins",
        "__loader__": "TupleNode",
        "content": [{**argument, "content": json.dumps(f"touch {mark}")}],
    }
    bad = {"__class__": function, "__module__": module, "__loader__": loader, "content": arguments}
    schema["content"]["content"]["loss"] = bad
    text = load_error(rewritten(model_file, **{"schema.json": json.dumps(schema)}))
    assert f"holds {name}, which fenchel does not trust" in text
    assert not mark.exists()


# how much it may hold


def test_a_large_content_in_a_small_file_is_refused(model_file, data):
    with zipfile.ZipFile(model_file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(200_000_000))
    assert model_file.stat().st_size < 1_000_000
    with pytest.raises(
        ModelFileError, match=r"content takes 0\.18\d GiB or more, and max_size is 0\.0931 GiB.*max_size="
    ):
        fenchel.load(model_file, max_size=1e8)
    fenchel.load(model_file, max_size=float("inf"))


def test_the_limit_is_two_gibibytes_by_default(model_file):
    content = bytearray(model_file.read_bytes())
    place = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 1)  # the second entry
    content[place + 24 : place + 28] = (4_294_000_000).to_bytes(4, "little")
    model_file.write_bytes(bytes(content))
    assert "content takes 4 GiB or more, and max_size is 2 GiB" in load_error(model_file)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), "2 GiB", None])
def test_a_limit_is_a_positive_number(model_file, limit):
    with pytest.raises((ValueError, TypeError), match="'max_size' parameter of load must be a float in"):
        fenchel.load(model_file, max_size=limit)


def test_an_array_that_is_read_many_times_counts_each_time(model_file):
    with zipfile.ZipFile(model_file) as archive:
        schema = json.loads(archive.read("schema.json"))
        name = max((entry.file_size, entry.filename) for entry in archive.infolist() if "npy" in entry.filename)[1]
    array = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy", "file": name}
    many = [{**array, "__id__": -k} for k in range(1, 3000)]
    schema["content"]["content"]["loss"] = {
        "__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": many, "__id__": 0
    }  # fmt: skip
    rewritten(model_file, **{"schema.json": json.dumps(schema), name: npy(np.zeros(100_000))})
    with pytest.raises(ModelFileError, match=r"content takes 0\.\d+ GiB or more"):
        fenchel.load(model_file, max_size=5e7)


def test_an_array_that_declares_more_than_it_has_is_refused(model_file):
    with zipfile.ZipFile(model_file) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".npy"))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    text = load_error(rewritten(model_file, **{name: header.getvalue()}))
    assert f"declares {2**53} bytes and has 0" in text


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_a_sparse_matrix_in_a_model_is_loaded(data, tmp_path):
    """skops keeps it as an archive of its own."""
    model = fenchel.OperatorKernelRegressor().fit(data["X"], data["Y"])
    model.extra_ = sparse.csr_matrix(np.eye(3))
    assert (through_file(model, tmp_path, trusted=[sparse.csr_matrix]).extra_ != model.extra_).nnz == 0


def test_the_description_is_read_alone(model_file, monkeypatch):
    opened, names = zipfile.ZipFile.open, []

    def spy(archive, name, *args, **kwargs):
        names.append(getattr(name, "filename", name))
        return opened(archive, name, *args, **kwargs)

    monkeypatch.setattr(zipfile.ZipFile, "open", spy)
    describe(model_file)
    assert names == ["fenchel.json"]


def test_a_huge_description_is_not_read(model_file):
    rewritten(model_file, **{"fenchel.json": json.dumps(describe(model_file)) + " " * 10_000_000})
    with zipfile.ZipFile(model_file) as archive:
        assert archive.getinfo("fenchel.json").file_size > 10_000_000
    padded = " " * 10_000_000 + json.dumps({"format": 1, "fenchel": "0.1"})
    rewritten(model_file, **{"fenchel.json": padded})
    with pytest.raises(ModelFileError, match="is damaged"):
        describe(model_file)


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert "is not a model file of fenchel" in load_error(path)


# how it is written


def test_threads_save_to_one_file(data, tmp_path):
    model = fenchel.OperatorKernelRegressor().fit(data["X"], data["Y"])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: fenchel.save(model, tmp_path / "model"), range(12)))
    assert_same_bits(fenchel.load(tmp_path / "model").predict(data["X"]), model.predict(data["X"]))
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("version", ["0.11.0", "0.12.0", "0.12.0.post1"])
def test_a_release_of_skops_with_known_holes_is_refused(version, model_file, data, monkeypatch):
    monkeypatch.setattr(sys.modules["skops"], "__version__", version)
    message = rf"skops {version} has known vulnerabilities .*CVE-2025-54412.* fenchel needs skops 0\.13 or newer"
    with pytest.raises(ImportError, match=message):
        fenchel.load(model_file)
    model = fenchel.OperatorKernelRegressor().fit(data["X"], data["Y"])
    with pytest.raises(ImportError, match=message):
        fenchel.save(model, model_file)


def test_a_write_that_fails_leaves_the_old_file(model_file, monkeypatch):
    before = model_file.read_bytes()

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(model_file, b"new")
    assert model_file.read_bytes() == before
    assert [file.name for file in model_file.parent.iterdir()] == ["model.fenchel"]


def test_skops_is_loaded_when_it_is_needed_and_its_extra_is_named(tmp_path):
    code = (
        "import sys; sys.modules['skops.io'] = None\n"
        "import numpy as np, fenchel\n"
        "X = np.linspace(0, 1, 9)[:, None]\n"
        "model = fenchel.OperatorKernelRegressor().fit(X, X)\n"
        "assert 'skops' not in sys.modules\n"
        f"fenchel.save(model, {str(tmp_path / 'model')!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'fenchel[persist]'" in done.stderr.splitlines()[-1]


def assert_same_bits(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes() if found.dtype != object else (found == expected).all()


@pytest.mark.parametrize(
    "step",
    [
        SimpleImputer(add_indicator=True),
        SelectKBest(f_regression, k=2),
        PolynomialFeatures(2),
        QuantileTransformer(n_quantiles=5),
        FunctionTransformer(np.tanh),
        PCA(2),
    ],
    ids=lambda step: type(step).__name__,
)
def test_pipelines_with_the_usual_steps(rng, tmp_path, step):
    X = rng.standard_normal((20, 3))
    model = make_pipeline(step, fenchel.OperatorKernelRegressor()).fit(X, X[:, 0])
    fenchel.save(model, tmp_path / "model")
    np.testing.assert_array_equal(fenchel.load(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize("selected", [("number", "number"), (np.number, object)], ids=["names", "types"])
def test_columns_selected_by_their_type(rng, tmp_path, selected):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"x": rng.standard_normal(20), "name": pandas.Series(["a", "b"] * 10, dtype=object)})
    number, text = selected
    by_text = {"dtype_exclude": text} if text == "number" else {"dtype_include": text}
    prepared = make_column_transformer(
        (OneHotEncoder(), make_column_selector(**by_text)),
        (SimpleImputer(), make_column_selector(dtype_include=number)),
    )
    model = make_pipeline(prepared, fenchel.OperatorKernelRegressor()).fit(X, X["x"])
    assert_same_bits(through_file(model, tmp_path).predict(X), model.predict(X))


@pytest.mark.parametrize("kind", [StackingRegressor, VotingRegressor])
def test_ensembles_of_named_estimators(rng, tmp_path, kind):
    X = rng.standard_normal((20, 3))
    parts = [("kernel", fenchel.OperatorKernelRegressor()), ("line", LinearRegression())]
    model = kind(parts).fit(X, X[:, 0])
    same = through_file(model, tmp_path)
    assert_same_bits(same.predict(X), model.predict(X))
    assert_same_bits(same.named_estimators_.kernel.predict(X), model.named_estimators_.kernel.predict(X))


def test_a_step_of_a_pipeline_is_refused_by_its_name(rng, tmp_path):
    X = rng.standard_normal((20, 3))
    model = make_pipeline(StandardScaler(), SplineTransformer(), fenchel.OperatorKernelRegressor()).fit(X, X[:, 0])
    with pytest.raises(TypeError, match=r"its 'splinetransformer' is SplineTransformer\(\), which is or contains an"):
        fenchel.save(model, tmp_path / "model")
