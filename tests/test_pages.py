"""What the pages show runs, and prints what they say."""

import ast
import contextlib
import doctest
import io
import pickle
import re
import textwrap
from importlib import import_module
from inspect import isclass
from pathlib import Path

import numpy as np
import pytest

import fenchel
from fenchel import __main__ as entry_point
from fenchel import datasets, exceptions
from fenchel.app.explanations import explanations
from fenchel.exceptions import warn_user
from fenchel.testing import check_loss

ROOT = Path(__file__).parents[1]
FENCED = re.compile(r"^```python\n(.*?)^```\n\nprints\n\n^```\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
RST_BLOCK = re.compile(r"^( *)\.\. code-block:: python\n\n((?:\1   .*\n|\n)+)", flags=re.MULTILINE)


def printing_blocks():
    """Return the blocks of README and of the pages that begin, each with what it prints."""
    paths = [ROOT / "README.md", ROOT / "docs" / "getting_started.md"]
    pages = [page for page in paths if page.exists()]
    return [block for page in pages for block in FENCED.findall(page.read_text(encoding="utf-8"))]


def test_the_readme_is_short_and_has_its_example():
    if not (ROOT / "README.md").exists():
        pytest.skip("no README beside the tests")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 150
    assert len(FENCED.findall(readme)) == 1 and len(printing_blocks()) == 5


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
    blocks = [textwrap.dedent(block) for _, block in RST_BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert len(blocks) == count
    return blocks


def names_after(name, blocks, names=None):
    """Run blocks, each from where the last one ended, and return the names that they leave."""
    names = {} if names is None else names
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    return names


def sample():
    """Return the data that pages without data of their own speak of."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(24, 2))
    return {"np": np, "X": X, "Y": np.hstack([X, X**2]) + 0.05 * rng.standard_normal((24, 4)), "X_new": X[:2]}


def test_every_page_with_python_is_tested():
    pages = [*(ROOT / "docs").glob("*.rst"), *(ROOT / "docs").glob("*.md")]
    shown = {page.name for page in pages if re.search("code-block:: python|^```python", page.read_text("utf-8"), re.M)}
    named = set(re.findall(r'blocks_of\("([\w.]+)"', Path(__file__).read_text(encoding="utf-8")))
    others = (f"coming_from_{library}.rst" for library in ("sklearn", "skfda", "r", "pls", "xgboost", "gpytorch"))
    named |= {"cite.rst", "clusters.rst", *others}
    assert shown - named == ({"getting_started.md"} if pages else set())  # those of ``printing_blocks``


@pytest.mark.parametrize("page", ["bands.rst", "outliers.rst"])
def test_the_sessions_of_a_page_print_what_it_says(page):
    path = ROOT / "docs" / page
    if not path.exists():
        pytest.skip("no pages beside the tests")
    failed, attempted = doctest.testfile(str(path), module_relative=False, encoding="utf-8")
    assert attempted >= 10 and failed == 0


def test_the_example_of_the_landing_page_runs():
    names = sample()
    with contextlib.redirect_stdout(io.StringIO()):
        names_after("index.rst", blocks_of("index.rst", 1), names)
    assert names["model"].duality_gap_ <= 1e-6


@pytest.mark.parametrize(
    ("library", "count"), [("sklearn", 7), ("skfda", 5), ("r", 3), ("pls", 7), ("xgboost", 1), ("gpytorch", 1)]
)
def test_the_pages_for_users_of_other_libraries_run(library, count):
    for needed in {"skfda": ["skfda", "matplotlib"], "sklearn": ["pandas"], "pls": ["pandas", "matplotlib"]}.get(
        library, []
    ):
        pytest.importorskip(needed)
    names_after(library, blocks_of(f"coming_from_{library}.rst", count))  # with their assertions


def test_the_page_on_choosing_runs():
    grid, search = blocks_of("choose.rst", 2)
    imports = (
        "from sklearn.model_selection import GridSearchCV\n"
        "from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV\n"
        "from fenchel.kernels import Gaussian\nfrom fenchel.losses import Huber"
    )
    names = names_after("choose.rst", [imports, grid, search], sample())
    assert names["search"].fit(names["X"], names["Y"][:, 0]).best_params_.keys() == {
        "kernel__gamma",
        "lam",
        "loss__kappa",
    }
    assert names["model"].best_lam_ in np.logspace(-6, 0, 7)


def test_the_first_hour_runs(tmp_path, monkeypatch):
    for needed in ("pandas", "skops.io", "matplotlib"):
        pytest.importorskip(needed)
    blocks = blocks_of("first_hour.rst", 6)
    monkeypatch.chdir(tmp_path)
    names_after("first_hour.rst", blocks)  # with its assertions
    assert (tmp_path / "curves.html").stat().st_size > 10_000


def test_the_page_on_installation_runs(capsys):
    blocks = blocks_of("install.rst", 1)
    if not (datasets.data_folder() / "lip_emg").exists():
        pytest.skip("the data of the page are not here")
    names_after("install.rst", blocks)
    assert "32" in capsys.readouterr().out


def test_the_page_on_scale_runs():
    names_after("scale.rst", blocks_of("scale.rst", 3))  # with their assertions


def test_the_page_on_learned_metrics_runs():
    pytest.importorskip("matplotlib")
    names = sample() | {"t": np.linspace(0, 1, 5)}
    names["curves"] = np.sin(names["X"] @ np.ones((2, 1)) * names["t"])
    imports = "from fenchel import FunctionalRegressor, OperatorKernelRegressor"
    names = names_after("learned_metric.rst", [imports, *blocks_of("learned_metric.rst", 2)], names)
    assert names["model"].gradient(names["X_new"], almost_everywhere=True).shape == (2, 4, 2)
    assert len(names["model"].history_) > names["model"].best_round_


def test_the_loss_of_its_page_runs_with_the_imports_of_the_page():
    example = (ROOT / "examples/losses/plot_add_a_loss.py").read_text(encoding="utf-8")
    (written,) = (node for node in ast.parse(example).body if isinstance(node, ast.ClassDef))
    names = names_after("add_a_loss.rst", [*blocks_of("add_a_loss.rst", 1), ast.unparse(written)])
    check_loss(names["Quantile"](level=0.2))


def test_the_page_on_several_kernels_runs():
    blocks = blocks_of("several_kernels.rst", 2)
    complete, incomplete = (names_after("several_kernels.rst", blocks[:count])["found"] for count in (1, 2))
    assert complete.weights_[2] < 0.05 and incomplete.weights_[2] < 0.05
    assert complete.error < incomplete.error


@pytest.mark.filterwarnings("ignore:FinDiff is deprecated:DeprecationWarning")  # by scikit-fda
def test_the_page_on_curves_runs():
    pytest.importorskip("skfda")
    pytest.importorskip("matplotlib")
    names = names_after("functional.rst", blocks_of("functional.rst", 14))
    assert names["model"].predict(names["test"].X).shape == (200, 50, 2)
    assert (names["flagged"] > 1 - 1e-6).all()
    assert (names["same"].grid_ == names["train"].t).all()
    assert type(names["functions"]).__name__ == "FDataGrid"


def test_the_page_on_structured_outputs_runs():
    blocks = blocks_of("structured.rst", 11)
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
    blocks = blocks_of("loss_trick.rst", 7)
    names = names_after("loss_trick.rst", blocks[:5])
    assert names["found"].shape == (50,) and names["alpha"].shape == (50, 200)
    model, wrong = names["model"], names["wrong"]
    assert model.duality_gap_ <= 1e-6
    assert model.outlier_score_[wrong].mean() > model.outlier_score_.mean()
    assert names_after("loss_trick.rst", blocks[5:6], names)["model"].coupling_ in (0.0, 0.25, 0.5, 1.0)
    names_after("loss_trick.rst", blocks[6:], names)


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
    names = names_after("add_a_part.rst", blocks_of("add_a_part.rst", 7))
    assert np.median(np.abs(names["gradient"].ravel() - 2 * np.cos(2 * names["X"][:, 0]))) < 0.1
    assert names["model"].duality_gap_ <= 1e-6
    assert names["model"].solver_info_["solver"] == "HeavyBall"
    (mark,) = names["test_contract"].pytestmark
    for case in mark.args[1]:
        names["test_contract"](*case.values)


def test_the_page_on_operators_runs():
    names = names_after("operators.rst", blocks_of("operators.rst", 5))
    assert names["model"].duality_gap_ <= 1e-6
    truth, holes = names["Y_new"], names["partial"].predict(names["X_new"])
    assert np.linalg.norm(holes - truth) < 0.12 * np.linalg.norm(truth)


def test_the_page_on_defaults_runs():
    with contextlib.redirect_stdout(io.StringIO()):
        names = names_after("defaults.rst", blocks_of("defaults.rst", 8))
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


def named_entries():
    """Return the entries of the page on troubleshooting that the code names."""
    texts = [path.read_text(encoding="utf-8") for path in Path(fenchel.__file__).parent.rglob("*.py")]
    calls = [
        node
        for text in texts
        if "warn_user(" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "warn_user"
    ]
    errors = [part for part in vars(exceptions).values() if isclass(part) and issubclass(part, exceptions.FenchelError)]
    others = re.findall(r"{see\('([\w-]+)'\)}", "".join(texts))
    return [ast.literal_eval(call.args[2]) for call in calls] + others + [part._entry for part in errors]


def test_what_warnings_and_errors_link_to_is_there():
    """The page includes the file that ``fenchel explain`` reads."""
    entries = named_entries()
    assert len(entries) > 15 and set(entries) == set(explanations())
    page = ROOT / "docs" / "troubleshooting.rst"
    if page.exists():
        assert ".. include:: ../src/fenchel/app/troubleshooting.rst\n" in page.read_text(encoding="utf-8")


def test_each_entry_says_what_came_and_what_to_do():
    """A title that names the class, and the text of the message."""
    for code, text in explanations().items():
        title, _, rest = text.partition("\n")
        classes = re.findall(r"`(\w+)`", title)
        assert code == "errors" or any("Warning" in name or "Error" in name for name in classes), code
        assert ":doc:" not in text and ":ref:" not in text and len(rest) > 100, code
        assert code in {"errors", "model-file"} or '*"' in rest, code


def test_a_message_leads_to_its_entry_in_a_terminal(capsys, monkeypatch):
    """Also where the command line is not installed."""

    def missing(name):
        if name == "fenchel.app.cli":
            raise ImportError("This needs click")
        return import_module(name)

    monkeypatch.setattr(entry_point, "import_module", missing)
    command = exceptions.see("kernel-scale").partition("python -m ")[2].split()
    monkeypatch.setattr("sys.argv", command)
    entry_point.main()
    assert capsys.readouterr().out.startswith("`ScaleWarning`: a kernel bandwidth")
    monkeypatch.setattr("sys.argv", [*command[:2], "kernel-scales"])
    with pytest.raises(SystemExit, match="Did you mean 'kernel-scale'"):
        entry_point.main()
    monkeypatch.setattr("sys.argv", ["fenchel", "fit"])
    with pytest.raises(SystemExit, match="This needs click"):
        entry_point.main()


def test_the_command_lists_all_codes():
    click_testing = pytest.importorskip("click.testing")
    pytest.importorskip("rich")
    result = click_testing.CliRunner().invoke(import_module("fenchel.app.cli").main, ["explain"])
    assert result.exit_code == 0 and [line.split()[0] for line in result.output.splitlines()] == list(explanations())


def test_warnings_and_errors_end_with_a_link(monkeypatch):
    monkeypatch.setattr(exceptions, "_documentation", lambda: "https://docs.example")
    with pytest.warns(exceptions.DataWarning, match=r"few\. See https://docs\.example/troubleshooting\.html#few$"):
        warn_user("Too few.", exceptions.DataWarning, "few")
    error = pickle.loads(pickle.dumps(exceptions.IndefiniteError("too large")))
    assert str(error) == "too large"
    assert error.__notes__ == ["See https://docs.example/troubleshooting.html#indefinite-matrix"]


def test_every_warning_ends_with_a_link():
    """A module that warns in its own way adds the link itself, so that every warning ends with one."""
    texts = [path.read_text("utf-8") for path in Path(fenchel.__file__).parent.rglob("*.py")]
    warn = [text for text in texts if "warnings.warn(" in text]
    assert warn and all(text.count("{see(") == text.count("warnings.warn(") for text in warn)


def test_errors_cross_processes():
    """As workers send them, with and without tblib's tracebacks, which rebuilds exceptions in its own way."""
    tblib = pytest.importorskip("tblib.pickling_support")
    error = exceptions.NotFeasibleError("too large", 3)
    rebuild, arguments, *_ = tblib.pickle_exception(error)
    for found in (pickle.loads(pickle.dumps(error)), rebuild(*arguments)):
        assert type(found) is exceptions.NotFeasibleError
        assert (found.args, found.__notes__) == (error.args, error.__notes__)
