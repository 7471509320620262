"""``fenchel report`` writes a page for every kind of model."""

import numpy as np
import pytest

import fenchel as library
from fenchel.losses import Huber


def test_a_page_for_a_model_of_a_table(fenchel, csv_file, tmp_path):
    words = ("fit", csv_file, "-t", "y_*", "--loss", "huber:kappa=0.2", "--lams", "1e-4,1e-2")
    assert fenchel(*words, "--model", tmp_path / "m.fenchel", "--report", tmp_path / "fit.html").code == 0
    result = fenchel("report", tmp_path / "m.fenchel", "--data", csv_file)
    assert result.out == f"Page: {tmp_path / 'm.html'}\n"
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "✓ Certified" in page
    assert "Regularisation surface" in page
    assert f"40 rows of {csv_file.name}" in page
    assert str(tmp_path) not in page
    assert "constant columns are left out: unit" in page
    assert f"fenchel {library.__version__}" in page
    assert "✓ Certified" in (tmp_path / "fit.html").read_text(encoding="utf-8")


def test_the_page_shows_how_well_the_model_predicts(fenchel, csv_file, tmp_path):
    words = ("fit", csv_file, "-t", "y_a", "--loss", "huber:kappa=auto", "--test-size", "0.25")
    found = fenchel(*words, "--json", "--model", tmp_path / "m", "--report", tmp_path / "fit.html").json
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    for name, part in (("30 training rows", "train"), (f"10 rows of {csv_file.name}", "test")):
        assert found["clipped"]  # the robust error comes first
        cells = [f"{found[f'{part}_median_error']:.4g}", f"{found[f'{part}_r2']:.4f}"]
        cells += [f"{found[f'{part}_{key}']:.4g}" for key in ("rmse", "rmse_of_mean")]
        assert f'<td class="text">{name}</td>' + "".join(f"<td>{cell}</td>" for cell in cells) in page
    fenchel("report", tmp_path / "m")  # the model keeps its training scores
    assert f"<td>{found['train_r2']:.4f}</td>" in (tmp_path / "m.html").read_text(encoding="utf-8")


def test_the_name_of_the_page_can_be_chosen(fenchel, csv_file, tmp_path):
    fenchel("fit", csv_file, "-t", "y_a", "--model", tmp_path / "m.fenchel")
    found = fenchel("report", tmp_path / "m.fenchel", "-o", tmp_path / "page.html", "--json").json
    assert found == {"model": str(tmp_path / "m.fenchel"), "report": str(tmp_path / "page.html")}
    assert (tmp_path / "page.html").exists()


def test_data_are_for_models_of_tables(fenchel, csv_file, tmp_path, rng):
    X = rng.normal(size=(20, 2))
    library.save(library.OperatorKernelRegressor(loss=Huber(0.5)).fit(X, X), tmp_path / "m")
    assert "leave out --data" in fenchel("report", tmp_path / "m", "--data", csv_file).line
    assert fenchel("report", tmp_path / "m").code == 0


def test_a_model_without_a_certificate(fenchel, tmp_path, rng):
    linear_model = pytest.importorskip("sklearn.linear_model")
    X = rng.normal(size=(20, 2))
    library.save(linear_model.Ridge().fit(X, X), tmp_path / "m")
    assert "Got Ridge, which has no duality_gap_" in fenchel("report", tmp_path / "m").line
    assert np.all([file.name == "m" for file in tmp_path.iterdir()])
