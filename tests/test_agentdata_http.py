"""Holds the knowledge base's sidecar to its promises in HTTP: forms, routes, statuses, its log."""

import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest
from mcp.shared.exceptions import MCPError

from tests.faults.scale import scaled
from tests.faults.sidecar import RawResponse, Sidecar
from tests.python_client import Mode, PythonClient, reaching
from tests.raw_http import RawServer, always, result, whole
from tests.serving import FRONTS, JSON, ask, open_request, upstream
from tests.wrapped import ROOT, texts

EXAMPLES = ROOT / "examples"
AGENTDATA, FULLSYNC = EXAMPLES / "agentdata", EXAMPLES / "fullsync"
TOKEN = "the-token-of-gpt"
LONG = "knowledge/billing/metrics-1000"

Answers = Literal["json", "stream", "406"]
Json = dict[str, Any]

# An Accept header, and what a POST with it gets: before a server that answers in JSON, and before
# one that answers with an event stream. More headers are in tests/transports/http.
ACCEPTS: list[tuple[str | None, Answers, Answers]] = [
    ("application/json", "json", "json"),
    ("application/json;q=0.8, text/event-stream;q=0.9", "stream", "stream"),
    ("application/json, text/event-stream", "json", "stream"),  # the server chose
    (None, "json", "json"),
    ("text/html", "406", "406"),
]
FORMS = (None, "application/json", "text/event-stream", "text/html")
accepting = pytest.mark.parametrize("accept", FORMS)

PUBLIC = ["list_documents", "get_document", "get_document_for_rewrite", "batch_read"]
# The routes of sidecar.yaml: what is listed there, and what a malformed body gets.
ROUTES: dict[str, tuple[list[str], int]] = {
    "/mcp": (
        [*PUBLIC, "upload_document", "update_document", "patch_document", "delete_document"],
        200,
    ),
    "/mcp-gpt": ([*PUBLIC, "upload_document", "patch_document"], 200),
    "/gpt-mcp/{token}/mcp": ([*PUBLIC, "upload_document", "patch_document"], 200),
    "/mcp-readonly": (["list_documents", "get_document", "batch_read"], 400),
    "/mcp-gpt-full": (
        [*PUBLIC, "upload_document", "update_document", "patch_document", "delete_document",
         "ingest_document"],
        200,
    ),
}  # fmt: skip
everywhere = pytest.mark.parametrize("path", ROUTES)
ERAS: tuple[Mode, ...] = ("legacy", "2026-07-28")


class Base:
    """The example's sidecar, in front of the knowledge base and of a server that streams."""

    def __init__(self, sidecar: Sidecar, origin: str, calls: Path) -> None:
        self.sidecar = sidecar
        self.origin = origin
        self._calls = calls

    def url(self, path: str = "/mcp") -> str:
        return self.sidecar.url(path).replace("{token}", TOKEN)

    def call_count(self) -> int:
        """Count the calls of tools that reached the server."""
        return len(self._calls.read_bytes().splitlines()) if self._calls.exists() else 0


# A route beside the example's own: the document sync answers with event streams, in sessions.
STREAMING = f"""
  - path: /sync
    upstream: ORIGIN/mcp
    rules: [{FULLSYNC}/rules.yaml]
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    """Start everything, with the example's configuration but for addresses."""
    folder = tmp_path_factory.mktemp("agentdata")
    calls, config = folder / "calls", folder / "sidecar.yaml"
    server = [sys.executable, str(AGENTDATA / "server.py"), "--log", str(calls)]
    sync = [sys.executable, str(FULLSYNC / "server.py"), "--index-dir", str(folder)]
    with (
        upstream(server, folder / "server.log") as origin,
        upstream(sync, folder / "sync.log") as streaming,
    ):
        text = (AGENTDATA / "sidecar.yaml").read_text()
        for there, here in {
            "http://127.0.0.1:3000": origin,
            "127.0.0.1:8809": "localhost:0",
            "[rules.yaml]\nbud": f"[{AGENTDATA}/rules.yaml]\nbud",
        }.items():
            assert there in text
            text = text.replace(there, here)
        config.write_text(text + STREAMING.replace("ORIGIN", streaming))
        options = ["--verbose", "--config", str(config)]
        with Sidecar(*options, env={"AGENTDATA_TOKEN": TOKEN}) as sidecar:
            yield Base(sidecar, origin, calls)
        assert TOKEN.encode() not in sidecar.errors


@pytest.fixture(scope="module")
def session(base: Base) -> dict[str, str]:
    """Begin a session with the server that streams; return the headers of its requests."""
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw"}}
    info["clientInfo"] |= {"version": "1"}  # type: ignore[operator]
    response = post(base.url("/sync"), request("initialize", **info), BOTH)
    headers = {"Mcp-Session-Id": response.fields["mcp-session-id"]}
    assert post(base.url("/sync"), NOTE, BOTH, headers).status == 202
    return headers


def request(method: str, **params: Any) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def call(tool: str, **arguments: Any) -> bytes:
    return request("tools/call", name=tool, arguments=arguments)


def post(
    url: str, body: bytes, accept: str | None = None, more: dict[str, str] | None = None
) -> RawResponse:
    return ask(url, body, headers=JSON | _accept(accept) | (more or {}))


def _accept(accept: str | None) -> dict[str, str]:
    return {} if accept is None else {"Accept": accept}


BOTH = "application/json, text/event-stream"
NOTE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
ONE = call("batch_read", paths=["none"])
OVER_LIMIT = call("list_documents", limit=101)
RETIRED = call("move_document", document_id="a", target="b")


def message(response: RawResponse, form: Answers) -> Json:
    """Return the message of an answer, which is whole and has the headers of its form."""
    assert response.status == 200
    assert "connection" not in response.fields
    if form == "json":
        assert response.fields["content-type"] == "application/json"
        assert response.fields["content-length"] == str(len(response.body))
        assert "x-accel-buffering" not in response.fields
        raw = response.body
    else:
        assert response.fields["content-type"].partition(";")[0] == "text/event-stream"
        assert response.fields["cache-control"] == "no-cache, no-transform"
        assert response.fields["x-accel-buffering"] == "no"
        assert "content-length" not in response.fields
        # One frame, and nothing after it.
        assert response.body.startswith((b"event: message\ndata: {", b"event: message\r\ndata: {"))
        _, data, *rest = response.body.splitlines()
        assert rest == [b""]
        raw = data.removeprefix(b"data: ")
    decoded: Json = orjson.loads(raw)
    assert decoded["id"] == 1
    return decoded


def error(response: RawResponse, status: int, code: int, says: str) -> None:
    """Check that an answer is this error, in JSON and of no request."""
    assert (response.status, response.fields["content-type"]) == (status, "application/json")
    assert response.json == {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": says}}


def unacceptable(response: RawResponse) -> None:
    error(response, 406, -32700, "Acceptable media types: application/json, text/event-stream")


@pytest.mark.parametrize(("accept", "form"), [case[:2] for case in ACCEPTS])
def test_the_form_before_a_server_that_answers_in_json(
    accept: str | None, form: Answers, base: Base
) -> None:
    url, calls = base.url(), base.call_count()
    if form == "406":
        for body in (ONE, OVER_LIMIT, RETIRED, request("tools/list")):
            unacceptable(post(url, body, accept))
        assert base.call_count() == calls
        return
    [text] = texts(message(post(url, ONE, accept), form)["result"])
    assert [item["document_id"] for item in orjson.loads(text)["items"]] == ["none"]
    assert base.call_count() == calls + 1
    # The proxy's own responses come in the same form.
    result = message(post(url, OVER_LIMIT, accept), form)["result"]
    assert result["isError"]
    assert texts(result) == [
        '{"error":{"status":422,"code":"INVALID_ARGUMENT",'
        '"message":"limit: 101 is greater than the maximum of 100"}}'
    ]
    assert message(post(url, RETIRED, accept), form)["error"]["code"] == -32601
    assert base.call_count() == calls + 1


@pytest.mark.parametrize(("accept", "form"), [(case[0], case[2]) for case in ACCEPTS])
def test_the_form_before_a_server_that_answers_with_a_stream(
    accept: str | None, form: Answers, base: Base, session: dict[str, str]
) -> None:
    response = post(base.url("/sync"), call("roxtra_index_full_sync_status"), accept, session)
    if form == "406":
        unacceptable(response)
        return
    [text] = texts(message(response, form)["result"])
    assert len(orjson.loads(text)["progressSummary"]) == 16


@accepting
def test_a_notification_is_always_forwarded_and_keeps_the_servers_status(
    accept: str | None, base: Base, session: dict[str, str]
) -> None:
    for path, status, more in (("/mcp", 204, {}), ("/sync", 202, session)):
        response = post(base.url(path), NOTE, accept, more)
        assert (response.status, response.body) == (status, b"")
        assert "transfer-encoding" not in response.fields
    line = base.sidecar.events("request", method="notifications/initialized")[-1]
    assert line["answered_by"] == "upstream"


@accepting
def test_a_get_is_the_servers_to_answer(accept: str | None, base: Base) -> None:
    response = ask(base.url(), headers=_accept(accept))
    if "text/event-stream" in (accept or ""):
        error(response, 405, -32000, "Method Not Allowed")
        assert response.fields["allow"] == "POST"
    else:
        assert (response.status, response.fields["content-type"]) == (200, "application/json")
        assert response.json["name"] == "agentdata"
        assert response.json["endpoint"] == "/mcp"
    assert response.body == ask(f"{base.origin}/mcp", headers=_accept(accept)).body


def test_a_get_of_a_session_is_the_servers_stream(base: Base, session: dict[str, str]) -> None:
    accept = _accept("text/event-stream") | session
    with open_request(base.url("/sync"), None, accept) as client:
        stream = client.head()
        assert (stream.status, stream.fields["content-type"]) == (200, "text/event-stream")
        assert stream.fields["x-accel-buffering"] == "no"
    response = ask(base.url("/sync"), headers=_accept("application/json") | session)
    assert response.status == 406


def test_the_bytes_of_each_form(base: Base) -> None:
    answer = post(base.url(), ONE, "application/json")
    framed = post(base.url(), ONE, "text/event-stream")
    assert framed.body == b"event: message\ndata: " + answer.body + b"\n\n"
    answered, streamed = answer.fields, framed.fields
    for fields in (answered, streamed):
        del fields["date"]
        assert fields.pop("server") == "uvicorn"
    length = str(len(answer.body))
    assert answered == {"content-type": "application/json", "content-length": length}
    assert streamed == {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
        "transfer-encoding": "chunked",
    }


@everywhere
def test_a_malformed_body_gets_the_status_of_its_route(path: str, base: Base) -> None:
    _, status = ROUTES[path]
    for body in (b"", b"{nope", b'{"jsonrpc":"2.0","id":1', b"\xff", b"nothing of this is JSON"):
        for accept in FORMS:
            error(post(base.url(path), body, accept), status, -32700, "Parse error")


@pytest.mark.parametrize(("path", "mode"), [*zip(ROUTES, cycle(ERAS), strict=False)])
def test_the_real_client_on_each_route(mode: Mode, path: str, base: Base) -> None:
    names, _ = ROUTES[path]
    with reaching(base.url(path), mode=mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else mode)
        assert sorted(client.tools()) == sorted(names)
        for more, count, following in (({}, 50, 50), ({"limit": 100, "offset": 2850}, 57, None)):
            [text] = texts(client.call("list_documents", more))
            page = orjson.loads(text)
            assert (page["count"], page["next_offset"]) == (count, following)
        [text] = texts(client.call("get_document", {"document_id": LONG}))
        assert len(text) > 400_000
        calls = base.call_count()
        # Only /mcp has the tool in its set, so that the rule that retires it answers there.
        says = "Unknown tool: move_document" if path == "/mcp" else "move_document is not allowed"
        for tool, text in (
            ("move_document", says),
            ("ingest_document", "ingest_document is not allowed"),
            ("delete_document", "delete_document is not allowed"),
            ("no_such_tool", "no_such_tool is not allowed"),
        ):
            if tool not in names:
                with pytest.raises(MCPError) as raised:
                    client.call(tool, {"document_id": "a", "target": "b"})
                assert (raised.value.error.code, raised.value.error.message) == (-32601, text)
        assert base.call_count() == calls


def test_the_internal_route_has_a_listener_of_its_own_and_alone_can_ingest(base: Base) -> None:
    with reaching(base.url("/mcp-gpt-full")) as client:
        [text] = texts(client.call("ingest_document", {"url": "http://127.0.0.1/new"}))
    assert orjson.loads(text)["document_id"] == "inbox/ingested/new"
    public, internal = base.url("/mcp"), base.url("/mcp-gpt-full")
    assert public.split("/")[2] != internal.split("/")[2]
    for url in (
        public.replace("/mcp", "/mcp-gpt-full"),
        internal.replace("/mcp-gpt-full", "/mcp"),
        public.replace("/mcp", "/other"),
    ):
        response = post(url, ONE)
        assert response.status == 404
        assert response.error.startswith("nothing is served at this path")


def test_a_wrong_token_in_the_path_opens_nothing(base: Base) -> None:
    calls = base.call_count()
    wrong = base.sidecar.url("/gpt-mcp/{token}/mcp").replace("{token}", "wrong")
    error(post(wrong, ONE), 401, -32600, "the bearer token is not known")
    assert base.call_count() == calls


def test_other_paths_of_the_server_pass_through(base: Base) -> None:
    path, body = "/documents/knowledge/billing/a%20b/move", b'{"target":"elsewhere"}'
    url = base.url().replace("/mcp", path)
    response, own = post(url, body), post(f"{base.origin}{path}", body)
    assert (response.status, response.body) == (501, own.body)
    assert response.json["error"]["code"] == "NOT_IMPLEMENTED"
    other = base.url().replace("/mcp", "/documents/knowledge/a")
    assert ask(other).status == ask(f"{base.origin}/documents/knowledge/a").status == 404
    assert b"jsonrpc" not in ask(other).body
    [line] = base.sidecar.events("request", status=501)
    assert "knowledge" not in str(line)


@everywhere
def test_a_call_leaves_a_line_that_names_route_tool_and_caller(path: str, base: Base) -> None:
    with reaching(base.url(path), mode="2026-07-28") as client:
        client.call("batch_read", {"paths": [LONG]})
    line = base.sidecar.events("call", route=path, tool="batch_read")[-1]
    assert line.pop("time")
    assert line.pop("seconds") >= 0
    assert int(line.pop("request_id")) > 0
    assert line.pop("received") > 400_000 > 10_000 > line.pop("sent") > 2_000
    assert line == {
        "level": "info", "event": "call", "route": path, "status": 200, "tool": "batch_read",
        "client": "python", "answered_by": "upstream",
        **({"token": "AGENTDATA_TOKEN"} if "{token}" in path else {}),
    }  # fmt: skip


def test_no_secret_is_in_any_line(base: Base, session: dict[str, str]) -> None:
    """Headers, tokens, sessions, queries, arguments, answers and bodies stay out of the log."""
    document = {"document_id": "secret-id", "content": "secret-content", "title": "secret-title"}
    more = {"Authorization": "Bearer secret-bearer", "Cookie": "c=secret-cookie"}
    more |= {"X-Api-Key": "secret-key", "User-Agent": "secret-agent"}
    lines = len(base.sidecar.events("request", 0))
    count = 0
    for path in ROUTES:
        for body in (
            call("upload_document", **document),
            call("get_document", document_id="secret-id"),
            call("list_documents", prefix="secret-prefix", offset=10_001),
            call("list_documents", secret_name=1),
            request("secret/method", secret=1),
            b'{"secret-body',
        ):
            for accept in (None, "text/secret-type"):
                assert post(base.url(path), body, accept, more).status in (200, 400, 406)
                count += 1
    wrong = base.sidecar.url("/gpt-mcp/{token}/mcp").replace("{token}", "secret-token")
    for url in (wrong, f"{base.url()}/secret-path", base.url("/mcp-gpt")):
        post(f"{url}?key=secret-query", ONE, None, more)
        count += 1
    post(base.url("/sync"), call("roxtra_index_full_sync_status"), None, session | more)
    base.sidecar.events("request", lines + count + 1)
    # The method is said, since it is what was asked for; nothing else of it all is.
    log = base.sidecar.errors.replace(b"secret/method", b"")
    assert b"secret" not in log
    assert TOKEN.encode() not in log
    assert session["Mcp-Session-Id"].encode() not in log


@pytest.mark.parametrize("mode", ERAS[: scaled(1, len(ERAS))])
def test_a_write_of_one_is_seen_by_all_who_share_its_credentials(
    mode: Mode, tmp_path: Path
) -> None:
    def page(client: PythonClient, offset: int = 100) -> list[str]:
        arguments = {"prefix": "knowledge/billing/", "limit": 100, "offset": offset}
        [text] = texts(client.call("list_documents", arguments))
        return [item["document_id"] for item in orjson.loads(text)["items"]]

    server, rules = [sys.executable, str(AGENTDATA / "server.py")], [AGENTDATA / "rules.yaml"]
    with (
        FRONTS["http"](server, rules, tmp_path) as front,
        front.connect(mode) as one,
        front.connect(mode) as other,
    ):
        first, before = page(other, 0), page(other)
        assert (page(one, 0), page(one)) == (first, before)
        one.call("delete_document", {"document_id": first[7]})
        one.call("delete_document", {"document_id": before[3]})
        for client in (other, one):
            assert page(client, 0) == [*first[:7], *first[8:], before[0]]
            assert page(client)[:-2] == before[1:3] + before[4:]


def test_requests_to_the_server_accept_both_forms_and_have_no_token() -> None:
    with (
        RawServer(always(whole(result(b"1")))) as server,
        Sidecar("--rules", "none", server.url, env={"MCP_ABRIDGE_TOKEN": TOKEN}) as sidecar,
    ):
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        for accept in ("application/json", "text/event-stream", "*/*;q=0.1, text/event-stream"):
            assert post(sidecar.url(), ONE, accept, bearer).status == 200
    assert [request.headers["accept"] for request in server.requests] == [BOTH] * 3
    assert TOKEN not in str(server.requests)
    assert TOKEN.encode() not in sidecar.errors
