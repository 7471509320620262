"""What the pages show runs, and prints what they say."""

import contextlib
import io
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FENCED = re.compile(r"^```python\n(.*?)^```\n\nprints\n\n^```\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
RST_BLOCK = re.compile(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", flags=re.MULTILINE)


def readme_blocks():
    page = ROOT / "README.md"
    return FENCED.findall(page.read_text(encoding="utf-8")) if page.exists() else []


def test_the_readme_has_its_examples():
    if not (ROOT / "README.md").exists():
        pytest.skip("no README beside the tests")
    assert len(readme_blocks()) == 7


@pytest.mark.parametrize(("code", "output"), readme_blocks())
def test_the_readme_prints_what_it_says(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == output


def test_the_page_on_curves_runs():
    pytest.importorskip("skfda")
    pytest.importorskip("matplotlib")
    page = ROOT / "docs" / "functional.rst"
    if not page.exists():
        pytest.skip("no pages beside the tests")
    blocks = [textwrap.dedent(block) for block in RST_BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert len(blocks) == 9
    names = {}
    for block in blocks:  # each goes on where the last one ended
        exec(compile(block, "functional.rst", "exec"), names)
    assert names["model"].predict(names["test"].X).shape == (200, 50, 2)
    assert (names["flagged"] > 1 - 1e-6).all()
    assert (names["same"].grid_ == names["train"].t).all()
    assert type(names["functions"]).__name__ == "FDataGrid"


def test_the_page_on_structured_outputs_runs():
    page = ROOT / "docs" / "structured.rst"
    if not page.exists():
        pytest.skip("no pages beside the tests")
    blocks = [textwrap.dedent(block) for block in RST_BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert len(blocks) == 9
    names = {}
    exec(compile(blocks[0], "structured.rst", "exec"), names)
    assert names["model"].dual_coef_.shape == (200, 9)  # as the second block says
    for block in blocks[1:]:  # each goes on where the last one ended
        exec(compile(block, "structured.rst", "exec"), names)
    assert names["labels"].shape == names["best"].shape == names["best_of_list"].shape == (50, 4)
    assert names["distances"].shape == (50, 16)
    assert names["three"].shape == (50, 3, 4)
    assert len(names["places"]) == 50
    assert (names["scores"][:10] > 1 - 1e-6).all()
    assert names["place"].shape == (50,)
    assert (names["same"] == names["labels"]).all()
    assert "higher" in names["found"]
    assert names["ranked"].shape == (50, 2)


def test_the_page_on_autoencoders_runs():
    page = ROOT / "docs" / "autoencoders.rst"
    if not page.exists():
        pytest.skip("no pages beside the tests")
    blocks = [textwrap.dedent(block) for block in RST_BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert len(blocks) == 4
    names = {}
    for block in blocks:  # each goes on where the last one ended
        exec(compile(block, "autoencoders.rst", "exec"), names)
    assert names["codes"].shape == (50, 5) and names["distances"].shape == (50,) and names["images"].shape == (50, 64)
    assert names["falls"].all() and 0 < len(names["suspicious"]) < 300
    assert names["places"].shape == (50,) and 0 < names["error"] < 1
    assert names["accuracy"] > 0.7


def test_the_page_on_the_command_line_runs(tmp_path, monkeypatch):
    pytest.importorskip("skops.io")
    page = ROOT / "docs" / "command_line.rst"
    if not page.exists():
        pytest.skip("no pages beside the tests")
    monkeypatch.chdir(tmp_path)
    (block,) = (textwrap.dedent(block) for block in RST_BLOCK.findall(page.read_text(encoding="utf-8")))
    exec(compile(block, "command_line.rst", "exec"), {})
    assert (tmp_path / "sine.fenchel").exists()


def test_the_page_on_quantiles_runs():
    page = ROOT / "docs" / "quantiles.rst"
    if not page.exists():
        pytest.skip("no pages beside the tests")
    blocks = [textwrap.dedent(block) for block in RST_BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert len(blocks) == 4
    names = {}
    for block in blocks:  # each goes on where the last one ended
        exec(compile(block, "quantiles.rst", "exec"), names)
    assert names["bands"].shape == (300, 3) and names["draws"].shape == (300, 100)
    assert 0.6 < names["inside"] < 0.95 and 0 < names["loss"] < 0.3
    assert names["cautious"].sum() > names["labels"].sum()
    assert names["curve"].costs.shape == (99,)
