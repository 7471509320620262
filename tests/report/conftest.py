"""A browser for the tests of pages."""

import pytest

from tests.browser import NO_BROWSER, OPTIONS, program


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason=f"{NO_BROWSER}: playwright is not installed")
    path = program()
    if path is None:
        pytest.skip(f"{NO_BROWSER}: no Chromium on this machine")
    with playwright.sync_playwright() as run:
        browser = run.chromium.launch(executable_path=path, args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, page_file, request):
    """The page in a fresh window; afterwards: no error was printed, and nothing else was asked for."""
    width, scheme = getattr(request, "param", (1280, "light"))
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True)
    page = context.new_page()
    printed, asked = [], []
    page.on("console", lambda message: printed.append(message.text))
    page.on("pageerror", lambda error: printed.append(str(error)))
    page.on("request", lambda one: asked.append(one.url))
    page.goto(page_file.as_uri())
    yield page
    context.close()
    assert printed == []
    assert [url for url in asked if not url.startswith("data:")] == [page_file.as_uri()]
