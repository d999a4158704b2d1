"""Recorded sessions as files: in order, with the server's tools, and what is wrong by its place."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.replay.exchanges import ExchangeError
from mcp_abridge.replay.recordings import RecordedSession, sessions

from tests.builders import answer, call, line, tool_result

ABOUT = {"server": "shelf", "client": "codex", "started": "2026-01-02T03:04:05Z"}
TOOLS = answer({"tools": [{"name": "list", "inputSchema": {}}, {"name": "get"}]})


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=1))


def exchange(tool: str, text: str) -> dict[str, Any]:
    return {"request": json.loads(call(tool)), "response": json.loads(answer(tool_result(text)))}


def texts(session: RecordedSession) -> list[str]:
    responses = (json.loads(exchange.response) for _, exchange in session.exchanges)
    return [response["result"]["content"][0]["text"] for response in responses]


def test_the_sessions_of_a_folder_are_read_in_the_order_of_their_calls(tmp_path: Path) -> None:
    folder = tmp_path / "shelf-20260102T030405-7"
    write(folder / "session.json", ABOUT)
    request = json.loads(line(id=1, method="tools/list"))
    write(folder / "0000-tools.json", {"request": request, "response": json.loads(TOOLS)})
    write(folder / "9999-list.json", exchange("list", "first"))
    write(folder / "10000-get.json", exchange("get", "second"))
    (folder / "10001-get.json.new").write_text("{")  # cut off while it was written
    write(tmp_path / "shelf-20260102T030406-8" / "0001-get.json", exchange("get", "third"))

    first, second = sessions([str(tmp_path)])

    assert (first.server, first.client, list(first.tools)) == ("shelf", "codex", ["list", "get"])
    assert [path for path, _ in first.exchanges] == [
        str(folder / "9999-list.json"),
        str(folder / "10000-get.json"),
    ]
    assert (texts(first), texts(second)) == (["first", "second"], ["third"])
    assert (second.server, second.client, second.tools) == (None, None, {})


def test_a_file_is_a_session_and_a_folder_is_one(tmp_path: Path) -> None:
    write(tmp_path / "b.json", exchange("get", "b"))
    write(tmp_path / "a.json", exchange("get", "a"))

    file, folder = sessions([f"{tmp_path}/b.json", str(tmp_path)])

    assert (texts(file), texts(folder)) == (["b"], ["a", "b"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("session.json", "[]"),
        ("0000-tools.json", '{"request": {}, "response": {"error": {}}}'),
        ("0001-list.json", '{"request": {"method": "ping"}, "response": {}}'),
    ],
)
def test_a_file_that_is_no_recording_is_named(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)

    with pytest.raises(ExchangeError, match=re.escape(f"{tmp_path / name}: ")):
        list(sessions([str(tmp_path)]))
