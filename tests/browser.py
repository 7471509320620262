"""The browser in which pages are tested, and what is said where there is none."""

import shutil

NO_BROWSER = "browser tests did not run"
OPTIONS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync")  # fmt: skip


def program():
    """Return the path of a Chromium, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def summarise(terminal):
    """Write how many tests were skipped for want of a browser."""
    count = sum(NO_BROWSER in str(report.longrepr) for report in terminal.stats.get("skipped", []))
    if count:
        terminal.section(NO_BROWSER.upper(), sep="!", red=True, bold=True)
        terminal.line(f"{count} tests of pages need Chromium. Install it (on Debian and Ubuntu: the package chromium).")
