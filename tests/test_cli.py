import pytest

from fenchel.papers import demo

click_testing = pytest.importorskip("click.testing")
pytest.importorskip("rich")
pytest.importorskip("matplotlib")


def test_the_demo_prints_a_table_writes_a_page_and_shows_what_it_says(tmp_path, monkeypatch):
    from fenchel.app.cli import main

    kept, run = [], demo.run  # one run, some fifteen seconds, for everything that is asked of it
    monkeypatch.setattr(demo, "run", lambda progress: kept.append(run(progress)) or kept[0])
    result = click_testing.CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    (found,) = kept
    assert_output(result.output, found)
    assert_page((tmp_path / "out" / "demo.html").read_text(encoding="utf-8"), found)
    assert (tmp_path / "out" / "demo.png").stat().st_size > 50_000
    assert_claims(found)


def assert_output(output, found):
    lines = output.splitlines()
    assert max(map(len, lines)) <= 80  # a terminal's width, and what a pipe is taken for
    for row in found.rows:
        line = next(line for line in lines if f" {row.data} " in line and f" {row.model} " in line)
        assert f"{row.error:.4f}" in line
    assert "Picture:" in output
    assert "Page:" in output


def assert_page(text, found):
    assert text.count("<img") == text.count("data:image/svg+xml;base64,") == len(demo.PANELS) == 6
    assert "<script" not in text
    assert 'src="http' not in text
    for row in found.rows:
        assert f"<td>{row.chosen}</td>" in text
    for sentence in demo.findings(found):
        assert sentence in text  # none of them needs an escape


def assert_claims(found):
    error = {(row.data, row.model): row.error for row in found.rows}
    square, whole, single = (f"fenchel {name}" for name in ("square", "Huber p=2", "Huber p=1"))
    assert len(error) == 21
    assert all(row.gap <= 1e-6 for row in found.rows if row.gap is not None)
    assert sum(row.gap is not None for row in found.rows) == 15
    # robust where curves are wrong, and p=1 where points are; nothing lost on clean data
    assert error[demo.CLEAN, whole] < 1.1 * error[demo.CLEAN, square]
    assert error[demo.CURVES, whole] < 0.2 * error[demo.CURVES, square]
    assert error[demo.POINTS, single] < 0.6 * error[demo.POINTS, square]
    assert error[demo.POINTS, single] < 0.8 * error[demo.POINTS, whole]
    assert error[demo.CLEAN, square] < error[demo.CLEAN, "sklearn KernelRidge"]
    assert found.row(demo.CLEAN, "fenchel eps-ridge p=inf").nulls > 0.2
    scores = found.row(demo.CURVES, whole).fitted.outlier_score_
    assert scores[found.is_outlier[demo.CURVES]].min() > scores[~found.is_outlier[demo.CURVES]].max()


def test_unknown_experiment_is_named():
    from fenchel.app.cli import main

    result = click_testing.CliRunner().invoke(main, ["reproduce", "yeast"])
    assert result.exit_code == 2
    assert "yeast-curves" in result.output


def test_missing_data_is_one_clear_line(tmp_path, monkeypatch):
    from fenchel.app.cli import main

    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
    result = click_testing.CliRunner().invoke(main, ["reproduce", "lip", "--output", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert result.output.strip().endswith(
        "has no lip_emg/lip_emg.npz. To see how to get the data, run: fenchel datasets source lip_emg"
    )
    assert "Traceback" not in result.output
