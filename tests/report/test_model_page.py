"""The page of a model: what it says, and how it behaves in a browser."""

import base64
import csv
import io
import re

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import fenchel
from fenchel.app.pages.charts import Axis, Chart, bar, heatmap, number
from fenchel.app.pages.model import ModelFacts
from fenchel.app.pages.summary import model_page
from fenchel.app.tables import TableRegressor
from fenchel.approximations import Nystrom
from fenchel.datasets import make_functional
from fenchel.losses import EpsilonRidge, Huber


def csv_of(page, name):
    """Return the rows of the data behind a figure."""
    found = re.search(rf'download="{name}\.csv" href="data:text/csv;base64,([^"]+)"', page)
    return list(csv.reader(io.StringIO(base64.b64decode(found[1]).decode())))


@pytest.fixture
def vectors(rng):
    X = rng.uniform(-2, 2, size=(60, 1))
    Y = np.hstack([np.sin(X), np.cos(X), X]) + 0.02 * rng.normal(size=(60, 3))
    Y[[5, 17]] += 6
    return X, Y


@pytest.fixture
def curves():
    data = make_functional(40, 20, random_state=0)
    Y = data.Y.copy()
    Y[[3, 21]] += 4.0
    Y[7, 2:5] = np.nan
    return data.X, Y


def test_numbers_of_the_page_are_those_of_the_model(vectors):
    X, Y = vectors
    model = fenchel.OperatorKernelRegressor(loss=Huber(0.1), lam=1e-4).fit(X, Y)
    page = model_page(model)
    assert f"{model.primal_objective_:.10g}" in page
    history = csv_of(page, "convergence")
    assert [(int(step), float(gap)) for step, gap in history[1:]] == [(s, max(g, 1e-17)) for s, g in model.history_]
    scores = {int(sample): float(score) for sample, score in csv_of(page, "outlier_scores")[1:]}
    assert scores == {i: score for i, score in enumerate(model.outlier_score_.tolist())}
    assert {int(row[0]) for row in csv_of(page, "outlier_scores")[1:3]} == {5, 17}  # counted from 0
    norms = [float(row[1]) for row in csv_of(page, "dual_norms")[1:]]
    assert norms == pytest.approx(np.linalg.norm(model.dual_coef_, axis=1).tolist(), rel=1e-12)


def test_the_page_says_of_which_kernel_the_gap_is(vectors):
    exact, approximate = (
        model_page(fenchel.OperatorKernelRegressorCV(lams=[1e-2], approximation=approximation).fit(*vectors))
        for approximation in (None, Nystrom(20))
    )
    assert "✓ Certified" in exact and "approximate kernel" not in exact
    assert "within tol 1e-06. It is that of the approximate kernel, Nystrom(n_components=20).</p>" in approximate


def test_names_of_outputs_are_no_formulas_in_a_spreadsheet(vectors):
    X, Y = vectors
    table = {"x": X[:, 0], "=1+1": Y[:, 0], "-y": Y[:, 1]}
    model = TableRegressor(fenchel.OperatorKernelRegressor(), targets=["=1+1", "-y"]).fit(table)
    page = model_page(model, data=table)
    links = re.findall(r'download="([^"]+)\.csv"', page)
    cells = [cell for name in links for row in csv_of(page, name) for cell in row]
    assert {"'=1+1", "'-y"} <= set(cells)
    assert not {"=1+1", "-y"} & set(cells)
    assert any(cell.startswith("-") for cell in cells)  # numbers stay numbers


def test_training_pairs_are_observations_and_predictions(vectors, curves):
    X, Y = vectors
    model = fenchel.OperatorKernelRegressor(loss=EpsilonRidge(0.05)).fit(X, Y)
    facts = ModelFacts.of(model)
    assert 0 < len(model.support_) < len(X)
    assert facts.kinds()["null"] == len(X) - len(model.support_)
    assert (facts.training.rows == model.support_).all()
    assert (facts.training.observed == Y[model.support_]).all()
    assert (facts.training.predicted == model.predict(X[model.support_])).all()
    X, Y = curves
    for settings in ({"center": True}, {"center": False}, {"center": "median", "loss": Huber(0.1, p=1)}):
        model = fenchel.FunctionalRegressor(**settings).fit(X, Y)
        pairs = ModelFacts.of(model).training
        np.testing.assert_allclose(pairs.observed, Y[model.support_], rtol=0, atol=1e-12)  # NaN where it is NaN
        assert (pairs.predicted == model.predict(X[model.support_])).all()
    seen = ~np.isnan(Y[7])
    error = np.sqrt(np.mean((Y[7] - model.predict(X)[7])[seen] ** 2))
    assert pairs.errors[list(pairs.rows).index(7)] == pytest.approx(error, rel=1e-9)


def test_clipped_samples_come_first_by_their_error(vectors):
    X, Y = vectors
    Y[17] += 3
    facts = ModelFacts.of(fenchel.OperatorKernelRegressor(loss=Huber(0.05), lam=1e-4).fit(X, Y))
    assert facts.suspects()[:2].tolist() == [17, 5]
    assert sorted(facts.suspects().tolist()) == list(range(60))


def test_each_target_has_its_median_and_its_own_unit(rng):
    """A rent beside a price: both can be seen, and the robust error comes first where rows are clipped."""
    x = rng.uniform(-2, 2, 60)
    table = {"x": x, "price": 1e6 * np.sin(x) + 1e4 * rng.normal(size=60), "rent": np.cos(x)}
    table["price"][[5, 17]] += 9e6
    table["rent"][3] = np.nan
    settings = {"lam": 1e-4, "center": "robust", "scale": "robust"}
    robust, plain = (
        TableRegressor(fenchel.OperatorKernelRegressor(loss=loss, **settings), ["price", "rent"], center="none").fit(
            table
        )
        for loss in (Huber(0.1), "square")
    )
    page = model_page(robust, data=table)
    errors = np.abs(robust.predict(table) - np.column_stack([table["price"], table["rent"]]))
    medians = [float(np.nanmedian(column)) for column in errors.T]
    heads = [re.findall(r"<th[^>]*>([^<]*)</th>", head) for head in re.findall(r"<thead>(.*?)</thead>", page)]
    assert ["target", "rows", "median error", "R²", "RMSE"] in heads
    assert all(f"{median:.4g}" in page for median in medians)
    assert ["target", "rows", "R²", "RMSE", "median error"] in [
        re.findall(r"<th[^>]*>([^<]*)</th>", head) for head in re.findall(r"<thead>(.*?)</thead>", model_page(plain))
    ]
    told = csv_of(page, "errors")
    assert told[0] == ["target", "sample", "error"]
    assert max(float(row[2]) for row in told[1:] if row[0] == "rent") == pytest.approx(np.nanmax(errors[:, 1]))
    assert len([row for row in told if row[0] == "rent"]) == 59
    assert "absolute error of rent" in page
    assert "observed nan" not in page
    pairs = ModelFacts.of(robust).compared(fenchel.datasets.tables.as_table(table))
    relative = (errors / np.nanstd(np.column_stack([table["price"], table["rent"]]), axis=0))[:3]
    assert pairs.errors[:3] == pytest.approx(np.sqrt(np.mean(relative**2, axis=1)), rel=1e-9)


def test_a_page_for_every_estimator(vectors, curves, rng):
    X, Y = vectors
    labels = (Y > 0).astype(float)
    models = [
        fenchel.OperatorKernelRegressor().fit(X, Y[:, 0]),
        fenchel.OperatorKernelRegressorCV(lams=[1e-3, 1.0], losses=[Huber(0.1), Huber(1.0)]).fit(X, Y),
        fenchel.FunctionalRegressor(representation="eigen").fit(curves[0], np.nan_to_num(curves[1])),
        fenchel.FunctionalRegressorCV(lams=[1e-3], losses=["square"]).fit(*curves),
        fenchel.FunctionalRegressor().fit(X, np.stack([Y, Y], axis=2)),
        fenchel.StructuredPredictor(loss=Huber(0.1), decoder="threshold").fit(X, labels),
        fenchel.StructuredPredictorCV(lams=[1e-3], decoder="threshold").fit(X, labels),
        fenchel.LossTrickPredictor(lams=[1e-3, 1e-2]).fit(X, Y[:, 0]),
    ]
    for model in models:
        page = model_page(model)
        assert "✓ Certified" in page
        assert ("Regularisation surface" in page) == hasattr(model, "cv_errors_")
        assert ("outlier_scores.csv" in page) == hasattr(model, "outlier_score_")


def test_a_fit_that_is_not_certified_says_so(vectors):
    with pytest.warns(ConvergenceWarning):
        model = fenchel.OperatorKernelRegressor(loss=Huber(0.1), lam=1e-6, max_iter=1).fit(*vectors)
    assert "✗ Not certified" in model_page(model)


def test_names_from_outside_are_escaped(rng):
    x = rng.normal(size=30)
    table = {"x": x, "<script>alert(1)</script>": np.sin(x), '"><b>': np.cos(x)}
    model = TableRegressor(fenchel.OperatorKernelRegressor(loss="huber"), targets=["<*", '">*']).fit(table)
    page = model_page(model, data=table, source="<i>")
    assert "<script>alert" not in page
    assert '"><b>' not in page
    assert "&lt;i&gt;" in page


# charts


def test_axes_have_round_ticks_and_place_values():
    assert Axis(0, 10, "").ticks() == [0, 2, 4, 6, 8, 10]
    assert Axis(-1, 1, "").ticks(4) == [-1, -0.5, 0, 0.5, 1]
    assert Axis(1e-6, 1, "", is_log=True).ticks(4) == pytest.approx([1e-6, 1e-4, 1e-2, 1])
    assert Axis(1e-2, 1, "", is_log=True).share(0.1) == pytest.approx(0.5)
    assert Axis.of([np.nan, 2.0, 2.0], "").share(2.0) == pytest.approx(0.5)  # one value alone is in the middle
    assert Axis.of([], "").low < Axis.of([], "").high
    assert [number(value) for value in (0, 0.5, 1e-7, 250000)] == ["0", "0.5", "1e-7", "2.5e+5"]


def test_a_line_is_broken_where_nothing_was_observed():
    chart = Chart(Axis(0, 5, "x"), Axis(0, 1, "y"))
    chart.line([0, 1, 2, 3, 4, 5], [0, 1, np.nan, 1, 0, np.nan])
    assert chart.svg("").count("<polyline") == 2


def test_the_best_cell_is_framed_and_a_bar_is_full():
    drawn = heatmap("", np.array([[1.0, 20.0], [300.0, np.nan]]), ["a", "b"], ["c", "d"], ("lam", "loss"), (0, 1))
    cells = re.findall(r'class="(cell[^"]*)".*?--share:([\d.]+)', drawn)
    assert [kind for kind, _ in cells] == ["cell", "cell best", "cell", "cell"]
    shares = [float(share) for _, share in cells]
    assert shares[0] == 1.0 > shares[1] > shares[2]
    widths = [float(w) for w in re.findall(r'y="6" width="([\d.]+)"', bar("", [("a", 0.25, "x"), ("b", 0.75, "y")]))]
    assert widths == [118.0, 354.0]


# in a browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    data = make_functional(40, 20, random_state=0)
    Y = data.Y.copy()
    Y[[3, 21]] += 4.0
    model = fenchel.FunctionalRegressorCV(lams=[1e-4, 1e-2], losses=[Huber(0.05), Huber(0.5)]).fit(data.X, Y)
    file = tmp_path_factory.mktemp("page") / "page.html"
    page = model_page(model, source="a_name_that_is_longer_than_the_screen_of_a_phone_is_wide.fenchel")
    file.write_text(page, encoding="utf-8")
    return file


SIZES = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@pytest.mark.parametrize("opened", SIZES, indirect=True)
def test_it_fits_the_window_and_can_be_read(opened):
    width = opened.viewport_size["width"]
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    sizes = opened.evaluate(
        """[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 0).map(s => {
             const box = s.getBoundingClientRect(), scale = box.width / s.viewBox.baseVal.width;
             const text = s.querySelector('text');
             return [box.left, box.right, scale * parseFloat(getComputedStyle(text).fontSize)]; })"""
    )
    assert len(sizes) == 8
    for left, right, letters in sizes:
        assert 0 <= left < right <= width
        assert letters >= 10
    ink, ground = (opened.evaluate(f"getComputedStyle(document.body).{one}") for one in ("color", "backgroundColor"))
    assert contrast(ink, ground) > 7


@pytest.mark.parametrize("opened", SIZES, indirect=True)
def test_nothing_is_cut_and_no_texts_overlap(opened):
    """Labels stay within their drawing, and apart from each other."""
    bad = opened.evaluate(
        """[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 0).flatMap(s => {
             const outer = s.getBoundingClientRect(), texts = [...s.querySelectorAll('text')];
             const boxes = texts.map(t => t.getBoundingClientRect()), found = [];
             boxes.forEach((a, i) => {
               if (a.left < outer.left - 1 || a.right > outer.right + 1 || a.top < outer.top - 1
                   || a.bottom > outer.bottom + 1) found.push('cut: ' + texts[i].textContent);
               boxes.slice(i + 1).forEach((b, j) => {
                 if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
                   found.push(texts[i].textContent + ' / ' + texts[i + 1 + j].textContent); }); });
             return found; })"""
    )
    assert bad == []


def shown(page, viewer):
    """Return the key of the one panel that is seen."""
    panels = page.locator(f"#{viewer} .panel:visible")
    assert panels.count() == 1
    return panels.first.get_attribute("data-key")


def test_controls_choose_what_is_drawn(opened):
    keys = opened.eval_on_selector_all("#worst option", "found => found.map(one => one.value)")
    assert shown(opened, "worst") == keys[0]
    assert set(keys[:2]) == {"3", "21"}
    opened.click("#worst .next")
    assert shown(opened, "worst") == keys[1]
    opened.click("#worst .back")
    opened.click("#worst .back")
    assert shown(opened, "worst") == keys[-1]  # round the corner
    opened.select_option("#worst select", keys[2])
    assert shown(opened, "worst") == keys[2]
    opened.click(f'table.worst tr[data-show="worst {keys[3]}"]')
    assert shown(opened, "worst") == keys[3]
    assert opened.locator("table.worst tr.chosen").count() == 1
    opened.locator(f'circle[data-show="worst {keys[0]}"]').dispatch_event("click")
    assert shown(opened, "worst") == keys[0]
    assert opened.input_value("#worst select") == keys[0]
    opened.focus(f'table.worst tr[data-show="worst {keys[1]}"]')
    opened.keyboard.press("Enter")
    assert shown(opened, "worst") == keys[1]
    assert shown(opened, "pairs") == opened.input_value("#pairs select")  # the other viewer was left alone


@pytest.mark.parametrize("opened", [(1280, "light"), (390, "dark")], indirect=True)
def test_a_mark_says_what_it_is(opened):
    assert opened.locator("#tip").is_hidden()
    mark = opened.locator("svg .cell.best").first
    mark.scroll_into_view_if_needed()
    mark.hover()
    assert opened.locator("#tip").is_visible()
    assert opened.inner_text("#tip").startswith("kappa of Huber")
    box = opened.locator("#tip").bounding_box()
    assert 0 <= box["x"] <= opened.viewport_size["width"] - box["width"]
    opened.hover("h1")
    assert opened.locator("#tip").is_hidden()


def test_data_can_be_saved(opened, tmp_path):
    with opened.expect_download() as found:
        opened.click('a[download="convergence.csv"]')
    found.value.save_as(tmp_path / "data.csv")
    assert (tmp_path / "data.csv").read_text().startswith("iteration,gap\n")


def test_it_prints(opened, tmp_path):
    opened.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").read_bytes()[:4] == b"%PDF"
    opened.emulate_media(media="print")
    assert opened.locator("#worst .controls").is_hidden()
    assert opened.locator("#worst svg:visible").count() == 1


def contrast(one, other):
    """Return the contrast ratio of two colours of the form rgb(r, g, b)."""
    levels = []
    for colour in (one, other):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        levels.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(levels) + 0.05) / (min(levels) + 0.05)
