"""One conversation of an official client over HTTP, in which happens whatever can happen there.

The steps stand here in `_python`, and for the TypeScript clients in clients/converse.mjs. The
server is fixtures/sdk_server.py, directly or behind the proxy; a relay stands before either.
"""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anyio
import msgspec
from anyio import to_thread
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    ListRootsResult,
    LoggingMessageNotificationParams,
    Root,
    TextContent,
    ToolListChangedNotification,
)
from pydantic import FileUrl

from tests.python_client import Mode
from tests.servers import CLIENTS, node
from tests.witness import SECONDS, Relay, RelayedRequest, Witness

Outcome = dict[str, Any]
REPORTED = b"line 1 of the report"
WHOLE = 60.0  # seconds
PATIENCE = 10.0
"""Seconds that a client waits for a message, as in converse.mjs."""


class Speaker(NamedTuple):
    """A client: its SDK, how it negotiates, and the version that comes of it."""

    sdk: Literal["python", "v1", "v2"]
    mode: Mode
    version: str

    @property
    def handshake(self) -> bool:
        return self.version < "2026"


class ClientRecord(msgspec.Struct):
    """The side of a client in a conversation.

    `results` has an outcome for each step: `{"ok": result}` or `{"error": [code, message]}`;
    `progress` the amounts of its progress notifications. `questions` are the server's requests,
    each with its text, `logged` the data of log messages, `changed` counts notifications of a
    changed list of tools.
    """

    version: str
    tools: list[dict[str, Any]]
    results: dict[str, Outcome]
    progress: dict[str, list[float]]
    logged: list[Any]
    questions: list[tuple[str, str | None]]
    changed: int


class Conversation(NamedTuple):
    """A conversation that is over.

    `requests` are those of it by method; `cancelled` says that the server saw the cancellation,
    `ran` how often it ran the tool `rows`. `again` is the result of the step `cut`, asked for once
    more by the id of an event before it. `started` are the pids of servers that were started for it
    as commands, `running` those that did not end with its session. `afterwards` is the status of a
    request for the session once the client has ended it, None without a session.
    """

    record: ClientRecord
    requests: dict[str, list[RelayedRequest]]
    cancelled: bool
    ran: int
    again: Any
    started: list[str]
    running: list[str]
    afterwards: int | None


def calls(key: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the calls without anything special: the name of a step, a tool, its arguments."""
    return [
        ("rows", "rows", {"key": key}),
        ("next", "rows", {"key": key, "offset": 5, "limit": 35}),
        ("echo", "echo", {"text": 'a\u2028b — ünïcode \\ "1.0"'}),
        ("fail", "fail", {}),
        ("unknown", "nowhere", {}),
        ("user", "ask_user", {}),
        ("model", "ask_model", {}),
        ("roots", "ask_roots", {}),
    ]


def converse(speaker: Speaker, port: int, key: str, witness: Witness) -> Conversation:
    """Have the whole conversation with the server at a port; `key` names it to the witness."""
    earlier = len(witness.reports)
    with Relay(port) as relay:

        def cut() -> None:
            relay.cut()
            witness.release(f"{key} cut")

        again: list[Any] = []
        witness.does |= {
            f"report {key}": partial(witness.release, f"{key} report"),
            f"leave {key}": partial(witness.release, f"{key} leave"),
            f"cut {key}": cut,
            f"listens {key}": relay.listens,
            f"again {key}": lambda: again.append(_again(port, relay.resumed(REPORTED))),
        }
        if speaker.sdk == "python":
            record = anyio.run(_python, speaker, relay.url, key, witness.does)
        else:
            record = _typescript(speaker, relay.url, key, witness.port)
        requests = {method: relay.requests(method) for method in ("GET", "POST", "DELETE")}
    reports = [report.partition(" ") for report in witness.reports[earlier:]]
    started = [pid for word, _, pid in reports if word == "begun"]
    over = started if requests["DELETE"] else []
    return Conversation(
        record,
        requests,
        witness.hears(f"cancelled {key} linger"),
        witness.reports.count(f"rows {key}"),
        again[0] if again else None,
        started,
        [pid for pid in over if not witness.hears(f"ended {pid}")],
        _afterwards(port, requests["DELETE"]),
    )


def _typescript(speaker: Speaker, url: str, key: str, witness: int) -> ClientRecord:
    spec = {
        "url": url,
        "key": key,
        "mode": speaker.mode,
        "calls": calls(key),
        "handshake": speaker.handshake,
        "witness": witness,
    }
    completed = subprocess.run(
        [node(), str(CLIENTS / f"http_{speaker.sdk}.mjs"), json.dumps(spec)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=WHOLE,
        check=False,
    )
    if completed.returncode:
        raise RuntimeError(f"TypeScript client {speaker.sdk}: {completed.stderr.decode()}")
    return msgspec.json.decode(completed.stdout, type=ClientRecord)


async def _python(
    speaker: Speaker, url: str, key: str, does: dict[str, Callable[[], object]]
) -> ClientRecord:
    record = ClientRecord("", [], {}, {}, [], [], 0)
    changed, logged = anyio.Event(), anyio.Condition()

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        record.questions.append(("elicitation/create", params.message))
        return ElicitResult(action="accept", content={"name": "Zoë"})

    async def sample(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult:
        question = params.messages[0].content
        assert isinstance(question, TextContent)
        record.questions.append(("sampling/createMessage", question.text))
        reply = TextContent(type="text", text="Paris")
        return CreateMessageResult(role="assistant", model="a model", content=reply)

    async def roots(context: ClientRequestContext) -> ListRootsResult:
        record.questions.append(("roots/list", None))
        return ListRootsResult(
            roots=[Root(uri=FileUrl("file:///one")), Root(uri=FileUrl("file:///two"))]
        )

    async def log(params: LoggingMessageNotificationParams) -> None:
        async with logged:
            record.logged.append(params.data)
            logged.notify_all()

    async def log_has(count: int) -> None:
        # A log message of no request in particular may come on another stream than the response.
        with anyio.move_on_after(PATIENCE):
            async with logged:
                while len(record.logged) < count:
                    await logged.wait()

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            record.changed += 1
            changed.set()

    client = Client(
        url,
        mode=speaker.mode,
        client_info=Implementation(name="python", version="1.0.0"),
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
        logging_callback=log,
        log_level="info",
        message_handler=hear,
    )

    async def step(
        name: str, tool: str, arguments: dict[str, Any], first: Callable[[], object] = lambda: None
    ) -> None:
        amounts = record.progress[name] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            amounts.append(progress)
            if len(amounts) == 1:
                first()

        try:
            result = await client.call_tool(tool, arguments, PATIENCE, on_progress)
            value = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            record.results[name] = {"ok": value}
        except MCPError as error:
            record.results[name] = {"error": [error.code, error.message]}

    def keyed(name: str) -> dict[str, Any]:
        return {"key": f"{key} {name}"}

    with anyio.fail_after(WHOLE):
        async with client:
            record.version = client.protocol_version
            listed = await client.list_tools()
            record.tools = [
                tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                for tool in listed.tools
            ]
            for each in calls(key):
                await step(*each)
            await step("report", "report", keyed("report"), does[f"report {key}"])
            await log_has(2)
            with anyio.CancelScope() as scope:
                await step("linger", "linger", keyed("linger"), scope.cancel)
            record.results["linger"] = {"error": []}
            await step("after", "echo", {"text": "still here"})
            if speaker.handshake:
                await to_thread.run_sync(does[f"listens {key}"])
                await step("change", "change", {})
                with anyio.move_on_after(PATIENCE):
                    await changed.wait()
                await step("leave", "leave", keyed("leave"), does[f"leave {key}"])
                await step("cut", "report", keyed("cut"), does[f"cut {key}"])
                await log_has(4)
                await to_thread.run_sync(does[f"again {key}"])
            else:
                async with client.listen(tools_list_changed=True) as subscription:
                    await step("change", "change", {})
                    with anyio.move_on_after(PATIENCE):
                        await subscription.__anext__()
                        await changed.wait()
    return record


def _again(port: int, resumed: RelayedRequest | None) -> Any:
    """Resume a stream once more from the event of a client, and return its result."""
    if resumed is None:
        return None
    names = ("mcp-session-id", "mcp-protocol-version", "last-event-id")
    headers = {name: resumed.headers[name] for name in names} | {"accept": "text/event-stream"}
    request = Request(f"http://127.0.0.1:{port}/mcp", headers=headers)
    with urlopen(request, timeout=SECONDS) as answer:
        events = (line.removeprefix(b"data: ") for line in answer if REPORTED in line)
        return json.loads(next(events))["result"]


def _afterwards(port: int, ended: list[RelayedRequest]) -> int | None:
    """Ask for the session that a client has ended."""
    if not ended:
        return None
    names = ("mcp-session-id", "mcp-protocol-version")
    headers = {name: ended[0].headers[name] for name in names}
    headers |= {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
    }
    raw = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    try:
        with urlopen(Request(f"http://127.0.0.1:{port}/mcp", raw, headers)) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code
