"""Shows how servers are installed, and that each starts, and that each TypeScript client works."""

import sys
from pathlib import Path
from typing import Literal

import pytest

from tests.conformance import install as conformance
from tests.servers import Call, install, typescript

pytestmark = pytest.mark.usefixtures("servers")

# Advertises a tool whose structuredContent is a number where its schema wants a text.
MISMATCH = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    answers = {
        "initialize": lambda: {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                               "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": lambda: {"tools": [
            {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]},
        "tools/call": lambda: {"content": [], "structuredContent": {"x": 1}},
    }
    if "id" in message:
        result = answers[message["method"]]()
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_refuses_what_breaks_the_output_schema(
    sdk: Literal["v1", "v2"], tmp_path: Path
) -> None:
    script = tmp_path / "server.py"
    script.write_text(MISMATCH)
    command = [sys.executable, str(script)]
    refused = typescript(sdk, command, Call("t")).results[0]
    assert refused["ok"] is False
    assert refused["error"]["code"] == -32602
    assert typescript(sdk, command, Call("t"), list_tools=False).tools is None


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_that_cannot_connect_says_why(sdk: Literal["v1", "v2"]) -> None:
    with pytest.raises(RuntimeError, match="ENOENT"):
        typescript(sdk, ["no-such-server"])


def test_what_is_not_installed_is_named_and_not_downloaded_by_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for installer in (install, conformance):
        monkeypatch.setattr(installer, "CACHE", tmp_path / "nothing")
        with pytest.raises(install.NotInstalled, match=r"nothing/.* does not hold .*make servers"):
            installer.require()
    assert not (tmp_path / "nothing").exists()
