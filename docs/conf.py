"""Sphinx settings. The API pages are written from ``__all__``, so a new class appears by itself."""

import importlib
import inspect
import re
import shutil
from pathlib import Path
from typing import Any

from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style as UnsrtStyle
from pybtex.style.labels import BaseLabelStyle
from sphinx.util.nodes import make_refnode

import fenchel

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
ROOMS = (
    "fenchel",
    "fenchel.losses",
    "fenchel.kernels",
    "fenchel.approximations",
    "fenchel.representations",
    "fenchel.operators",
    "fenchel.problem",
    "fenchel.solvers",
    "fenchel.decoders",
    "fenchel.task_losses",
    "fenchel.datasets",
    "fenchel.metrics",
    "fenchel.estimators.tables",
    "fenchel.report.plots",
    "fenchel.report.summary",
    "fenchel.testing",
    "fenchel.exceptions",
)

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
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "_templates", "sg_execution_times.rst", "**/sg_execution_times.rst"]
templates_path = ["_templates"]
myst_heading_anchors = 3
default_role = "code"

html_theme = "pydata_sphinx_theme"
html_title = f"fenchel {release}"
html_show_sourcelink = False
html_theme_options = {"show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}

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
        "filename_pattern": r"plot_",
        "abort_on_example_error": True,
        "download_all_examples": False,
        "show_memory": False,
        "show_signature": False,
    }


def write_api_pages() -> None:
    """Write one page for each room; autosummary writes one for each name in it."""
    folder = HERE / "api"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number, room in enumerate(ROOMS):
        (folder / f"{number:02d}_{room}.rst").write_text(api_page(room), encoding="utf-8")


def api_page(room: str) -> str:
    """Return the page of a room: the first line of its docstring, then its classes and functions."""
    module = importlib.import_module(room)
    parts = {name: getattr(module, name) for name in module.__all__}
    lines = [f"``{room}``", "=" * (len(room) + 4), "", (inspect.getdoc(module) or "").partition("\n")[0], ""]
    lines += [f".. currentmodule:: {room}", ""]
    for title, is_kind in (("Classes", inspect.isclass), ("Functions", inspect.isroutine)):
        names = sorted(name for name, part in parts.items() if is_kind(part))
        if names:
            lines += [f".. rubric:: {title}", "", ".. autosummary::", "   :toctree: generated", ""]
            lines += [f"   {name}" for name in names] + [""]
    return "\n".join(lines)


def write_empty_gallery() -> None:
    """Write the page of examples while there is none; else sphinx-gallery writes it."""
    if "sphinx_gallery.gen_gallery" not in extensions:
        folder = HERE / "auto_examples"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "index.rst").write_text("Examples\n========\n\nThere are none yet.\n", encoding="utf-8")


def keep_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let a docstring write a norm as ``|r|``, which reStructuredText would take for a substitution."""
    text = NOT_PROSE_OR_BAR.sub(lambda match: "\\|" if match[0] == "|" else match[0], "\n".join(lines))
    lines[:] = text.split("\n")


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class inherits from elsewhere, such as scikit-learn's ``set_params``."""
    owner = getattr(obj, "__objclass__", None) or getattr(obj, "fget", None) or obj
    origin = getattr(owner, "__module__", None)
    return True if isinstance(origin, str) and origin.partition(".")[0] != "fenchel" else None


def resolve_citation(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Lead ``[Laforgue2020]_`` in a docstring to the entry of that key in ``references.bib``."""
    if node.get("refdomain") != "citation":
        return None
    for citation in env.get_domain("cite").citations:
        if citation.key == node["reftarget"]:
            page = citation.bibliography_key.docname
            return make_refnode(app.builder, node["refdoc"], page, citation.citation_id, contnode)
    return None


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
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", keep_bars, priority=400)  # before numpydoc
    app.connect("missing-reference", resolve_citation)
