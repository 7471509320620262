import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from fenchel import _check
from fenchel.datasets import Curves, as_curves, to_fdata

NAN = np.nan


@pytest.fixture(scope="module")
def skfda():
    return pytest.importorskip("skfda", reason="scikit-fda is not installed")


def same(curves, grid, values):
    np.testing.assert_array_equal(curves.grid, grid)
    np.testing.assert_array_equal(np.asarray(curves.values), values)


class TestCurves:
    def test_take(self):
        curves = as_curves(np.arange(12.0).reshape(4, 3))
        same(curves.take([2, 0]), curves.grid, [[6, 7, 8], [0, 1, 2]])
        same(curves.take(np.array([False, True, False, False])), curves.grid, [[3, 4, 5]])
        same(curves.take(slice(2, None)), curves.grid, [[6, 7, 8], [9, 10, 11]])
        same(curves.take(-1), curves.grid, [[9, 10, 11]])
        assert len(curves) == 4 and len(curves.take([])) == 0
        with pytest.raises(IndexError, match="out of bounds"):
            curves.take([4])

    def test_observed(self):
        curves = as_curves([[1.0, NAN], [2.0, 3.0]])
        np.testing.assert_array_equal(curves.observed, [[True, False], [True, True]])
        assert not curves.is_complete and curves.take([1]).is_complete

    def test_one_missing_channel_is_not_complete(self):
        curves = as_curves(np.array([[[1.0, NAN], [2.0, 3.0]]]))
        assert curves.observed.shape == (1, 2, 2) and not curves.is_complete

    def test_frozen(self):
        with pytest.raises(AttributeError, match="cannot assign"):
            as_curves([[1.0, 2.0]]).grid = np.zeros(2)


class TestArrays:
    def test_default_grid(self):
        same(as_curves(np.ones((2, 5))), [0, 0.25, 0.5, 0.75, 1], np.ones((2, 5)))
        same(as_curves(np.ones((2, 3, 4))), [0, 0.5, 1], np.ones((2, 3, 4)))
        same(as_curves(np.ones((2, 1))), [0], np.ones((2, 1)))

    def test_given_grid(self):
        grid = np.array([1, 2, 5])
        curves = as_curves([[1, 2, 3], [4, 5, 6]], grid)
        same(curves, [1.0, 2, 5], [[1, 2, 3], [4, 5, 6]])
        assert curves.grid.dtype == curves.values.dtype == np.float64
        grid[0] = -7
        assert curves.grid[0] == 1

    def test_every_library(self, xp):
        values = xp.asarray([[1.0, NAN, 3.0], [4.0, 5.0, 6.0]], dtype=xp.float32)
        curves = as_curves(values, grid=xp.asarray([0.0, 1.0, 4.0]))
        assert type(curves.values) is type(values) and curves.values.dtype == xp.float32
        assert type(curves.grid) is np.ndarray and curves.grid.dtype == np.float64
        same(curves.take([1, 0]), [0, 1, 4], [[4, 5, 6], [1, NAN, 3]])
        assert type(curves.take(0).values) is type(values)
        assert not curves.is_complete and int(xp.sum(xp.astype(curves.observed, xp.int64))) == 5
        with pytest.raises(ValueError, match="Curve 1 has no observed value"):
            as_curves(xp.asarray([[1.0, NAN], [NAN, NAN]]))
        with pytest.raises(ValueError, match="Curve 0 contains infinity"):
            as_curves(xp.asarray([[1.0, float("inf")], [NAN, NAN]]))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_dtype_is_kept(self, dtype):
        assert as_curves(np.ones((2, 3), dtype=dtype)).values.dtype == dtype

    @pytest.mark.parametrize("dtype", [bool, np.int32, np.float16, ">f8"])
    def test_other_numbers_become_float64(self, dtype):
        curves = as_curves(np.array([[0, 1], [1, 1]], dtype=dtype))
        assert curves.values.dtype == np.float64
        same(curves, [0, 1], [[0, 1], [1, 1]])

    def test_masked_values_are_not_observed(self):
        masked = np.ma.masked_equal([[1, 2, 3], [3, 4, 5]], 3)
        same(as_curves(masked), [0, 0.5, 1], [[1, 2, NAN], [NAN, 4, 5]])
        same(as_curves([([0, 1, 2], masked[0])]), [0, 1, 2], [[1, 2, NAN]])

    def test_argument_is_not_changed(self, rng):
        values, grid = rng.standard_normal((3, 4)), np.arange(4.0)
        values[0, 0] = NAN
        before = values.copy(), grid.copy()
        as_curves(values, grid)
        np.testing.assert_array_equal(values, before[0])
        np.testing.assert_array_equal(grid, before[1])

    def test_curves_stay_as_they_are(self):
        curves = as_curves(np.ones((2, 3)), [0, 1, 3])
        assert as_curves(curves).values is curves.values
        same(as_curves(curves, grid=[0, 1, 3]), [0, 1, 3], np.ones((2, 3)))
        with pytest.raises(ValueError, match="grid must be the grid that Z comes with"):
            as_curves(curves, grid=[0, 1, 2], name="Z")
        with pytest.raises(ValueError, match="grid must be increasing"):
            as_curves(Curves(np.array([1.0, 0.0]), np.ones((2, 2))))

    @pytest.mark.parametrize(
        ("grid", "message"),
        [
            ([0, 2, 1], r"grid must be increasing\. Got 1\.0 after 2\.0 at position 2; sort the points"),
            ([0, 1, 1], r"grid must be increasing\. Got 1\.0 after 1\.0"),
            ([0, 1], r"grid must be of shape \(3,\), one point for each column of values\. Got shape \(2,\)"),
            ([[0, 1, 2]], r"grid must be of shape \(3,\).*Got shape \(1, 3\)"),
            ([0, 1, NAN], "grid must hold finite points"),
            ([0, 1, np.inf], "grid must hold finite points"),
        ],
    )
    def test_bad_grid(self, grid, message):
        with pytest.raises(ValueError, match=message):
            as_curves(np.ones((2, 3)), grid)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (np.ones(3), r"Z must be an array of shape \(n, m\) or .*Got an array of shape \(3,\)"),
            (np.ones((1, 1, 1, 1)), r"Got an array of shape \(1, 1, 1, 1\)"),
            (np.array(1.0), r"Got an array of shape \(\)"),
            (3.0, r"Got an array of shape \(\)"),
            (np.ones((0, 3)), r"Z must have at least one curve\. Got shape \(0, 3\)"),
            ([], "Z must have at least one curve"),
            ([[1.0, 2.0], [3.0]], "Z must be an array .* Got a sequence whose parts differ in shape"),
            ([[1.0, 2.0], [3.0, -np.inf]], r"Z must hold finite values, or NaN .* Curve 1 contains infinity"),
            ([[1.0, 2.0], [3.0, 4.0], [NAN, NAN]], r"Curve 2 has no observed value; drop such curves \(1 of 3\)"),
            (np.ones((2, 0)), r"Curve 0 has no observed value; drop such curves \(2 of 2\)"),
            (np.full((1, 2, 2), NAN), "Curve 0 has no observed value"),
        ],
    )
    def test_bad_values(self, values, message):
        with pytest.raises(ValueError, match=message):
            as_curves(values, name="Z")

    def test_a_curve_seen_in_one_channel_is_observed(self):
        assert len(as_curves(np.array([[[1.0, NAN], [NAN, NAN]]]))) == 1

    @pytest.mark.parametrize("values", ["curve", [["a", "b"]], np.ones((2, 2)) * 1j, {"a": 1}, None])
    def test_no_numbers(self, values):
        with pytest.raises(TypeError, match=r"Y must be .* of real numbers\. Got dtype"):
            as_curves(values)

    def test_grid_of_words(self):
        with pytest.raises(TypeError, match="grid must be a one-dimensional array, of real numbers"):
            as_curves(np.ones((1, 2)), ["a", "b"])


class TestFrames:
    def test_numbers_as_columns_are_the_grid(self):
        frame = pd.DataFrame([[1.0, NAN, 3.0]], columns=[0.5, 1, 2.5])
        same(as_curves(frame), [0.5, 1, 2.5], [[1, NAN, 3]])
        same(as_curves(frame, grid=[0, 1, 2]), [0, 1, 2], [[1, NAN, 3]])

    def test_text_that_reads_as_numbers(self):
        same(as_curves(pd.DataFrame([[1, 2]], columns=["0.5", "1e1"])), [0.5, 10], [[1, 2]])

    @pytest.mark.parametrize("columns", [["a", "b"], [1, "b"], [(0, 1), (0, 2)], pd.to_datetime(["2020", "2021"])])
    def test_other_names(self, columns):
        same(as_curves(pd.DataFrame([[1, 2]], columns=columns)), [0, 1], [[1, 2]])

    def test_unsorted_columns(self):
        with pytest.raises(ValueError, match="grid must be increasing"):
            as_curves(pd.DataFrame([[1.0, 2.0]], columns=[1.0, 0.0]))

    def test_missing_values_of_pandas(self):
        frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [0.5, 1.5]})
        same(as_curves(frame), [0, 1], [[1, 0.5], [NAN, 1.5]])

    def test_dtype(self):
        assert as_curves(pd.DataFrame(np.ones((2, 3), dtype=np.float32))).values.dtype == np.float32

    def test_words(self):
        with pytest.raises(TypeError, match=r"Y must hold real numbers\. Got a DataFrame with other entries"):
            as_curves(pd.DataFrame([["a", "b"]]))


class TestPairs:
    def test_union_of_points(self):
        pairs = [([0.0, 1.0], [1.0, 2.0]), (np.array([3.0, 1.0, 2.0]), (30, 10, 20))]
        curves = as_curves(pairs)
        same(curves, [0, 1, 2, 3], [[1, 2, NAN, NAN], [NAN, 10, 20, 30]])
        same(as_curves(tuple(pairs)), curves.grid, curves.values)

    def test_pairs_of_equal_length_are_still_pairs(self):
        same(as_curves([[[0, 1], [5, 6]], [[0, 1], [7, 8]]]), [0, 1], [[5, 6], [7, 8]])

    def test_rows_of_two_numbers_are_no_pairs(self):
        same(as_curves([(1, 2), (3, 4)]), [0, 1], [[1, 2], [3, 4]])
        same(as_curves([(np.array(1.0), np.array(2.0))]), [0, 1], [[1, 2]])

    def test_channels(self):
        pairs = [([1, 0], [[1, 2], [3, 4]]), ([2], [[5, 6]])]
        expected = [[[3, 4], [1, 2], [NAN, NAN]], [[NAN, NAN], [NAN, NAN], [5, 6]]]
        same(as_curves(pairs), [0, 1, 2], expected)

    def test_missing_values(self):
        same(as_curves([([0, 1], [NAN, 2]), ([2], [3])]), [0, 1, 2], [[NAN, 2, NAN], [NAN, NAN, 3]])

    def test_series(self):
        series = pd.Series([1.0, 2.0], index=[0.5, 0.25])
        same(as_curves([(series.index, series)]), [0.25, 0.5], [[2, 1]])

    def test_dtype(self):
        single = np.array([1, 2], dtype=np.float32)
        assert as_curves([([0, 1], single), ([0, 1], single)]).values.dtype == np.float32
        assert as_curves([([0, 1], single), ([0, 1], [1.0, 2.0])]).values.dtype == np.float64

    @pytest.mark.parametrize("start", [0.0, 1e3])
    def test_nearly_equal_points_are_one(self, start):
        step = 100.0
        near, far = start + 4e-11, start + step * 3e-12 * 10
        curves = as_curves([([start, start + step], [1.0, 2.0]), ([near, start + step], [3.0, 4.0])])
        same(curves, [start, start + step], [[1, 2], [3, 4]])
        assert len(as_curves([([start, start + step], [1, 2]), ([far, start + step], [3, 4])]).grid) == 3

    def test_one_point(self):
        same(as_curves([([2.0], [1.0]), ([2.0], [3.0])]), [2], [[1], [3]])

    def test_given_grid(self):
        pairs = [([0.0, 1.0 + 1e-13], [1.0, 2.0]), ([2.0 - 1e-13], [3.0])]
        same(as_curves(pairs, grid=[0, 0.5, 1, 2]), [0, 0.5, 1, 2], [[1, NAN, 2, NAN], [NAN, NAN, NAN, 3]])
        with pytest.raises(ValueError, match=r"Curve 1 is observed at 1\.9.*, which is not in it; leave grid=None"):
            as_curves(pairs, grid=[0, 1, 3])
        with pytest.raises(ValueError, match=r"Curve 0 is observed at 0\.0, which is not in it"):
            as_curves(pairs, grid=[1, 2])
        with pytest.raises(ValueError, match="grid must be increasing"):
            as_curves(pairs, grid=[2, 1, 0])
        with pytest.raises(ValueError, match="grid must have at least one point"):
            as_curves(pairs, grid=[])

    @pytest.mark.parametrize(
        ("pair", "message"),
        [
            (
                ([0, 1, 0], [1, 2, 3]),
                r"The points of each curve of Z must be distinct\. Curve 1 has the point 0\.0 more",
            ),
            (([0, 1, 1 + 1e-14], [1, 2, 3]), r"Curve 1 has the point 1\.0.* more than once"),
            (([0, 1], [1, 2, 3]), r"Curve 1 has points of shape \(2,\) and values of shape \(3,\)"),
            (([[0, 1]], [[1, 2]]), r"Curve 1 has points of shape \(1, 2\)"),
            (([0, NAN], [1, 2]), "points of each curve of Z must be finite. Those of curve 1 are not"),
            (
                ([0, 1], [[1, 2], [3, 4]]),
                r"must have the same number of channels\. Curve 1 has values of shape \(2, 2\)",
            ),
            (([0, 1], [1, np.inf]), "Curve 1 contains infinity"),
            (([], []), "Curve 1 has no observed value"),
            (([0, 1], [NAN, NAN]), "Curve 1 has no observed value"),
            (([0, 1], [[1, 2], [3]]), "The values of curve 1 of Z must be .* parts differ in shape"),
        ],
    )
    def test_bad_pair(self, pair, message):
        with pytest.raises(ValueError, match=message):
            as_curves([([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]), pair], name="Z")

    def test_only_empty_pairs(self):
        with pytest.raises(ValueError, match=r"Curve 0 has no observed value; drop such curves \(2 of 2\)"):
            as_curves([([], []), ([], [])])

    def test_words(self):
        with pytest.raises(TypeError, match=r"The points of curve 0 of Y must be .* of real numbers"):
            as_curves([(["a"], [1.0])])

    def test_memory(self, monkeypatch):
        monkeypatch.setattr(_check, "_free_memory", lambda: 8 * 6 - 1)
        with pytest.raises(_check.NotFeasibleError, match=r"Y on the union of its points, shape \(2, 3\), needs"):
            as_curves([([0.0, 1.0], [1.0, 2.0]), ([2.0], [1.0])])


class TestScikitFda:
    def test_grid(self, skfda):
        values = np.array([[1.0, 2.0, NAN], [4.0, 5.0, 6.0]])
        same(as_curves(skfda.FDataGrid(values, [0, 1, 3])), [0, 1, 3], values)
        same(as_curves(skfda.FDataGrid(values, [0, 1, 3]), grid=[0, 1, 3]), [0, 1, 3], values)
        with pytest.raises(ValueError, match="grid must be the grid that Y comes with"):
            as_curves(skfda.FDataGrid(values, [0, 1, 3]), grid=[0, 1, 2])
        with pytest.raises(ValueError, match="grid must be the grid that Y comes with"):
            as_curves(skfda.FDataGrid(values, [0, 1, 3]), grid=[0, 1])

    def test_coordinates_are_channels(self, skfda, rng):
        values = rng.standard_normal((2, 4, 3))
        same(as_curves(skfda.FDataGrid(values, [0, 1, 2, 4])), [0, 1, 2, 4], values)

    def test_irregular(self, skfda):
        points, values = [0.0, 2.0, 3.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0]
        fdata = skfda.FDataIrregular([0, 3], points, values)
        same(as_curves(fdata), [0, 1, 2, 3], [[1, NAN, 2, 3], [NAN, 4, 5, NAN]])
        same(as_curves(fdata, grid=[0, 1, 2, 3, 4]).take(1), range(5), [[NAN, 4, 5, NAN, NAN]])
        with pytest.raises(ValueError, match=r"Curve 0 is observed at 3\.0"):
            as_curves(fdata, grid=[0, 1, 2])

    def test_irregular_channels(self, skfda):
        fdata = skfda.FDataIrregular([0, 1], [5, 6], [[1, 2], [3, 4]])
        same(as_curves(fdata), [5, 6], [[[1, 2], [NAN, NAN]], [[NAN, NAN], [3, 4]]])

    def test_basis(self, skfda):
        fdata = skfda.FDataBasis(skfda.representation.basis.MonomialBasis(domain_range=(0, 2), n_basis=3), [[1, 2, 3]])
        grid = np.linspace(0, 2, 101)
        curves = as_curves(fdata)
        np.testing.assert_allclose(curves.grid, grid, rtol=1e-15)
        np.testing.assert_allclose(curves.values, [1 + 2 * grid + 3 * grid**2], rtol=1e-14)
        same(as_curves(fdata, grid=[0, 0.5, 2]), [0, 0.5, 2], [[1, 2.75, 17]])
        with pytest.raises(ValueError, match=r"grid must lie in the domain of Y, \[0, 2\]\. Got points from 1 to 2\.5"):
            as_curves(fdata, grid=[1, 2.5])
        with pytest.raises(ValueError, match="grid must lie in the domain"):
            as_curves(fdata, grid=[-1, 2])

    def test_basis_channels(self, skfda):
        basis = skfda.representation.basis
        pair = basis.VectorValuedBasis([basis.ConstantBasis(), basis.MonomialBasis(n_basis=2)])
        curves = as_curves(skfda.FDataBasis(pair, [[7, 1, 2]]), grid=[0, 1])
        same(curves, [0, 1], [[[7, 1], [7, 3]]])

    def test_several_variables(self, skfda, rng):
        surface = skfda.FDataGrid(rng.standard_normal((2, 3, 4)), [range(3), range(4)])
        with pytest.raises(ValueError, match=r"Y must hold functions of one variable\. Got functions of 2 variables"):
            as_curves(surface)

    def test_other_objects(self, skfda):
        with pytest.raises(
            TypeError, match=r"must be an FDataGrid, FDataIrregular or FDataBasis\. Got a ConstantBasis"
        ):
            as_curves(skfda.representation.basis.ConstantBasis())

    def test_no_curves(self, skfda):
        with pytest.raises(ValueError, match="Y must have at least one curve"):
            as_curves(skfda.FDataGrid(np.ones((2, 3)))[:0])

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("shape", [(4, 6), (4, 6, 3), (1, 2), (2, 2, 1)])
    def test_round_trip_of_complete_curves(self, skfda, rng, shape, dtype):
        curves = as_curves(rng.standard_normal(shape).astype(dtype), np.sort(rng.uniform(-2, 3, shape[1])))
        fdata = to_fdata(curves)
        assert isinstance(fdata, skfda.FDataGrid)
        back = as_curves(fdata)
        same(back, curves.grid, curves.values.reshape(back.values.shape))
        assert back.values.dtype == dtype

    @pytest.mark.parametrize("shape", [(5, 8), (5, 8, 2)])
    def test_round_trip_of_incomplete_curves(self, skfda, rng, shape):
        values = rng.standard_normal(shape)
        values[rng.uniform(size=shape) < 0.4] = NAN
        values[2, 1:] = NAN
        values[:, 4] = NAN  # no curve is observed at this point
        curves = as_curves(values, np.sort(rng.uniform(0, 1, shape[1])))
        fdata = to_fdata(curves)
        assert isinstance(fdata, skfda.FDataIrregular)
        same(as_curves(fdata, grid=curves.grid), curves.grid, values)
        same(as_curves(fdata), np.delete(curves.grid, 4), np.delete(values, 4, axis=1))

    def test_the_domain_is_that_of_the_grid(self, skfda):
        fdata = to_fdata(as_curves([[NAN, 1.0, 2.0, NAN]], grid=[0, 1, 2, 3]))
        assert fdata.domain_range == ((0, 3),)

    def test_round_trip_from_scikit_fda(self, skfda):
        fdata = skfda.FDataIrregular([0, 3], [0.0, 2.0, 3.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0])
        back = to_fdata(as_curves(fdata))
        for name in ("start_indices", "points", "values"):
            np.testing.assert_array_equal(getattr(back, name), getattr(fdata, name))

    def test_from_an_array(self, skfda):
        assert isinstance(to_fdata(np.ones((2, 3))), skfda.FDataGrid)

    def test_a_missing_library_names_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "skfda", None)
        with pytest.raises(
            ImportError, match=r"needs skfda, which is not installed\. Run: pip install 'fenchel\[fda\]'"
        ):
            to_fdata(as_curves([[1.0, 2.0]]))


def test_import_loads_no_optional_library():
    code = (
        "import sys, fenchel, fenchel.datasets; fenchel.datasets.as_curves([[1.0, 2.0]]);"
        "print([m for m in ('skfda', 'torch', 'matplotlib') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert loaded == "[]"
