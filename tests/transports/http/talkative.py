"""A stdio server in raw bytes that does what its calls say; no SDK, one thread.

Modern and handshake era alike: it answers whatever it is asked.
"""

import json
import os
import sys
from typing import Any


def say(**message: Any) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def text(message: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": message}]}


class TalkativeServer:
    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.pending: list[Any] = []
        self.sampling_id: Any = None

    def hear(self, message: Any) -> None:
        self.messages.append(message)
        if isinstance(message, list):
            for each in message:
                self.hear(each)
            return
        method, id, params = message.get("method"), message.get("id"), message.get("params", {})
        if method is None:
            say(id=self.sampling_id, result=text(f"it said {json.dumps(message['result'])}"))
        elif method == "initialize":
            if params.get("protocolVersion") == "1999-01-01":
                say(id=id, error={"code": -32602, "message": "too old"})
                return
            info = {"name": "talkative", "version": "1"}
            version = params["protocolVersion"]
            say(id=id, result={"protocolVersion": version, "capabilities": {}, "serverInfo": info})
        elif method == "tools/call":
            self.call(id, params["name"], params.get("arguments", {}), params.get("_meta", {}))
        elif method == "subscriptions/listen":
            note = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
            say(method="notifications/subscriptions/acknowledged", params=note)
            self.pending.append(id)
        elif id is not None and not method.startswith("ping"):
            say(id=id, error={"code": -32601, "message": "Method not found"})
        elif id is not None:
            say(id=id, result={})

    def call(self, id: Any, name: str, arguments: Any, meta: Any) -> None:
        if name == "echo":
            say(id=id, result=text(json.dumps(arguments)))
        elif name == "pid":
            say(id=id, result=text(str(os.getpid())))
        elif name == "seen":
            say(id=id, result=text(json.dumps(self.messages)))
        elif name == "progress":
            for at in range(arguments["count"]):
                note = {"progressToken": meta["progressToken"], "progress": at}
                say(method="notifications/progress", params=note)
            say(id=id, result=text("done"))
        elif name == "hold":
            self.pending.append(id)
        elif name == "release":
            for each in self.pending:
                say(id=each, result=text(f"held {json.dumps(each)}"))
            self.pending = []
            say(id=id, result=text("released"))
        elif name == "ask":
            self.sampling_id = id
            say(id="s1", method="sampling/createMessage", params={})
        elif name == "note":
            say(method="notifications/message", params={"level": "info", "data": arguments})
            say(id=id, result=text("noted"))
        elif name == "say":
            os.write(1, arguments["raw"].replace('"$ID"', json.dumps(id)).encode() + b"\n")


def main() -> None:
    server = TalkativeServer()
    for line in sys.stdin.buffer:
        server.hear(json.loads(line))


if __name__ == "__main__":
    main()
