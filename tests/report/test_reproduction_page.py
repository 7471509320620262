"""The page of `fenchel reproduce` in a browser."""

import pytest

from fenchel.papers.comparison import Comparison
from fenchel.papers.page import Finished, reproduction_page

NAMES = [f"experiment-{k}" for k in range(20)]  # more links than fit on a line
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="1400" height="300"><rect width="1400" height="300"/></svg>'
SIZES = [(1280, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    rows = [
        Comparison("a name of some words, with a number", 1.0, 1.001, 0.01, "as_one_long_word_" * 20),
        Comparison("a miss", 1.0, 2.0, 0.01, "why it misses, " * 30),
        Comparison("a tie", 1.0, 1.23456, 0.0, "", True, 0.98765, None, "What was chosen after a look. " * 9),
        Comparison("for reference", 1.0, 0.5, 0.0, "", True, trivial=0.75),
    ]
    about = "What it is.\n\nHow it is done: \n" + "words " * 200
    done = [Finished(name, about, rows, SVG, {"part": [1.0]}, 3.0) for name in NAMES]
    file = tmp_path_factory.mktemp("page") / "reproduce.html"
    file.write_text(reproduction_page(done, {"machine": "x86_64", "version": "1" * 80}), encoding="utf-8")
    return file


@pytest.mark.parametrize("opened", SIZES, indirect=True)
def test_it_fits_the_window(opened):
    width = opened.viewport_size["width"]
    opened.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    edges = opened.eval_on_selector_all(
        "nav a, h2, p, img, td", "found => found.map(one => one.getBoundingClientRect().right)"
    )
    assert len(edges) > 16 * len(NAMES)
    assert max(edges) <= width


def test_links_lead_to_sections_and_data_come_along(opened):
    opened.click(f"nav a:text-is('{NAMES[-1]}')")
    box = opened.locator(f"#{NAMES[-1]}").bounding_box()
    assert 0 <= box["y"] < opened.viewport_size["height"]
    with opened.expect_download() as saved:
        opened.click(f"#{NAMES[3]} figcaption a:has-text('data')")
    assert saved.value.suggested_filename == f"{NAMES[3]}.json"
    assert opened.locator(".MISS").count() == len(NAMES)
