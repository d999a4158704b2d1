"""`python -m tests.answers.picture`: without it, the picture in README would be drawn by hand.

It writes the page of `explain --html` for one answer of `make answers`, and takes a picture of it:
what the server sent, and what the model reads.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp_abridge import cli
from mcp_abridge.replay.differences import to_json
from mcp_abridge.replay.exchanges import make
from msgspec import Raw

from tests.answers.server import RESULTS
from tests.servers import install

FILE = Path(__file__).resolve().parents[2] / "examples" / "page.png"
TOOL = "list_issues"


def write_page(folder: Path) -> Path:
    """Write the page of the answer into a folder, and return its file."""
    result: Any = RESULTS[TOOL]
    exchange = make(TOOL, {"state": "all"}, Raw(to_json(result() if callable(result) else result)))
    (folder / f"{TOOL}.json").write_bytes(exchange.saved)
    before = os.getcwd()
    os.chdir(folder)  # the page names the file
    try:
        assert cli.main(["explain", f"{TOOL}.json", "--html", "page.html"]) == 0
    finally:
        os.chdir(before)
    return folder / "page.html"


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("chromium is not installed (on Debian and Ubuntu: apt install chromium)")
        return 1
    install.require()
    with tempfile.TemporaryDirectory() as folder:
        page = write_page(Path(folder))
        script = Path(__file__).with_suffix(".mjs")
        packages = install.CACHE.resolve() / "browser"
        subprocess.run([install.node(), script, packages, browser, page, FILE], check=True)
    print(f"wrote {FILE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
