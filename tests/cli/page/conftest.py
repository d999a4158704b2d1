"""A browser for the tests of pages."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers import install

Click = Callable[..., dict[str, Any]]

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture
def click() -> Click:
    """Return a function that runs a script with a browser, and returns what it has view."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        pytest.skip("chromium is not installed (on Debian and Ubuntu: apt install chromium)")
    install.require()

    def click(script: str, *words: object) -> dict[str, Any]:
        file, packages = Path(__file__).with_name(script), install.CACHE.resolve() / "browser"
        completed = subprocess.run(
            [install.node(), file, packages, browser, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert completed.returncode == 0, completed.stderr
        view: dict[str, Any] = json.loads(completed.stdout)
        return view

    return click
