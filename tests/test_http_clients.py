"""The official clients get through `serve` what they get from the server itself, in both eras.

Each client has one conversation directly and one by each of its ways, see tests/conversation.py;
what is the same as in the direct one is compared with it, the rest is said here.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from tests.conformance.suite import free_port, serving
from tests.conversation import Conversation, Speaker, converse
from tests.witness import Witness
from tests.wrapped import notice, texts

pytestmark = pytest.mark.usefixtures("servers")

ROOT = Path(__file__).resolve().parents[1]
SERVER = str(ROOT / "tests" / "fixtures" / "sdk_server.py")
RULES = """
version: 1
rules:
  - tools: rows
    response: [{keep: [rows.id, rows.name, source]}, {paginate: {at: rows, limit: 5}}]
  - tools: report
    response: [{truncate: {max_length: 1000}}]
"""
SPEAKERS = {
    "python legacy": Speaker("python", "legacy", "2025-11-25"),
    "python auto": Speaker("python", "auto", "2026-07-28"),
    "python 2026-07-28": Speaker("python", "2026-07-28", "2026-07-28"),
    "typescript v1": Speaker("v1", "legacy", "2025-11-25"),
    "typescript v2 legacy": Speaker("v2", "legacy", "2025-11-25"),
    "typescript v2 auto": Speaker("v2", "auto", "2026-07-28"),
}
EVERY = tuple(SPEAKERS)
HANDSHAKE = tuple(name for name, speaker in SPEAKERS.items() if speaker.handshake)
STATELESS = tuple(name for name in EVERY if name not in HANDSHAKE)
WAYS = ("url, no rules", "url, reshaping", "command, no rules", "command, reshaping")

Talk = Callable[[str, str], Conversation]


@pytest.fixture(scope="module")
def witness() -> Iterator[Witness]:
    with Witness() as current:
        yield current


@pytest.fixture(scope="module")
def talk(witness: Witness, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """Return a function for a client's conversation by a way; each runs once, at its first use."""
    folder = tmp_path_factory.mktemp("ways")
    (folder / "rules.yaml").write_text(RULES)
    server = [sys.executable, "-W", "ignore", SERVER, str(witness.port)]
    env = {name: text for name, text in os.environ.items() if not name.startswith("MCP_ABRIDGE_")}
    ports: dict[str, int] = {}
    conversations: dict[tuple[str, str], Conversation | Exception] = {}

    def start(stack: ExitStack, name: str, command: Callable[[int], list[str]]) -> int:
        port = free_port()
        log = folder / f"{name}.log"
        stack.enter_context(serving(command(port), port, log, env))
        return port

    def proxy(way: str) -> Callable[[int], list[str]]:
        rules = "none" if way.endswith("no rules") else str(folder / "rules.yaml")
        url = f"http://127.0.0.1:{ports['directly']}/mcp"
        upstream = [url] if way.startswith("url") else ["--", *server]
        # Tools that no rule names are compared with the server's own.
        own = ["--rules", rules, "--budget", "off", "--ledger", "off"]
        serve = [sys.executable, "-m", "proxy", "serve", *own]
        return lambda port: [*serve, "--listen", f"127.0.0.1:{port}", *upstream]

    def have(client: str, way: str) -> Conversation:
        with ExitStack() as own:
            if way.startswith("command") and client in STATELESS:
                # Here clients share servers, and which one a request goes to depends on the ids
                # that others have cancelled. A subscription hears of its own server's changes only.
                port = start(own, f"{client} {way}", proxy(way))
            else:
                port = ports[way]
            return converse(SPEAKERS[client], port, f"{client} {way}", witness)

    def talk(client: str, way: str) -> Conversation:
        if (client, way) not in conversations:
            try:
                conversations[client, way] = have(client, way)
            except Exception as error:
                conversations[client, way] = error
        outcome = conversations[client, way]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with ExitStack() as stack:
        ports["directly"] = start(stack, "directly", lambda port: [*server, str(port)])
        for way in WAYS:
            ports[way] = start(stack, way, proxy(way))
        yield talk


# Each era goes by every way: its first client by two of them, the others by one.
WAYS_OF = {
    client: own_ways
    for clients in (HANDSHAKE, STATELESS)
    for client, own_ways in zip(clients, (WAYS[::3], WAYS[1:2], WAYS[2:3]), strict=True)
}


def ways(*clients: str) -> pytest.MarkDecorator:
    """Run a test for each of these clients by each of its ways."""
    each = [(client, way) for way in WAYS for client in clients if way in WAYS_OF[client]]
    return pytest.mark.parametrize(("client", "way"), each)


def same(client: str, way: str, talk: Talk, *steps: str) -> list[dict[str, Any]]:
    """Return the results of some steps, which must be those of the direct conversation."""
    through, direct = talk(client, way).record, talk(client, "directly").record
    for step in steps:
        assert through.results[step] == direct.results[step]
    return [through.results[step]["ok"] for step in steps]


@ways(*EVERY)
def test_every_tool_is_listed_as_the_server_has_it_or_as_the_rules_say(
    client: str, way: str, talk: Talk
) -> None:
    through = {tool["name"]: tool for tool in talk(client, way).record.tools}
    direct = {tool["name"]: tool for tool in talk(client, "directly").record.tools}
    assert list(through) == list(direct)
    changed = {name for name, tool in through.items() if tool != direct[name]}
    if way.endswith("no rules"):
        assert changed == set()
    else:
        assert changed == {"rows", "report"}
        assert {"limit", "offset"} <= through["rows"]["inputSchema"]["properties"].keys()
        assert {"maxLength", "startIndex"} <= through["report"]["inputSchema"]["properties"].keys()


@ways(*EVERY)
def test_structured_results_arrive_as_they_are_or_in_pages_that_fit_the_schema(
    client: str, way: str, talk: Talk
) -> None:
    # If a result does not fit the outputSchema that was listed, these clients refuse it.
    conversation = talk(client, way)
    if way.endswith("no rules"):
        whole, _ = same(client, way, talk, "rows", "next")
        assert len(whole["structuredContent"]["rows"]) == 40
        assert conversation.ran == 2
        return
    first, rest = (conversation.record.results[step]["ok"] for step in ("rows", "next"))
    direct = talk(client, "directly").record.results["rows"]["ok"]["structuredContent"]
    pages = [first["structuredContent"], rest["structuredContent"]]
    assert [orjson.loads(texts(result)[0]) for result in (first, rest)] == pages
    assert [len(page["rows"]) for page in pages] == [5, 35]
    assert [row for page in pages for row in page["rows"]] == [
        {"id": row["id"], "name": row["name"]} for row in direct["rows"]
    ]
    [tool] = [tool for tool in conversation.record.tools if tool["name"] == "rows"]
    for page in pages:
        jsonschema.validate(page, tool["outputSchema"])
    assert conversation.ran == 1


STEPS = ("echo", "fail", "user", "model", "roots", "after", "change")


@ways(*EVERY)
def test_results_without_a_rule_are_those_of_the_server(client: str, way: str, talk: Talk) -> None:
    conversation, direct = talk(client, way), talk(client, "directly").record
    assert conversation.record.version == SPEAKERS[client].version
    echo, fail, user, model, roots, after, change = same(client, way, talk, *STEPS)
    assert texts(echo) == ['a\u2028b — ünïcode \\ "1.0"']
    assert fail["isError"]
    assert conversation.record.results["unknown"] == direct.results["unknown"]
    assert [texts(user), texts(model)] == [["accept: Zoë"], ["a model: Paris"]]
    assert texts(roots) == ["file:///one, file:///two"]
    assert conversation.record.questions == [
        ("elicitation/create", "What is your name?"),
        ("sampling/createMessage", "What is the capital of France?"),
        ("roots/list", None),
    ]
    # The server sees that a call was cancelled, and others go on.
    assert conversation.record.progress["linger"] == [1]
    assert conversation.cancelled
    assert texts(after) == ["still here"]
    assert texts(change) == ["changed"]
    assert conversation.record.changed == direct.changed == 1


@ways(*EVERY)
def test_progress_and_log_messages_arrive_before_the_answer(
    client: str, way: str, talk: Talk
) -> None:
    # The server goes on only once the client has heard of the first progress.
    through, direct = talk(client, way).record, talk(client, "directly").record
    assert through.progress == direct.progress
    assert through.progress["report"] == [1, 2]
    steps = [{"step": "begun"}, {"step": "resumed"}]
    assert through.logged[:2] == steps
    # What a command says about no call in particular, before and after its connection was cut, may
    # come on two streams.
    again = through.logged[2:]
    assert again == direct.logged[2:] or (way.startswith("command") and again == steps[::-1])
    report = through.results["report"]["ok"]
    if way.endswith("no rules"):
        assert report == direct.results["report"]["ok"]
    else:
        shortened(report, direct.results["report"]["ok"])


def shortened(report: dict[str, Any], whole: dict[str, Any]) -> None:
    [text] = texts(whole)
    window, message = texts(report)
    assert window == text[:1000]
    assert notice(message)["totalLength"] == len(text)


@ways(*HANDSHAKE)
def test_a_stream_that_was_cut_or_closed_is_resumed_and_shaped_as_it_was(
    client: str, way: str, talk: Talk
) -> None:
    conversation, direct = talk(client, way), talk(client, "directly")
    assert [ask for ask in conversation.requests["GET"] if "last-event-id" in ask.headers]
    assert conversation.record.progress["cut"] == direct.record.progress["cut"]
    report = conversation.record.results["cut"]["ok"]
    if way.endswith("no rules"):
        assert report == direct.record.results["cut"]["ok"]
    else:
        shortened(report, direct.record.results["cut"]["ok"])
    assert conversation.again is not None
    assert conversation.again["content"] == report["content"]
    [leave] = same(client, way, talk, "leave")
    assert texts(leave) == ["told to whoever came back"]


@ways(*HANDSHAKE)
def test_a_session_that_was_deleted_is_over_and_so_is_its_server(
    client: str, way: str, talk: Talk
) -> None:
    conversation, direct = talk(client, way), talk(client, "directly")
    [deleted] = conversation.requests["DELETE"]
    assert deleted.status in (200, 204)
    assert conversation.afterwards == direct.afterwards == 404
    assert len(conversation.started) == way.startswith("command")
    assert conversation.running == []


@ways(*STATELESS)
def test_the_stateless_era_knows_no_sessions(client: str, way: str, talk: Talk) -> None:
    conversation = talk(client, way)
    assert not conversation.requests["GET"]
    assert not conversation.requests["DELETE"]
    assert not any("mcp-session-id" in ask.headers for ask in conversation.requests["POST"])
