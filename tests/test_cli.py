import pytest

from fenchel.experiments import demo

click_testing = pytest.importorskip("click.testing")
pytest.importorskip("rich")
pytest.importorskip("matplotlib")


def test_demo_prints_a_table_and_writes_a_page(tmp_path):
    from fenchel.cli import main

    result = click_testing.CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "outliers" in result.output
    assert "fenchel Huber" in result.output
    text = (tmp_path / "out" / "demo.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 1
    assert "http-equiv" not in text
    assert "<script" not in text
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000


def test_the_demo_shows_what_it_says():
    rows, _ = demo.run()
    error = {(row.data, row.model): row.error for row in rows}
    dirty = "15 % outliers"
    assert error["clean", "fenchel square"] == pytest.approx(error["clean", "scikit-learn KernelRidge"], rel=1e-6)
    assert error[dirty, "fenchel Huber"] < 0.01 * error[dirty, "fenchel square"]
    assert error[dirty, "fenchel epsilon-SVR"] < 0.01 * error[dirty, "fenchel square"]
    assert all(row.gap <= 1e-6 for row in rows if row.gap is not None)


def test_unknown_experiment_is_named():
    from fenchel.cli import main

    result = click_testing.CliRunner().invoke(main, ["reproduce", "yeast"])
    assert result.exit_code == 2
    assert "yeast-curves" in result.output


def test_missing_data_is_one_clear_line(tmp_path, monkeypatch):
    from fenchel.cli import main

    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
    result = click_testing.CliRunner().invoke(main, ["reproduce", "lip", "--output", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "Error: There is no data file" in result.output
    assert "Traceback" not in result.output
