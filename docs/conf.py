"""Sphinx settings. The API pages are written from ``__all__``, so a new class appears by itself."""

import importlib
import inspect
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style as UnsrtStyle
from pybtex.style.labels import BaseLabelStyle
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

import fenchel

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for gallery_style
EXAMPLES = HERE.parent / "examples"
PLACES = tomllib.loads((HERE.parent / "places.toml").read_text(encoding="utf-8"))
ROOMS = {
    "fenchel": "Estimators",
    "fenchel.losses": "Losses",
    "fenchel.kernels": "Kernels and output operators",
    "fenchel.approximations": "Approximations for large samples",
    "fenchel.representations": "Representations of outputs",
    "fenchel.decoders": "Decoders of structured outputs",
    "fenchel.task_losses": "Task losses of the loss trick",
    "fenchel.solvers": "Solvers",
    "fenchel.datasets": "Data sets",
    "fenchel.metrics": "Metrics",
    "fenchel.report.figures": "Plots",
    "fenchel.report.importance": "Importance of inputs",
    "fenchel.app.pages.summary": "Reports",
    "fenchel.app.tables": "Tables of mixed columns",
    "fenchel.testing": "Contract tests of your own parts",
    "fenchel.exceptions": "Exceptions and warnings",
    "fenchel.problem": "Dual problems and certificates",
    "fenchel.operators": "Gram matrices as operators",
    "fenchel.app.persistence": "Model files",
}
N_PARTS = 8  # the first rooms: the estimators, and what they are made of
TASKS = {  # of the names in ``fenchel``; those that are in none are listed after them
    "Tables and vectors": (
        "OperatorKernelRegressorCV",
        "OperatorKernelRegressor",
        "LearnedMetricRegressor",
        "learn_kernel_weights",
        "KernelWeights",
    ),
    "Curves and functions": (
        "FunctionalRegressorCV",
        "FunctionalRegressor",
        "FieldRegressor",
        "learn_frequencies",
        "FrequencySearch",
    ),
    "Structured outputs": ("StructuredPredictorCV", "StructuredPredictor", "LossTrickPredictor"),
    "Quantiles and costs": (
        "QuantileFunctionRegressorCV",
        "QuantileFunctionRegressor",
        "CostSensitiveClassifier",
        "CostCurve",
    ),
    "Prediction bands and bounds": (
        "ConformalRegressor",
        "PredictionBand",
        "ConformalPredictor",
        "PredictionSet",
        "generalization_bound",
        "GeneralizationBound",
        "excess_risk_bound",
        "ExcessRiskBound",
    ),
    "Outliers": ("OutlierReport", "RobustRefit"),
    "Codes": ("KernelAutoencoder",),
    "Paths and searches": ("path", "RegularizationPath", "keeping_best_pair"),
    "Model files": ("save", "load"),
}

# A directive with its block, a doctest line, text in backticks: there a bar stays what it is.
NOT_PROSE_OR_BAR = re.compile(
    r"^( *)\.\. [\w-]+::.*(?:\n\1 +\S.*|\n *$)*|^ *(?:>>>|\.\.\.) .*|`+[^`]+`+|\|", flags=re.MULTILINE
)

project = "fenchel"
author = "The fenchel developers"
copyright = "The fenchel developers"
version = release = fenchel.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "numpydoc",
    "sphinxcontrib.bibtex",
    "sphinx.ext.linkcode" if PLACES["repository"] else "sphinx.ext.viewcode",
]
if os.environ.get("FENCHEL_DOCS_ONLINE"):  # the inventories of others are read from the network
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
exclude_patterns = ["_build", "_templates", "sg_execution_times.rst", "**/sg_execution_times.rst"]
templates_path = ["_templates"]
myst_heading_anchors = 3
default_role = "code"
toc_object_entries_show_parents = "hide"  # fit(), not OperatorKernelRegressorCV.fit()

html_theme = "pydata_sphinx_theme"
html_title = f"fenchel {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_baseurl = f"{PLACES['documentation'].rstrip('/')}/stable/" if PLACES["documentation"] else ""
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "search_scorer.js")
html_context = {
    "description": "Robust and sparse regression for vectors, curves and structured outputs, with certified gaps.",
    "card": f"{html_baseurl}_static/curves.png" if html_baseurl else "",
}
html_sidebars = {"index": []}
html_theme_options = {
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo-dark.svg", "alt_text": "fenchel"},
    "show_prev_next": True,
    "show_toc_level": 2,
}
if PLACES["repository"]:
    html_theme_options["icon_links"] = [{"name": "Source", "url": PLACES["repository"], "icon": "fa-brands fa-git-alt"}]
if PLACES["documentation"]:  # each release has a folder; the list of them lies beside the folders
    html_theme_options["switcher"] = {"json_url": f"{PLACES['documentation']}/versions.json", "version_match": release}
    html_theme_options["navbar_end"] = ["version-switcher", "theme-switcher", "navbar-icon-links"]

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the docstrings give types and shapes
numpydoc_show_class_members = False  # the class template lists them
numpydoc_class_members_toctree = False

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "by_key"

if rooms_with_examples := {path.parent for path in EXAMPLES.rglob("plot_*.py")}:
    for folder in sorted(rooms_with_examples | {EXAMPLES}):
        if not (folder / "GALLERY_HEADER.rst").exists():  # the gallery would leave the folder out and say nothing
            raise FileNotFoundError(f"examples need a title: write GALLERY_HEADER.rst in {folder.name}/.")
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": str(EXAMPLES),
        "gallery_dirs": "auto_examples",
        "backreferences_dir": "auto_examples/backreferences",
        "doc_module": ("fenchel",),
        "filename_pattern": r"plot_",
        "abort_on_example_error": True,
        "download_all_examples": False,
        "show_memory": False,
        "reset_modules": ("matplotlib", "gallery_style.reset"),
        "show_signature": False,
        "parallel": 2,
    }


def write_api_pages() -> None:
    """Write one page for each room, for which autosummary writes one for each name, and the list by task."""
    folder = HERE / "api"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number, room in enumerate(ROOMS):
        (folder / f"{number:02d}_{room}.rst").write_text(api_page(room), encoding="utf-8")
    (folder / "by_task.inc").write_text(api_by_task(), encoding="utf-8")


def public_names(room: str, is_kind: Any = callable) -> list[str]:
    """Return the classes and functions of a room, or those of one kind."""
    module = importlib.import_module(room)
    return sorted(name for name in module.__all__ if is_kind(getattr(module, name)))


def api_page(room: str) -> str:
    """Return the page of a room: the first line of its docstring, then its classes and functions."""
    line = (inspect.getdoc(importlib.import_module(room)) or "").partition("\n")[0]
    lines = [ROOMS[room], "=" * len(ROOMS[room]), "", f"``{room}``: {line}", "", f".. currentmodule:: {room}", ""]
    for title, is_kind in (("Classes", inspect.isclass), ("Functions", inspect.isroutine)):
        if names := public_names(room, is_kind):
            lines += [f".. rubric:: {title}", "", *summaries(names, ":toctree: generated")]
    return "\n".join(lines)


def api_by_task() -> str:
    """Return one screen: the estimators by task, then the pages of the other rooms."""
    others = sorted(set(public_names("fenchel")) - {name for names in TASKS.values() for name in names})
    tasks = {**TASKS, **({"Other names": others} if others else {})}
    rows = [(title, ", ".join(f":py:obj:`~fenchel.{name}`" for name in names)) for title, names in tasks.items()]
    links = [f":doc:`{title} <api/{number:02d}_{room}>`" for number, (room, title) in enumerate(ROOMS.items())]
    rows += [("Parts of a model", ", ".join(links[1:N_PARTS])), ("Around a model", ", ".join(links[N_PARTS:]))]
    cells = [f"   * - {first}\n     - {second}" for first, second in rows]
    return "\n".join([".. list-table::", "   :widths: 25 75", "", *cells, ""])


def summaries(names: list[str], *options: str) -> list[str]:
    """Return the lines of a table of names with what each is in one line."""
    return [
        ".. autosummary::",
        "   :nosignatures:",
        *(f"   {option}" for option in options),
        "",
        *(f"   {name}" for name in names),
        "",
    ]


def write_empty_gallery() -> None:
    """Write the page of examples while there is none; else sphinx-gallery writes it."""
    if "sphinx_gallery.gen_gallery" not in extensions:
        folder = HERE / "auto_examples"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "index.rst").write_text("Examples\n========\n\nThere are none yet.\n", encoding="utf-8")


def write_thumbnails(app: Any) -> None:
    """Write readable thumbnails once the examples have run."""
    importlib.import_module("gallery_style").write_thumbnails(app)


def keep_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let a docstring write a norm as ``|r|``, which reStructuredText would take for a substitution."""
    text = NOT_PROSE_OR_BAR.sub(lambda match: "\\|" if match[0] == "|" else match[0], "\n".join(lines))
    lines[:] = text.split("\n")


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class inherits from elsewhere, such as scikit-learn's ``set_params``."""
    owner = getattr(obj, "__objclass__", None) or getattr(obj, "fget", None) or obj
    origin = getattr(owner, "__module__", None)
    return True if isinstance(origin, str) and origin.partition(".")[0] != "fenchel" else None


def hide_private_bases(app: Any, name: str, obj: Any, options: Any, bases: list[Any]) -> None:
    """Name the nearest public classes where a class derives from a private one."""
    while any(one.__name__.startswith("_") for one in bases):
        bases[:] = [up for one in bases for up in (one.__bases__ if one.__name__.startswith("_") else (one,))]


def resolve_citation(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Lead ``[Laforgue2020]_`` in a docstring to the entry of that key in ``references.bib``."""
    if node.get("refdomain") != "citation":
        return None
    for citation in env.get_domain("cite").citations:
        if citation.key == node["reftarget"]:
            page = citation.bibliography_key.docname
            return make_refnode(app.builder, node["refdoc"], page, citation.citation_id, contnode)
    return None


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return where the source of a name stands in the repository."""
    if domain != "py" or not info["module"]:
        return None
    value: Any = importlib.import_module(info["module"])
    for part in info["fullname"].split("."):
        value = getattr(value, part, None)
    value = inspect.unwrap(value.fget if isinstance(value, property) else value) if value is not None else None
    if not (inspect.isclass(value) or inspect.isroutine(value)) or not value.__module__.startswith("fenchel"):
        return None
    lines, first = inspect.getsourcelines(value)
    file = Path(inspect.getsourcefile(value) or "").relative_to(HERE.parent)
    return f"{PLACES['repository']}/blob/{PLACES['branch']}/{file}#L{first}-L{first + len(lines) - 1}"


class LinkNames(SphinxPostTransform):
    """Lead a public name that a page writes as code, ``OperatorKernelRegressor(...)``, to its page.

    A name in two rooms is left as it is, and so are the pages of the API, which link what they name already.
    """

    default_priority = 5
    NAME = re.compile(r"(?:fenchel\.)?((?:[a-z_]+\.)*[A-Za-z]\w+)(?:\(.*\))?$", flags=re.DOTALL)

    def run(self, **kwargs: Any) -> None:
        """Wrap each literal that is one public name in a link."""
        if self.env.docname.startswith("api/"):
            return
        pages = self.pages()
        for literal in list(self.document.findall(nodes.literal)):
            match = self.NAME.match(literal.astext())
            entry = pages.get(match[1].rpartition(".")[2]) if match else None
            inside = literal.parent
            while inside is not None and not isinstance(inside, nodes.reference | nodes.title):
                inside = inside.parent
            if entry is None or inside is not None:
                continue
            full, target = entry
            here, inner = self.env.docname, literal.deepcopy()
            literal.replace_self(make_refnode(self.app.builder, here, target.docname, target.node_id, inner, full))

    def pages(self) -> dict[str, tuple[str, Any]]:
        """Return the classes and functions with a page of their own, by a name that stands for one of them."""
        found: dict[str, list[tuple[str, Any]]] = {}
        kinds = {"class", "exception", "function"}
        for full, entry in self.env.get_domain("py").objects.items():
            if entry.objtype in kinds and full.startswith("fenchel.") and not entry.aliased:
                found.setdefault(full.rpartition(".")[2], []).append((full, entry))
        return {name: entries[0] for name, entries in found.items() if len(entries) == 1}


class ByKey(BaseLabelStyle):
    """Label each entry of the bibliography with its key."""

    def format_labels(self, sorted_entries: Any) -> Any:
        """Return the keys."""
        return [entry.key for entry in sorted_entries]


class ByKeyStyle(UnsrtStyle):
    """The plain style, sorted by author and labelled by key."""

    default_sorting_style = "author_year_title"
    default_label_style = ByKey


def setup(app: Any) -> None:
    """Write the pages that come from code, and join the pieces above to Sphinx."""
    register_plugin("pybtex.style.formatting", "by_key", ByKeyStyle)
    write_api_pages()
    write_empty_gallery()
    app.add_post_transform(LinkNames)
    app.connect("builder-inited", write_thumbnails, priority=900)  # after the gallery has run
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-bases", hide_private_bases)
    app.connect("autodoc-process-docstring", keep_bars, priority=400)  # before numpydoc
    app.connect("missing-reference", resolve_citation)
