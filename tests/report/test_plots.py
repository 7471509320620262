from inspect import Parameter, signature
from types import SimpleNamespace

import numpy as np
import pytest

import fenchel
from fenchel import (
    FunctionalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    OutlierReport,
    PredictionBand,
)
from fenchel.datasets import make_functional
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber
from fenchel.report import figures as plots

pytest.importorskip("matplotlib")


@pytest.fixture
def ax():
    return plots.figure()[1][0]


@pytest.fixture
def data():
    return make_functional(20, 15, random_state=0)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def labels(ax):
    return ax.get_xlabel(), ax.get_ylabel()


def mesh(ax):
    """Return the numbers of the only map on the Axes, as rows."""
    (found,) = [part for part in ax.collections if hasattr(part, "get_coordinates")]
    return np.ma.filled(found.get_array().astype(float), np.nan).reshape(
        np.array(found.get_coordinates().shape[:2]) - 1
    )


def norm_of(ax):
    (found,) = [part for part in ax.collections if hasattr(part, "get_coordinates")]
    return type(found.norm).__name__


def test_a_figure_has_its_axes_row_after_row():
    fig, axes = plots.figure(3, width=2.0, height=1.5, rows=2)
    assert len(axes) == 6
    assert tuple(fig.get_size_inches()) == (6.0, 3.0)
    assert axes[0].get_subplotspec().colspan == axes[3].get_subplotspec().colspan


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: plots.plot_errors({"g": [1.0]}, ax, names=["a"], label="error"),
        lambda ax: plots.plot_lines({"a": [1.0, 2.0]}, ax, x=[1.0, 2.0], x_label="x", y_label="y"),
        lambda ax: plots.plot_curves(np.zeros((2, 3)), ax=ax),
        lambda ax: plots.plot_outlier_scores([0.1, 1.0], ax=ax),
        lambda ax: plots.plot_point_scores(np.zeros((2, 3)), ax=ax),
        lambda ax: plots.plot_relevances([0.25, 0.75], ax=ax),
        lambda ax: plots.plot_kernel_weights([0.25, 0.75], ax=ax),
        lambda ax: plots.plot_sparsity(SimpleNamespace(dual_coef_=np.zeros((2, 3))), ax=ax),
    ],
)
def test_axes_are_returned_and_made_when_there_are_none(ax, draw):
    assert draw(ax) is ax
    made = draw(None)
    assert made.figure.axes[0] is made
    assert labels(made) == labels(ax)


def test_errors_are_dots(ax):
    plots.plot_errors({"clean": [1.0, 2.0], "dirty": [10.0, 20.0]}, ax, names=["a", "b"], label="error")
    assert [list(line.get_xdata()) for line in ax.lines] == [[1.0, 2.0], [10.0, 20.0]]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]
    assert ax.get_xscale() == "log"
    assert ax.yaxis_inverted()
    assert legend(ax) == ["clean", "dirty"]


def test_outlier_scores_are_sorted_and_coloured(ax):
    plots.plot_outlier_scores([0.5, 1.0, 0.2], ax, is_outlier=[False, True, False])
    others, known = (part.get_offsets().tolist() for part in ax.collections)
    assert others == [[0.0, 0.2], [1.0, 0.5]]
    assert known == [[2.0, 1.0]]
    assert legend(ax) == ["sample", "known outlier"]


def test_lines_share_their_places(ax):
    plots.plot_lines({"a": [1.0, 2.0], "b": [3.0, 4.0]}, ax, x=[1.0, 10.0], x_label="lam", y_label="error")
    assert [list(line.get_ydata()) for line in ax.lines] == [[1.0, 2.0], [3.0, 4.0]]
    assert [list(line.get_xdata()) for line in ax.lines] == [[1.0, 10.0]] * 2
    assert labels(ax) == ("lam", "error")
    assert legend(ax) == ["a", "b"]


def test_a_complete_curve_is_a_line_and_one_with_gaps_is_points(ax):
    values = np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]])
    plots.plot_curves(values, grid=[0.0, 1.0, 4.0], ax=ax)
    whole, gappy = ax.lines
    assert (whole.get_linestyle(), whole.get_marker()) == ("-", "None")
    assert (gappy.get_linestyle(), gappy.get_marker()) == ("None", "o")
    np.testing.assert_array_equal(gappy.get_ydata(), values[1])
    np.testing.assert_array_equal(whole.get_xdata(), [0.0, 1.0, 4.0])
    assert whole.get_color() != gappy.get_color()
    assert ax.get_legend() is None


def test_predictions_have_the_colour_of_their_curve_and_a_grid_of_their_own(ax):
    guess = np.array([[1.0, 1.5], [2.0, 2.5]])
    plots.plot_curves(np.zeros((2, 3)), ax, predicted=guess, predicted_grid=[0.0, 1.0], predicted_label="model")
    first, first_guess, second, second_guess = ax.lines
    assert first.get_color() == first_guess.get_color() != second.get_color() == second_guess.get_color()
    assert first_guess.get_linestyle() == "--"
    np.testing.assert_array_equal(second_guess.get_ydata(), guess[1])
    np.testing.assert_array_equal(second_guess.get_xdata(), [0.0, 1.0])
    np.testing.assert_array_equal(first.get_xdata(), [0.0, 0.5, 1.0])
    assert legend(ax) == ["observed", "model"]


def test_one_curve_and_ragged_curves(ax):
    plots.plot_curves(np.array([1.0, 2.0]), ax, predicted=np.array([1.0, 3.0]))
    assert [line.get_ydata().tolist() for line in ax.lines] == [[1.0, 2.0], [1.0, 3.0]]
    ragged = plots.plot_curves([([0.0, 0.5], [1.0, 2.0]), ([0.5, 1.0], [3.0, 4.0])])
    np.testing.assert_array_equal(ragged.lines[1].get_ydata(), [np.nan, 3.0, 4.0])
    np.testing.assert_array_equal(ragged.lines[1].get_xdata(), [0.0, 0.5, 1.0])


def test_functions_of_scikit_fda(ax, data):
    skfda = pytest.importorskip("skfda")
    curves = skfda.FDataGrid(data.Y[:2], data.t)
    plots.plot_curves(curves, ax, predicted=curves)
    np.testing.assert_array_equal(ax.lines[3].get_ydata(), data.Y[1])
    irregular = skfda.FDataIrregular([0, 2], [0.0, 0.5, 0.5, 1.0], [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(plots.plot_curves(irregular).lines[1].get_ydata(), [np.nan, 3.0, 4.0])
    with pytest.raises(TypeError, match=r"ax must be Axes.*Got a FDataGrid.*plot_curves\(Y, predicted=P\)"):
        plots.plot_curves(curves, curves)


def test_curves_that_cannot_be_drawn_are_named(ax):
    with pytest.raises(ValueError, match=r"values must hold curves of one channel.*take one, as in values\[:, :, 0\]"):
        plots.plot_curves(np.zeros((2, 3, 2)), ax=ax)
    with pytest.raises(ValueError, match=r"predicted must hold as many curves as values, 2\. Got 1"):
        plots.plot_curves(np.zeros((2, 3)), ax, predicted=np.zeros((1, 3)))


def test_the_surface_of_a_selection(ax, data):
    losses = [Huber(kappa, p=1) for kappa in (0.05, 0.5)]
    model = FunctionalRegressorCV(lams=[1e-4, 1e-2, 1.0], losses=losses, cv=3).fit(data.X, data.Y)
    assert plots.plot_surface(model, ax=ax) is ax
    np.testing.assert_allclose(mesh(ax), model.cv_errors_)
    assert labels(ax) == ("lam", "kappa of Huber, p=1")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1e-4", "1e-2", "1e+0"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0.05", "0.5"]
    (star,) = ax.lines
    i, j = np.unravel_index(np.argmin(model.cv_errors_), (2, 3))
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (j + 0.5, i + 0.5)
    assert (model.best_loss_.kappa, model.best_lam_) == (losses[i].kappa, [1e-4, 1e-2, 1.0][j])
    assert ax.figure.axes[1].get_ylabel() == "error of held-out samples"
    assert legend(ax) == ["least error"]
    gaps = plots.plot_surface(model, values="gaps")
    np.testing.assert_allclose(mesh(gaps), np.maximum(model.cv_gaps_, 1e-17))
    assert not gaps.lines


def test_the_default_lams_of_a_selection(ax, data):
    model = OperatorKernelRegressorCV("gaussian", cv=3).fit(data.X, data.Y)
    plots.plot_surface(model, ax=ax)
    assert mesh(ax).shape == (1, len(model.lams_))
    assert {"1e-6", "1e-3", "1e+0"} <= {tick.get_text() for tick in ax.get_xticklabels()}
    assert model.best_lam_ == pytest.approx(model.lams_[np.argmin(mesh(ax))])


def test_the_surface_of_a_path(ax, data):
    found = fenchel.path(FunctionalRegressor(), data.X, data.Y, [1e-4, 1e-2], ["square", EpsilonSVR(0.2)])
    plots.plot_surface(found, ax=ax)
    np.testing.assert_allclose(mesh(ax), np.maximum(found.gaps, 1e-17))
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["Square()", "EpsilonSVR(epsilon=0.2)"]
    assert labels(ax) == ("lam", "loss")
    assert ax.figure.axes[1].get_ylabel() == "relative duality gap"
    nulls = plots.plot_surface(found, values="sparsity")
    np.testing.assert_allclose(mesh(nulls), found.sparsity)
    assert norm_of(nulls) == "Normalize"
    assert norm_of(plots.plot_surface(found, values=[[3.0, 1.0], [2.0, 40.0]])) == "LogNorm"
    own = plots.plot_surface(found, values=[[3.0, 1.0], [2.0, 4.0]], label="test error")
    assert norm_of(own) == "Normalize"
    assert (own.lines[0].get_xdata()[0], own.lines[0].get_ydata()[0]) == (1.5, 0.5)
    assert own.figure.axes[1].get_ylabel() == "test error"


def test_surfaces_that_cannot_be_drawn_are_named(ax, data):
    found = fenchel.path(FunctionalRegressor(), data.X, data.Y, [1e-4, 1e-2])
    with pytest.raises(ValueError, match=r"values must be an array or one of 'gaps', 'sparsity'.*Got 'errors'"):
        plots.plot_surface(found, ax, values="errors")
    with pytest.raises(ValueError, match=r"values must have shape \(1, 2\)"):
        plots.plot_surface(found, ax, values=[1.0, 2.0])
    with pytest.raises(TypeError, match=r"a fitted estimator that has cv_errors_\. Got FunctionalRegressor"):
        plots.plot_surface(FunctionalRegressor(), ax=ax)


def test_point_scores_are_a_map_with_cells_around_the_points(ax):
    scores = np.array([[0.0, 0.5, 1.0], [0.2, np.nan, 0.4]])
    plots.plot_point_scores(scores, ax, is_outlier=scores == 1, grid=[0.0, 1.0, 4.0])
    np.testing.assert_array_equal(mesh(ax), scores)
    (cells,) = [part for part in ax.collections if hasattr(part, "get_coordinates")]
    np.testing.assert_allclose(cells.get_coordinates()[0, :, 0], [-0.5, 0.5, 2.5, 5.5])
    assert cells.get_clim() == (0, 1)
    (rings,) = [part for part in ax.collections if part is not cells]
    assert rings.get_offsets().tolist() == [[4.0, 0.5]]
    assert labels(ax) == ("t", "curve")
    with pytest.raises(ValueError, match="grid must have 3 points"):
        plots.plot_point_scores(scores, grid=[0.0, 1.0], ax=ax)


def test_point_scores_of_a_fit_with_gaps(ax, data, rng):
    Y = np.where(rng.uniform(size=data.Y.shape) < 0.3, np.nan, data.Y)
    model = FunctionalRegressor(loss=Huber(0.05, p=1)).fit(data.X, Y)
    plots.plot_point_scores(model, ax=ax)
    np.testing.assert_array_equal(np.isnan(mesh(ax)), np.isnan(Y))


@pytest.mark.parametrize(
    ("loss", "names"),
    [
        (EpsilonRidge(0.1, p=np.inf), ["null", "not null"]),
        (Huber(0.02, p=1), ["null", "not null", "on the bound"]),
        (Huber(0.2), ["null", "not null", "on the bound"]),
    ],
)
def test_sparsity_tells_the_kinds_of_duals_apart(ax, data, loss, names):
    model = FunctionalRegressor(loss=loss, lam=1e-2).fit(data.X, data.Y)
    plots.plot_sparsity(model, ax=ax)
    kinds = mesh(ax)
    np.testing.assert_array_equal(kinds == 0, model.dual_coef_ == 0)
    if hasattr(model, "point_outlier_score_"):
        np.testing.assert_array_equal(kinds == 2, model.point_outlier_score_ >= 1 - 1e-6)
    elif hasattr(model, "outlier_score_"):
        np.testing.assert_array_equal(np.all(kinds == 2, axis=1), model.outlier_score_ >= 1 - 1e-6)
    shares = [f"{np.mean(kinds == kind):.0%}" for kind in range(len(names))]
    assert legend(ax) == [f"{name}, {share}" for name, share in zip(names, shares, strict=True)]
    assert 0 < np.mean(kinds == len(names) - 1) < 1
    assert labels(ax) == ("coordinate", "sample")


def test_sparsity_shows_what_was_not_observed(ax, data, rng):
    Y = np.where(rng.uniform(size=data.Y.shape) < 0.3, np.nan, data.Y)
    plots.plot_sparsity(FunctionalRegressor(loss=Huber(0.05, p=1)).fit(data.X, Y), ax=ax)
    np.testing.assert_array_equal(mesh(ax) == 3, np.isnan(Y))
    assert legend(ax)[-1] == f"not observed, {np.mean(np.isnan(Y)):.0%}"


def test_sparsity_of_a_model_of_vectors(ax, rng):
    X, Y = rng.standard_normal((12, 2)), rng.standard_normal((12, 3))
    model = OperatorKernelRegressor(loss=EpsilonSVR(1.0)).fit(X, Y)
    plots.plot_sparsity(model, ax=ax)
    assert mesh(ax).shape == (12, 3)
    assert np.all((mesh(ax) == 0).all(axis=1) == ~np.isin(np.arange(12), model.support_))


def test_scores_of_another_array_library(ax, xp):
    plots.plot_outlier_scores(xp.asarray([0.5, 0.25]), ax=ax)
    assert ax.collections[0].get_offsets().tolist() == [[0.0, 0.25], [1.0, 0.5]]
    plots.plot_point_scores(xp.asarray([[0.5, 0.25]]), ax=ax)
    assert mesh(ax).tolist() == [[0.5, 0.25]]


def test_an_svg_is_the_same_each_time(ax):
    plots.plot_curves(np.eye(3), ax=ax)
    text = plots.svg(ax.figure)
    assert text.startswith("<?xml")
    assert "</svg>" in text
    assert plots.svg(ax.figure) == text


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (plots.plot_outlier_scores, "outlier_score_"),
        (plots.plot_point_scores, "point_outlier_score_"),
        (plots.plot_sparsity, "dual_coef_"),
    ],
)
def test_a_plot_takes_a_model_or_its_numbers(draw, name):
    data = make_functional(12, 8, random_state=0)
    model = FunctionalRegressor(loss=Huber(0.05, p=1)).fit(data.X, data.Y)

    def drawn(value):
        (collection,) = draw(value).collections[:1]
        return np.asarray(collection.get_array() if draw is not plots.plot_outlier_scores else collection.get_offsets())

    if draw is not plots.plot_sparsity:  # bounds are the model's
        np.testing.assert_array_equal(drawn(model), drawn(getattr(model, name)))
    assert drawn(model).size > 0
    with pytest.raises(ValueError, match=rf"FunctionalRegressor has no {name}\. Fit it first"):
        draw(FunctionalRegressor())


def test_weights_of_kernels_have_the_names_of_their_groups(ax):
    found = SimpleNamespace(weights_=np.array([0.2, 0.8]), names=["peaks", "losses"])
    plots.plot_kernel_weights(found, ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["losses", "peaks"]
    assert [bar.get_width() for bar in ax.patches] == [0.8, 0.2]
    with pytest.raises(ValueError, match="each of the 2 kernels"):
        plots.plot_kernel_weights(found, ax, names=["x"])


def test_relevances_are_bars_in_order_and_the_smallest_are_one(ax):
    model = SimpleNamespace(relevances_=np.array([0.1, 0.6, 0.0, 0.3]), feature_names_in_=list("abcd"))
    plots.plot_relevances(model, most=2, ax=ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["b", "d", "2 others"]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [0.6, 0.3, 0.1])
    with pytest.raises(ValueError, match="one name for each of the 4 inputs"):
        plots.plot_relevances(model, ax, names=["x"])


def test_every_plot_takes_the_data_first_and_the_axes_second():
    drawing = [getattr(plots, name) for name in plots.__all__ if name.startswith("plot_")]
    for function in (*drawing, OutlierReport.plot, OutlierReport.plot_curves, PredictionBand.plot):
        first, second, *_ = signature(function).parameters.values()
        assert first.default is Parameter.empty
        assert second.name == "ax" and second.default is None


def test_a_title_stands_above_the_legend(ax):
    plots.plot_errors({"clean": [1.0], "dirty": [10.0]}, ax, names=["a"], label="error")
    plots.title_above(ax, "Errors")
    ax.figure.draw_without_rendering()
    assert ax.get_title() == "Errors"
    assert ax.title.get_window_extent().y0 >= ax.get_legend().get_window_extent().y1


def test_a_new_figure_is_one_of_pyplot():
    """So that ``plt.show()`` and ``plt.savefig`` find it."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = plots.plot_kernel_weights([0.25, 0.75])
    assert pyplot.gcf() is ax.figure
