"""A server whose every word holds a secret, and that fails as it is asked to: raw bytes, no SDK.

    python server.py TICKETS

A call names a ticket: a file of the folder TICKETS with a secret for the first who asks for it, so
that knowing a call by its words is not enough to get its answer.
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
    """The answer to a request, the messages before it, those that come `late`, and the fault."""

    before: list[Json]
    answer: Json
    late: list[Json]
    fault: str


class Server:
    """A server for whoever has the secret `own`."""

    def __init__(self, tickets: Path, own: str) -> None:
        self._tickets = tickets
        self._own = own

    def reply(self, request: Json) -> Reply:
        method, params = request["method"], request.get("params", {})
        arguments: Json = params.get("arguments", {})
        notes: list[Json] = []
        result: Json = {}
        name, fault = "", ""
        answer: Json = {"jsonrpc": "2.0", "id": request["id"]}
        if method in ("tools/call", "resources/read"):
            name, fault = params.get("name", params.get("uri")), arguments.get("fault", "")
            if method == "resources/read":
                _, _, ticket, fault = name.split("/", 3)
                arguments = {"ticket": ticket}
            words = self._words(arguments["ticket"])
            token = params.get("_meta", {}).get("progressToken")
            progress = {"progressToken": token, "progress": 1, "message": words}
            for kind, of in (
                ("message", {"level": "error", "data": words}),
                ("progress", progress),
            ):
                notes.append({"jsonrpc": "2.0", "method": f"notifications/{kind}", "params": of})
            rows = [f"{n} of {words}" for n in range(ROWS)]
            text = words if name == "say" else json.dumps({"rows": rows})
            result = {"content": [{"type": "text", "text": text}]}
            if method == "resources/read":
                result = {"contents": [{"uri": name, "text": text}]}
            if name == "fail":
                answer["error"] = {"code": -32000, "message": words, "data": [words]}
        elif method == "tools/list":
            schema = {"type": "object", "properties": {"ticket": {"type": "integer"}}}
            more = {"inputSchema": schema, "annotations": {"readOnlyHint": True}}
            result = {"tools": [{"name": each, "description": self._own, **more} for each in TOOLS]}
        elif method == "initialize":
            result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
            result |= {"serverInfo": {"name": "s", "version": "1"}, "instructions": self._own}
        if "error" not in answer:
            answer["result"] = result
        return Reply(notes if name == "say" else [], answer, [*notes, answer], fault)

    def _words(self, ticket: int | str) -> str:
        file = self._tickets / str(ticket)
        try:
            file.rename(used := file.with_suffix(".spent"))
        except FileNotFoundError:
            return f"spent/{ticket}/"
        return f"{used.read_text()}/{ticket}/"


def with_wrong_ids(answer: Json, waiting: list[Any]) -> list[Json]:
    """Return an answer with ids that it must not have: those of others, near ones and none."""
    near = [f"{answer['id']}", -answer["id"]] if isinstance(answer["id"], int) else []
    return [{**answer, "id": wrong} for wrong in (*waiting, *near, None)]


def main() -> None:
    server = Server(Path(sys.argv[1]), os.environ.get("SECRET", ""))
    waiting: list[Any] = []  # the ids of requests without an answer
    late = b""  # said as soon as there is another message

    def say(*messages: Json, raw: bytes = b"") -> None:
        raw = b"".join(json.dumps(message).encode() + b"\n" for message in messages) + raw
        while raw:
            raw = raw[os.write(1, raw) :]

    for line in sys.stdin.buffer:
        message = json.loads(line)
        say(raw=late)
        late = b""
        if "id" not in message:
            continue
        reply = server.reply(message)
        answer = json.dumps(reply.answer).encode() + b"\n"
        half = answer[: -len(answer) // 50]
        if reply.fault in ("half", "rest", "never") or message["method"].endswith("/listen"):
            waiting.append(message["id"])
        os.write(2, json.dumps(list(reply.answer.values())[2]).encode()[:400] + b"\n")
        say(*reply.before)
        match reply.fault:
            case "half":
                say(raw=half)
            case "rest":
                say(raw=half)
                late = answer[len(half) :]
            case "never":
                late = answer
            case "dies":
                say(raw=half)
                os._exit(3)
            case _ if not message["method"].endswith("/listen"):
                say(*(with_wrong_ids(reply.answer, waiting) if reply.fault == "wrong" else ()))
                say(reply.answer)
                if reply.fault == "late":
                    late = b"".join(json.dumps(each).encode() + b"\n" for each in reply.late)


if __name__ == "__main__":
    main()
