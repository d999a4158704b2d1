"""The page on scripts: its commands run as they are written, and what they write is as it says."""

import json
from pathlib import Path

import pytest
from mcp_abridge.ruleset.selection import load

from tests.pages.commands import ran

pytestmark = pytest.mark.usefixtures("servers")


@pytest.mark.long
def test_the_commands_of_the_page_wrap_for_scripts_and_learn_types(tmp_path: Path) -> None:
    completed = ran("examples/scripts.md", tmp_path)
    assert completed.returncode == 0, completed.stdout[-2000:] + completed.stderr
    servers = json.loads((tmp_path / "home" / ".cursor" / "mcp.json").read_text())["mcpServers"]
    assert "--scripts on -- python server.py" in " ".join(servers["docs"]["args"])
    [file] = load([str(tmp_path / "types.yaml")])
    assert [rule.name for rule in file.rules] == ["get_document", "list_documents"]
    assert "passed" in completed.stdout
