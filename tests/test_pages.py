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


def printing_blocks():
    """Return the blocks of README and tour, each with what it prints."""
    pages = [page for page in (ROOT / "README.md", ROOT / "docs" / "tour.md") if page.exists()]
    return [block for page in pages for block in FENCED.findall(page.read_text(encoding="utf-8"))]


def test_the_readme_is_short_and_has_its_example():
    if not (ROOT / "README.md").exists():
        pytest.skip("no README beside the tests")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 150
    assert len(FENCED.findall(readme)) == 1 and len(printing_blocks()) == 8


def test_the_readme_links_to_pages_that_are_there():
    if not (ROOT / "README.md").exists():
        pytest.skip("no README beside the tests")
    links = re.findall(r"\]\(((?!http)[^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links and [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize(("code", "output"), printing_blocks())
def test_a_page_prints_what_it_says(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "page", "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == output


def blocks_of(name, count):
    """Return the Python blocks of a page; a page that has other than this many has changed without its test."""
    page = ROOT / "docs" / name
    if not page.exists():
        pytest.skip("no pages beside the tests")
    blocks = [textwrap.dedent(block) for block in RST_BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert len(blocks) == count
    return blocks


def names_after(name, blocks, names=None):
    """Run blocks, each from where the last one ended, and return the names that they leave."""
    names = {} if names is None else names
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    return names


def test_the_page_on_approximations_runs():
    names_after("approximations.rst", blocks_of("approximations.rst", 2))


def test_the_page_on_several_kernels_runs():
    blocks = blocks_of("several_kernels.rst", 2)
    complete, incomplete = (names_after("several_kernels.rst", blocks[:count])["found"] for count in (1, 2))
    assert complete.weights_[2] < 0.05 and incomplete.weights_[2] < 0.05
    assert complete.error < incomplete.error


def test_the_page_on_curves_runs():
    pytest.importorskip("skfda")
    pytest.importorskip("matplotlib")
    names = names_after("functional.rst", blocks_of("functional.rst", 9))
    assert names["model"].predict(names["test"].X).shape == (200, 50, 2)
    assert (names["flagged"] > 1 - 1e-6).all()
    assert (names["same"].grid_ == names["train"].t).all()
    assert type(names["functions"]).__name__ == "FDataGrid"


def test_the_page_on_structured_outputs_runs():
    blocks = blocks_of("structured.rst", 10)
    names = names_after("structured.rst", blocks[:1])
    assert names["model"].dual_coef_.shape == (200, 9)  # as the second block says
    names_after("structured.rst", blocks[1:], names)
    assert names["labels"].shape == names["best"].shape == names["best_of_list"].shape == (50, 4)
    assert names["distances"].shape == (50, 16)
    assert names["three"].shape == (50, 3, 4)
    assert len(names["places"]) == 50
    assert (names["scores"][:10] > 1 - 1e-6).all()
    assert names["place"].shape == (50,)
    assert (names["same"] == names["labels"]).all()
    assert "higher" in names["found"]
    assert names["ranked"].shape == (50, 2)


def test_the_page_on_the_loss_trick_runs():
    names = names_after("loss_trick.rst", blocks_of("loss_trick.rst", 4))
    assert names["found"].shape == (50,) and names["alpha"].shape == (50, 200)
    model, wrong = names["model"], names["wrong"]
    assert model.duality_gap_ <= 1e-6
    assert model.outlier_score_[wrong].mean() > model.outlier_score_.mean()


def test_the_page_on_manifolds_runs():
    names = names_after("loss_trick_manifolds.rst", blocks_of("loss_trick_manifolds.rst", 1))
    assert abs(names["turned"][0] - (4 - 2 * 3.14159265)) < 0.01  # as its comment says
    assert abs((names["directions"] ** 2).sum(axis=1) - 1).max() < 1e-12
    assert names["means"].shape == (1, 2, 2)


def test_the_page_on_autoencoders_runs():
    names = names_after("autoencoders.rst", blocks_of("autoencoders.rst", 4))
    assert names["codes"].shape == (50, 5) and names["distances"].shape == (50,) and names["images"].shape == (50, 64)
    assert names["falls"].all() and 0 < len(names["suspicious"]) < 300
    assert names["places"].shape == (50,) and 0 < names["error"] < 1
    assert names["accuracy"] > 0.7


def test_the_page_on_the_command_line_runs(tmp_path, monkeypatch):
    pytest.importorskip("skops.io")
    blocks = blocks_of("command_line.rst", 1)
    monkeypatch.chdir(tmp_path)
    names_after("command_line.rst", blocks)
    assert (tmp_path / "sine.fenchel").exists()


def test_the_page_on_quantiles_runs():
    names = names_after("quantiles.rst", blocks_of("quantiles.rst", 4))
    assert names["bands"].shape == (300, 3) and names["draws"].shape == (300, 100)
    assert 0.6 < names["inside"] < 0.95 and 0 < names["loss"] < 0.3
    assert names["cautious"].sum() > names["labels"].sum()
    assert names["curve"].costs.shape == (99,)


def test_the_page_on_adding_a_part_runs():
    names = names_after("add_a_part.rst", blocks_of("add_a_part.rst", 5))
    assert names["model"].duality_gap_ <= 1e-6
    assert names["model"].solver_info_["solver"] == "HeavyBall"
    (mark,) = names["test_contract"].pytestmark
    for case in mark.args[1]:
        names["test_contract"](*case.values)


def test_the_page_on_defaults_runs():
    names = names_after("defaults.rst", blocks_of("defaults.rst", 6))
    assert names["model"].score(names["X"], names["Y"]) > 0.9
    assert names["curves"].predict(names["data"].X[:, :, None]).shape == names["data"].Y.shape
    assert isinstance(names["named"].best_loss_.epsilon, float)
    assert names["labels"].predict(names["X"]).dtype == int


def test_the_entries_of_the_bibliography_are_closed():
    page = ROOT / "docs" / "references.bib"
    if not page.exists():
        pytest.skip("no pages beside the tests")
    entries = re.split(r"^(?=@)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [entry.splitlines()[0] for entry in entries if entry.count("{") != entry.count("}")] == []
