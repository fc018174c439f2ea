"""Chromium, for tests of the web page."""

import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDED = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; Debian: apt-get install chromium")
"""Of modules that drive it."""
ARGUMENTS = ["--no-sandbox"]
"""Containers have no user namespaces for its sandbox."""
AXE = "axe-core@4.14.1"
WIDTHS = (360, 768, 1280)
"""Of a telephone, a tablet and a window."""


@contextmanager
def watched_page(browser: Any, **options: Any) -> Iterator[Any]:
    """A page that requests nothing of another host, violates no policy, raises nothing and sets no cookie."""
    with browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options) as context:
        opened = context.new_page()
        opened.set_default_timeout(15_000)
        hosts, complaints = set[str](), list[str]()
        opened.on(
            "request", lambda request: hosts.add(re.sub(r":\d+/.*|/.*", "", request.url.partition("//")[2]))
        )
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on("console", lambda message: complaints.append(message.text))
        yield opened
        assert hosts <= {"127.0.0.1"}
        # Chromium reports each status of an error, which is what some tests are about, and an autofocus that is not
        # needed because the test has focused an element.
        foreseen = ("Failed to load resource", "Autofocus processing was blocked")
        unforeseen = [each for each in complaints if not each.startswith(foreseen)]
        assert not unforeseen, unforeseen
        assert context.cookies() == []


def axe_script(directory: Path) -> str:
    """The script of axe-core, of npm; skips the test where it cannot be fetched."""
    if shutil.which("npm") is None:
        pytest.skip("no npm to fetch axe-core with")
    fetched = subprocess.run(["npm", "pack", AXE], cwd=directory, capture_output=True, timeout=60, text=True)
    if fetched.returncode:
        pytest.skip(f"axe-core cannot be fetched: {fetched.stderr[-200:]}")
    with tarfile.open(next(directory.glob("*.tgz"))) as packed:
        script = packed.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


def violations(page: Any, axe: str) -> list[str]:
    """What axe-core finds in a page."""
    page.evaluate(axe)
    found = page.evaluate("axe.run()")["violations"]
    return [f"{each['impact']}: {each['help']}: {each['nodes'][0]['html']}" for each in found]
