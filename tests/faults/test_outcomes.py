"""What a rule does to an answer and must not: seen by clients of the wrapper and of the sidecar."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faults import echo
from tests.faults.asking import Posting, Way, asks, on_stdio, over_http, result
from tests.faults.scale import further
from tests.faults.sidecar import compact
from tests.given import document, said

STDIO = pytest.mark.fault(34, "stdio")
HTTP = pytest.mark.fault(34, "http")
ABS = "version: 1\nrules: [{name: abs, tools: get, response: [{jmespath: 'abs(a)'}]}]\n"
FITS, FAILS = document({"a": -1}), document({"a": "text"})
OUT = "rule 'abs' is out of service after 5 failures in a row"


def get(answer: dict[str, Any]) -> dict[str, Any]:
    return asks("get", {"result": answer})


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(ABS)
    return file


@pytest.mark.parametrize(
    "way", [pytest.param(on_stdio, marks=STDIO), further(over_http, marks=[HTTP])]
)
def test_a_rule_that_fails_again_and_again_is_out_of_service_until_it_is_loaded_again(
    way: Way, rules: Path
) -> None:
    with way("--rules", str(rules)) as client:
        assert result(client, get(FITS)) == document(1)
        for _ in range(7):
            assert result(client, get(FAILS)) == FAILS
        assert result(client, get(FITS)) == FITS
        assert client.logged(OUT) == 1
        assert client.logged("abs: get: failed at jmespath") == 5
        rules.write_text(f"{ABS}# as before\n")
        assert result(client, get(FITS)) == document(1)


@HTTP
def test_all_sessions_of_a_sidecar_share_what_they_know_of_a_rule(rules: Path) -> None:
    with over_http("--rules", str(rules)) as client:
        other = Posting(client.sidecar)
        for at in range(5):
            result(other if at % 2 else client, get(FAILS))
        assert result(client, get(FITS)) == result(other, get(FITS)) == FITS
        assert client.logged(OUT) == 1
        figures = client.sidecar.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").body
        counted = [line for line in figures.splitlines() if b'kind="out of service"' in line]
        assert [line.rpartition(b" ")[2] for line in counted] == [b"1.0"]


CASES = {
    "larger": ("allow_growth: false, response: [{project: [a, b]}]", document({"a": 1})),
    "far larger": (
        "response: [{project: [a, {b: {jmespath: '[@, @] | [@, @] | [@, @]'}}]}]",
        document({"a": "x" * 400_000}),
    ),
    "emptied": ("response: [{drop: '*'}]", document({"a": 1})),
    "emptied rows": ("response: [{drop: [id, text]}]", document([{"id": 1}, {"id": 2}])),
    "another shape": ("response: [{keep: [gone]}]", document({"a": 1}, structured=True)),
    "prose": ("response: [{keep: [gone]}]", said("Nothing was found.")),
    "broken JSON": ("response: [{drop: a}]", said('{"a": 1')),
    "JSON among texts": ("document: text, response: [{drop: a}]", said('{"a":1}', "and more")),
    "several texts": ("response: [{clip: {max_chars: 2}}]", said("one", "two")),
    "no text": ("response: [{drop: a}]", {"content": [{"type": "link"}]}),
    "an error": ("response: [{drop: a}]", {**document({"a": 1}), "isError": True}),
}
WAYS = [
    pytest.param(way, marks=[pytest.mark.fault(row, name) for row in (35, 38)])
    for way, name in ((on_stdio, "stdio"), (over_http, "http"))
]


@pytest.mark.parametrize("way", WAYS)
def test_what_a_rule_does_not_fit_or_may_not_do_leaves_the_answer_as_it_came(
    way: Way, tmp_path: Path
) -> None:
    file = tmp_path / "cases.yaml"
    rules = [f"- {{tools: {name!r}, {keys}}}" for name, (keys, _) in CASES.items()]
    file.write_text("\n".join(["version: 1", "rules:", *rules]))
    ledger = tmp_path / "ledger.sqlite3"
    with way("--rules", str(file), "--ledger", str(ledger)) as client:
        for name, (_, answer) in CASES.items():
            message = asks(name, {"result": answer})
            assert client.ask(compact(message)) == echo.line(message), name
        assert client.logged("emptied: left as it came: everything was removed by rule 'emptied'")
        assert client.logged("larger: left as it came: the model would see 16 bytes in place of 7")
        assert client.logged("far larger: failed at project: it gives more than ")
    words = {"far larger": "failed", "an error": "error"}
    with closing(sqlite3.connect(ledger)) as db:
        counted = dict(db.execute("SELECT tool, outcome FROM calls").fetchall())
    assert counted == {name: words.get(name, "untouched") for name in CASES}


CHANGING = ("--", sys.executable, str(Path(__file__).with_name("changing.py")))
LIST = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(on_stdio, marks=pytest.mark.fault(50, "stdio")),
        further(over_http, marks=[pytest.mark.fault(50, "http")]),
    ],
)
def test_an_input_schema_that_a_client_would_not_take_is_logged_and_listed(
    way: Way, rules: Path
) -> None:
    own = f"{{order: {{upstream: false, description: {'x' * 17_000}}}}}"
    rules.write_text(f"version: 1\nrules: [{{tools: note, arguments: {own}}}]\n")
    with way("--rules", str(rules), server=CHANGING) as client:
        tools = json.loads(client.ask(LIST))["result"]["tools"]
        sizes = {tool["name"]: len(json.dumps(tool["inputSchema"])) for tool in tools}
        assert [name for name, size in sizes.items() if size > 16_384] == ["note"]
        assert client.logged("claude.ai drops tools above 16384") == 1
        assert client.logged("note: its inputSchema is 17") == 1
