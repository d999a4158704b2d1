"""A server whose every word holds a secret, and that fails as it is asked to: raw bytes, no SDK.

    python server.py TICKETS

A call or a resource names a ticket: a file of the folder TICKETS, whose content is for the first
who asks, so that knowing a call by its words is not enough to get its secret.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
ROWS = 150  # of an answer, which then has more than 5 kB
TOOLS = ("read", "page", "say", "fail")


class Reply(NamedTuple):
    """The answer to a request, the messages before it, and those that come if it is `late`."""

    before: list[Json]
    answer: Json
    after: list[Json]
    fault: str


class Server:
    """A server for whoever has the secret `own`."""

    def __init__(self, tickets: Path, own: str) -> None:
        self._tickets = tickets
        self._own = own

    def reply(self, request: Json) -> Reply:
        """Answer a request."""
        params = request.get("params", {})
        arguments = params.get("arguments", {})
        fault: str = arguments.get("fault", "")
        before: list[Json] = []
        words = ""
        match request["method"]:
            case "tools/call":
                name, words = params["name"], self._words(arguments["ticket"])
                note = {"level": "error", "data": words}
                token = params.get("_meta", {}).get("progressToken")
                progress = {"progressToken": token, "progress": 1, "message": words}
                before = [_note("message", note), _note("progress", progress)]
                member = _called(name, words)
            case "resources/read":
                uri = params["uri"]
                _, _, ticket, fault = uri.split("/", 3)
                member = _result(contents=[{"uri": uri, "text": _rows(self._words(ticket))}])
            case "tools/list":
                member = _result(tools=[_tool(name, self._own) for name in TOOLS])
            case "initialize":
                version = params["protocolVersion"]
                member = _result(
                    protocolVersion=version,
                    capabilities={"tools": {}, "logging": {}, "resources": {}},
                    serverInfo={"name": "secretive", "version": "1"},
                    instructions=self._own,
                )
            case _:
                member = _result()
        answer = {"jsonrpc": "2.0", "id": request["id"], **member}
        says = params.get("name") == "say"
        return Reply(before if says else [], answer, [*before, answer], fault)

    def _words(self, ticket: int | str) -> str:
        file = self._tickets / str(ticket)
        try:
            os.rename(file, spent := file.with_suffix(".spent"))
            return f"{spent.read_text()}/{ticket}/"
        except FileNotFoundError:
            return f"spent/{ticket}/"


def _called(tool: str, words: str) -> Json:
    if tool == "fail":
        return {"error": {"code": -32000, "message": words, "data": [words]}}
    text = words if tool == "say" else _rows(words)
    return _result(content=[{"type": "text", "text": text}])


def _rows(words: str) -> str:
    return json.dumps({"rows": [{"n": n, "words": f"{words} {n}"} for n in range(ROWS)]})


def _result(**members: Any) -> Json:
    return {"result": members}


def _note(kind: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "method": f"notifications/{kind}", "params": params}


def _tool(name: str, own: str) -> Json:
    schema = {"type": "object", "properties": {"ticket": {"type": "integer"}}}
    read_only = {"readOnlyHint": True}
    return {"name": name, "description": own, "inputSchema": schema, "annotations": read_only}


def with_wrong_ids(answer: Json, waiting: list[Any]) -> list[Json]:
    """Return an answer with ids that it must not have: those of others, near ones and none."""
    id = answer["id"]
    near = [f"{id}", -id] if isinstance(id, int) else [f"{id}1"]
    return [{**answer, "id": wrong} for wrong in (*waiting, *near, None)]


def main() -> None:
    server = Server(Path(sys.argv[1]), os.environ.get("SECRET", ""))
    waiting: list[Any] = []  # ids of requests without an answer
    late = b""  # said as soon as there is another message

    def say(raw: bytes) -> None:
        rest = memoryview(raw)
        while rest:
            rest = rest[os.write(1, rest) :]

    for line in sys.stdin.buffer:
        message = json.loads(line)
        say(late)
        late = b""
        if "id" not in message or message["method"] == "subscriptions/listen":
            waiting += [message["id"]] if "id" in message else []
            continue
        reply = server.reply(message)
        answer = _line(reply.answer)
        half = answer[: -len(answer) // 50]
        sys.stderr.write(f"{json.dumps([*reply.answer.values()][2])[:400]}\n")
        sys.stderr.flush()
        say(b"".join(map(_line, reply.before)))
        match reply.fault:
            case "half":
                say(half)
            case "rest":
                say(half)
                late = answer[len(half) :]
            case "never":
                late = answer
            case "late":
                say(answer)
                late = b"".join(map(_line, reply.after))
            case "wrong":
                say(b"".join(map(_line, with_wrong_ids(reply.answer, waiting))) + answer)
            case "dies":
                say(half)
                os._exit(3)
            case _:
                say(answer)
        if reply.fault in ("half", "rest", "never"):
            waiting.append(message["id"])


def _line(message: Json) -> bytes:
    return json.dumps(message).encode() + b"\n"


if __name__ == "__main__":
    main()
