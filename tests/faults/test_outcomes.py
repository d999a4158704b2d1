"""Effects of rules on answers, wanted and forbidden, at clients of the wrapper and the sidecar."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.storage.ledger_totals import rows

from tests.builders import document, tool_result
from tests.faults import changing
from tests.faults.asking import Client, Start, each_way, logged, on_stdio, over_http
from tests.faults.processes import until
from tests.faults.routes import Local
from tests.faults.scale import scaled
from tests.faults.sidecar import call, get

ABS = "version: 1\nrules: [{name: abs, tools: get, response: [{jmespath: 'abs(a)'}]}]\n"
FITS, FAILS = document({"a": -1}), document({"a": "text"})
OUT = "rule 'abs' is out of service after 5 failures in a row"


def shaped(client: Client, answer: dict[str, Any]) -> Any:
    """Have the server answer so; return what comes of it."""
    raw = call(2, "get", arguments={"answer": {"result": answer}})
    return json.loads(client.ask(raw))["result"]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(ABS)
    return file


@pytest.mark.fault(34, "stdio")
def test_a_rule_that_fails_again_and_again_is_out_of_service_until_it_is_loaded_again(
    rules: Path,
) -> None:
    with on_stdio("--rules", str(rules)) as client:
        assert shaped(client, FITS) == document(1)
        for _ in range(7):
            assert shaped(client, FAILS) == FAILS
        assert shaped(client, FITS) == FITS
        assert logged(client, OUT) == 1
        assert logged(client, "abs: get: failed at jmespath") == 5
        rules.write_text(f"{ABS}# as before\n")
        assert shaped(client, FITS) == document(1)


@pytest.mark.fault(34, "http")
def test_all_sessions_of_a_sidecar_share_the_state_of_a_rule(rules: Path) -> None:
    with over_http("--rules", str(rules)) as client:
        other = Local(client.sidecar)
        for at in range(5):
            shaped(other if at % 2 else client, FAILS)
        assert shaped(client, FITS) == shaped(other, FITS) == FITS
        assert logged(client, OUT) == 1
        figures = client.sidecar.ask(get("/metrics")).body
        counted = [line for line in figures.splitlines() if b'kind="out of service"' in line]
        assert [line.rpartition(b" ")[2] for line in counted] == [b"1.0"]


CASES = {
    "larger": ("allow_growth: false, response: [{project: [a, b]}]", document({"a": 1})),
    "far larger": (
        "response: [{project: [a, {b: {jmespath: '[@, @] | [@, @] | [@, @]'}}]}]",
        document({"a": "x" * 400_000}),
    ),
    "emptied": ("response: [{drop: '*'}]", document({"a": 1})),
    "another shape": ("response: [{keep: [gone]}]", document({"a": 1}, structured=True)),
    "prose": ("response: [{keep: [gone]}]", tool_result("Nothing was found.")),
    "no text": ("response: [{drop: a}]", {"content": [{"type": "link"}]}),
    "an error": ("response: [{drop: a}]", {**document({"a": 1}), "isError": True}),
}


@each_way(35, 38)
def test_a_rule_that_does_not_fit_leaves_the_answer_as_it_came(
    start: Start, tmp_path: Path
) -> None:
    file = tmp_path / "cases.yaml"
    rules = [f"- {{tools: {name!r}, {keys}}}" for name, (keys, _) in CASES.items()]
    file.write_text("\n".join(["version: 1", "rules:", *rules]))
    ledger = tmp_path / "ledger.sqlite3"
    with start("--rules", str(file), "--ledger", str(ledger)) as client:
        for name, (_, answer) in CASES.items():
            raw = call(2, name, arguments={"answer": {"result": answer}})
            assert client.ask(raw) == changing.line(json.loads(raw)), name
        assert logged(client, "emptied: left as it came: everything was removed by rule 'emptied'")
        assert logged(client, "larger: left as it came: the model would see 16 bytes in place of 7")
        assert logged(client, "far larger: failed at project: it gives more than ")
        until(lambda: ledger.exists() and len(rows(str(ledger))) == len(CASES))
    words = {"far larger": "failed", "an error": "error"}
    with closing(sqlite3.connect(ledger)) as db:
        counted = dict(db.execute("SELECT tool, outcome FROM calls").fetchall())
    assert counted == {name: words.get(name, "untouched") for name in CASES}


LIST = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'


@pytest.mark.fault(50, "stdio")
def test_an_input_schema_that_a_client_would_not_take_is_logged_and_listed(rules: Path) -> None:
    own = f"{{order: {{upstream: false, description: {'x' * 17_000}}}}}"
    rules.write_text(f"version: 1\nrules: [{{tools: note, arguments: {own}}}]\n")
    with on_stdio("--rules", str(rules)) as client:
        tools = json.loads(client.ask(LIST))["result"]["tools"]
        sizes = {tool["name"]: len(json.dumps(tool["inputSchema"])) for tool in tools}
        assert [name for name, size in sizes.items() if size > 16_384] == ["note"]
        assert logged(client, "claude.ai drops tools above 16384") == 1
        assert logged(client, "note: its inputSchema is 17") == 1


BUDGET = 8000
CUT = """\
version: 1
rules: [{tools: huge, response: [{keep: [rows.id, source]}, {paginate: {at: rows, limit: 3}}]}]
"""
BOUNDED = f"version: 1\nrules: [{{tools: '*', max_bytes: {BUDGET}}}]\n"


# What other proxies hide, spoil, cut or hang on.
@each_way(48)
@pytest.mark.parametrize("text", [BOUNDED, CUT][: scaled(1, 2)])
def test_20_mb_in_two_copies_are_shortened_in_both(start: Start, text: str, rules: Path) -> None:
    rules.write_text(text)
    with start("--rules", str(rules)) as client:
        raw = client.ask(call(2, "huge", arguments={"rows": 29_000}))
        assert len(raw) < 3 * BUDGET
        result = json.loads(raw)["result"]
        first = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == first
        assert 0 < len(first["rows"]) < 300
        assert first["source"] == "here"
        # What follows is not held up by it.
        next = client.ask(call(2, "note", arguments={"says": "next"}))
        assert next.endswith(b'"text":"next"}]}}')
