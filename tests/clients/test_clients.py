"""The official SDKs in the place of the suite's clients, and the page that the suite writes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients import page
from tests.clients.cases import Bench, cases
from tests.clients.install import version
from tests.clients.page import PAGE, files
from tests.clients.programs import CLIENTS, SDKS, Client
from tests.faults.scale import scaled
from tests.wrapped import ROOT


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("client", SDKS[-scaled(1, 3) :], ids=lambda client: client.name)
def test_no_result_is_lost_or_changed_on_its_way_to_a_model(client: Client, tmp_path: Path) -> None:
    bench = Bench(client, tmp_path)
    checks = [check for case in cases(client) for check in case(bench)]
    assert len(checks) == 28
    assert [check for check in checks if check.problem] == []


OFFLINE = """
import sys
from pathlib import Path
from tests.clients import __main__ as suite, install, page
install.CACHE, page.PAGE = Path("cache").resolve(), Path("page.md")
sys.exit(suite.main())
"""


@pytest.mark.long
@pytest.mark.usefixtures("servers")
def test_a_client_that_cannot_be_installed_keeps_its_row_of_the_page(tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    shutil.copyfile(PAGE, copy)
    env = {"npm_config_registry": "http://127.0.0.1:9", "npm_config_fetch_retries": "0"}
    run = subprocess.run(
        [sys.executable, "-c", OFFLINE, "--client", "mcp-remote"],
        cwd=tmp_path,
        env={**os.environ, **env, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=False,
    )
    assert run.returncode == 1
    assert b"mcp-remote: not installed, so its row stays as it was: exit code 1 from" in run.stdout
    assert copy.read_text() == PAGE.read_text()


def test_the_page_has_a_row_for_each_client_at_its_pinned_version() -> None:
    rows = [line.split(" | ")[:2] for line in PAGE.read_text().splitlines()]
    missing = [
        client.name
        for client in CLIENTS
        if [f"| {client.name}", version(client.program or client.name)] not in rows
    ]
    assert missing == []


def test_the_page_has_the_files_that_wrap_knows() -> None:
    assert files() in PAGE.read_text()


def test_the_files_are_written_without_a_run_and_the_rows_of_runs_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text().replace("| codebuddy | ", "| of old | "))
    monkeypatch.setattr(page, "PAGE", copy)
    page.write([])
    assert copy.read_text() == PAGE.read_text()
