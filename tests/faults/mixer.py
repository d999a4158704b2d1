"""A stdio server that mixes up what belongs to whom, as its calls tell it to.

`half` writes the beginning of an answer and no more; `log` writes a log line about the call, before
its answer or after; `hold` does nothing, `stop` never again; others answer, with the secret that
they are told and the process id.
"""

import json
import os
import signal
import sys


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        id, params = message["id"], message.get("params", {})
        head = f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"result":'
        arguments = params.get("arguments", {})
        secret = arguments.get("secret", "")
        text = json.dumps({"content": [{"type": "text", "text": f"{secret} {os.getpid()}"}]})
        name = params.get("name")
        if message["method"] == "initialize":
            version = params["protocolVersion"]
            info = {"protocolVersion": version, "capabilities": {}}
            info["serverInfo"] = {"name": "mixer", "version": "1"}
            say(f"{head}{json.dumps(info)}}}\n")
        elif name == "half":
            filler = json.dumps([{"jsonrpc": number} for number in range(arguments["size"] // 16)])
            say(f'{head}{{"structuredContent":{filler},"content":[{{"type":"text","text":"{secret}')
        elif name == "log":
            note = {"level": "info", "data": f"about {secret}"}
            log = {"jsonrpc": "2.0", "method": "notifications/message", "params": note}
            lines = [f"{head}{text}}}\n", json.dumps(log) + "\n"]
            say("".join(lines if arguments.get("late") else reversed(lines)))
        elif name == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif name == "hold":
            continue
        elif name == "variables":
            names = json.dumps({"content": [{"type": "text", "text": json.dumps([*os.environ])}]})
            say(f"{head}{names}}}\n")
        else:
            say(f"{head}{text}}}\n")


if __name__ == "__main__":
    main()
