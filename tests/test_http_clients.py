"""The TypeScript clients get through `serve` what they get from the server itself, in both eras.

Each client has one conversation with the server and one through the proxy, whose steps are in
servers/clients/converse.mjs. What no rule names must be the same in both.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import msgspec
import orjson
import pytest

from tests.faults.processes import until
from tests.faults.scale import scaled
from tests.python_client import Mode
from tests.servers import CLIENTS, node
from tests.serving import FRONTS, upstream
from tests.wrapped import ROOT, notice, texts

pytestmark = pytest.mark.usefixtures("servers")

SERVER = str(ROOT / "tests" / "fixtures" / "sdk_server.py")
RULES = """
version: 1
rules:
  - tools: rows
    response: [{keep: [rows.id, rows.name, source]}, {paginate: {at: rows, limit: 5}}]
  - tools: report
    response: [{truncate: {max_length: 1000}}]
"""
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("rows", "rows", {}),
    ("next", "rows", {"offset": 5, "limit": 35}),
    ("echo", "echo", {"text": 'a\u2028b — ünïcode \\ "1.0"'}),
    ("fail", "fail", {}),
    ("unknown", "nowhere", {}),
    ("user", "ask_user", {}),
    ("model", "ask_model", {}),
    ("roots", "ask_roots", {}),
    ("report", "report", {}),
]
SHAPED = {"rows", "next", "report"}


class Client(NamedTuple):
    """A client: its SDK, how it negotiates, the version that comes of it, and its way."""

    sdk: str
    mode: Mode
    version: str
    front: str


CLIENTS_BY_WAY = [
    Client("v2", "auto", "2026-07-28", "http to a command"),
    Client("v1", "legacy", "2025-11-25", "http"),
    Client("v2", "legacy", "2025-11-25", "http to a command"),
    Client("v2", "auto", "2026-07-28", "http"),
]


class Record(msgspec.Struct):
    """The side of a client: outcomes and progress by step, requests and log messages."""

    version: str
    tools: list[dict[str, Any]]
    results: dict[str, dict[str, Any]]
    progress: dict[str, list[float]]
    logged: list[Any]
    questions: list[tuple[str, str | None]]


def converse(client: Client, url: str) -> Record:
    spec = {"sdk": client.sdk, "url": url, "mode": client.mode, "calls": CALLS}
    completed = subprocess.run(
        [node(), str(CLIENTS / "converse.mjs"), json.dumps(spec)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr.decode()
    return msgspec.json.decode(completed.stdout, type=Record)


# One conversation, or both SDKs, both eras and both ways.
@pytest.mark.parametrize("client", CLIENTS_BY_WAY[: scaled(1, 4)], ids=" ".join)
def test_a_conversation_through_the_proxy_is_that_with_the_server_but_for_the_rules(
    client: Client, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    log, other_log = tmp_path / "log", tmp_path / "other log"
    server = [sys.executable, "-W", "ignore", SERVER]
    with upstream([*server, str(other_log)], tmp_path / "direct.log") as origin:
        direct = converse(client, f"{origin}/mcp")
    rules, options = [tmp_path / "rules.yaml"], ("--budget", "off", "--ledger", "off")
    with FRONTS[client.front]([*server, str(log)], rules, tmp_path, *options) as front:
        assert front.sidecar is not None
        through = converse(client, front.sidecar.url())
        until(lambda: "cancelled" in log.read_text())
    assert log.read_text().split() == ["rows", "cancelled"]  # pages come from one call
    assert through.version == direct.version == client.version

    listed = {tool["name"]: tool for tool in through.tools}
    assert list(listed) == [tool["name"] for tool in direct.tools]
    assert [tool["name"] for tool in direct.tools if tool != listed[tool["name"]]] == [
        "rows",
        "report",
    ]
    assert {"limit", "offset"} <= listed["rows"]["inputSchema"]["properties"].keys()

    assert (through.progress, through.logged) == (direct.progress, direct.logged)
    assert (through.progress["report"], through.progress["linger"]) == ([1, 2], [1])
    assert through.logged == [{"step": "begun"}]
    assert through.questions == [
        ("elicitation/create", "What is your name?"),
        ("sampling/createMessage", "What is the capital of France?"),
        ("roots/list", None),
    ]
    assert through.results.keys() == direct.results.keys()
    for step in through.results.keys() - SHAPED:
        assert through.results[step] == direct.results[step], step
    results = {step: outcome.get("ok", {}) for step, outcome in through.results.items()}
    assert texts(results["user"]) == ["accept: Zoë"]
    assert texts(results["after"]) == ["still here"]

    # If a result does not fit the outputSchema that was listed, these clients refuse it.
    pages = [results[step]["structuredContent"] for step in ("rows", "next")]
    assert [orjson.loads(texts(results[step])[0]) for step in ("rows", "next")] == pages
    assert [len(page["rows"]) for page in pages] == [5, 35]
    assert [row for page in pages for row in page["rows"]] == [
        {"id": row["id"], "name": row["name"]}
        for row in direct.results["rows"]["ok"]["structuredContent"]["rows"]
    ]
    for page in pages:
        jsonschema.validate(page, listed["rows"]["outputSchema"])
    [text] = texts(direct.results["report"]["ok"])
    window, message = texts(results["report"])
    assert window == text[:1000]
    assert notice(message)["totalLength"] == len(text)
