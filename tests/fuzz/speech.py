"""What clients and servers say to each other in the sessions that are fuzzed, line by line."""

import json
from typing import Any

from tests.fuzz import expressions, results, values
from tests.fuzz.covered import TOOLS
from tests.fuzz.dice import Dice

IDS = ('"a"', "0", "-1", "1.0", '"1"', '"\\u0061"', "1e3", '"é"', "null", "true", "[1]", '{"a":1}')
METHODS = ("ping", "resources/read", "prompts/get", "logging/setLevel", "tasks/get", "no/such")
NOTICES = ("initialized", "progress", "roots/list_changed", "cancelled")
NOISE = (
    *(b"debug: 1", b"", b"  ", b"{", b"[]", b"5", b'{"level":"info"}', b"\xff\xfe", b'"text"'),
    *(b"nul", b'{"jsonrpc":"2.0"', b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":1}'),
    *(b"[" * 2000, b"\xef\xbb\xbf"),
)


def line(*members: tuple[str, str]) -> bytes:
    held = ",".join(f'"{name}":{value}' for name, value in (("jsonrpc", '"2.0"'), *members))
    return ("{" + held + "}").encode("utf-8", "surrogatepass")


def request(dice: Dice, id: str, mark: int) -> bytes:
    """Return a request of a client, told from all others by its mark."""
    kind = dice.below(20)
    if kind < 12:
        return call(dice, id, mark)
    if kind < 14:
        cursor = dice.pick(({}, {}, {"cursor": "2"}))
        return line(("id", id), ("method", '"tools/list"'), ("params", json.dumps(cursor)))
    if kind == 14:
        params = {"clientInfo": {"name": dice.pick(("Zed", "claude-code", "x"))}, "mark": mark}
        return line(("id", id), ("method", '"initialize"'), ("params", json.dumps(params)))
    if kind == 15:
        return line(("id", id), ("method", '"server/discover"'), ("params", _meta(dice, mark)))
    if kind == 16:
        params = {"taskId": dice.pick(("t1", "t2", "none"))}
        return line(("id", id), ("method", '"tasks/result"'), ("params", json.dumps(params)))
    method = dice.pick(METHODS)
    return line(
        ("id", id), ("method", f'"{method}"'), ("params", f'{{"mark":{mark},"uri":"call"}}')
    )


def call(dice: Dice, id: str, mark: int) -> bytes:
    """Return a call of a tool, seldom one that two readers may read in two ways."""
    tool = dice.pick(TOOLS)
    arguments: dict[str, Any] = {}
    chances: dict[str, tuple[int, tuple[Any, ...]]] = {
        "offset": (3, (0, 2, 4, 100, -1, "2")),
        "limit": (3, (1, 2, 10, 11, 50, "5")),
        "view": (8, (expressions.view(dice),)),
        "startIndex": (6, (0, 10, 30)),
        "action": (4, ("x", "y")),
        "path": (6, ("a.md",)),
        "ours": (8, (2,)),
    }
    for name, (odds, among) in chances.items():
        if dice.one_in(odds):
            arguments[name] = dice.pick(among)
    spelled = json.dumps(arguments)
    if dice.one_in(30):
        spelled = dice.pick(
            ('{"limit":1,"limit":50}', "[]", "null", '{"n":1e400,"s":"\\ud800"}', '{"a":[[1]]}')
        )
    members = [f'"name":"{tool}"', f'"arguments":{spelled}', f'"_meta":{_meta(dice, mark)}']
    if dice.one_in(12):
        members.append('"task":{}')
    if dice.one_in(15):
        members.append(dice.pick(('"inputResponses":{}', '"requestState":"s"')))
    if dice.one_in(40):
        members.append(
            dice.pick(
                ('"Name":"get"', '"name":"gone"', '"arguments":{"limit":50}', '"ARGUMENTS":{}')
            )
        )
    if dice.one_in(8):
        dice.shuffle(members)
    method = ("method", '"tools/call"' if not dice.one_in(25) else '"tools\\/call"')
    parts = [("id", id), method, ("params", "{" + ",".join(members) + "}")]
    if dice.one_in(8):
        dice.shuffle(parts)
    if dice.one_in(50):
        parts.append(
            dice.pick((("method", '"ping"'), ("Method", '"ping"'), ("params", '{"name":"gone"}')))
        )
    return line(*parts)


def _meta(dice: Dice, mark: int) -> str:
    held: dict[str, Any] = {"mark": mark}
    if dice.one_in(3):
        held["progressToken"] = mark
    if dice.one_in(5):
        held["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
    return json.dumps(held)


def notice(dice: Dice, ids: list[str]) -> bytes:
    """Return a notification; one that cancels names one of these ids, or another."""
    word = dice.pick(NOTICES)
    params = f'{{"progressToken":{dice.below(50)},"progress":1}}'
    if word == "cancelled":
        params = f'{{"requestId":{dice.pick(ids or ["1"])},"reason":"x"}}'
    return line(("method", f'"notifications/{word}"'), ("params", params))


def garbled(dice: Dice, raw: bytes) -> bytes:
    """Return a line that some cannot read."""
    kind = dice.below(7)
    if kind == 0:
        return raw[: dice.below(len(raw))]
    if kind == 1:
        return (
            raw[:-1]
            + b',"x":'
            + dice.pick((b"NaN", b"[" * 3000, b"\xff", b"1e", b'"\\ud800\\x"'))
            + b"}"
        )
    if kind == 2:
        return b"\xef\xbb\xbf" + raw
    if kind == 3:
        return raw + dice.pick((b"\r", b" ", b"}", b"\x00", b",{}"))
    if kind == 4:
        return raw.replace(b'"', b"'", dice.within(1, 4))
    return dice.pick(NOISE)


def answer(dice: Dice, id: str, method: str, mark: int) -> bytes:
    if dice.one_in(14):
        said = f'{{"code":-32602,"message":"no {mark}","data":{{"mark":{mark}}}}}'
        return line(("id", id), ("error", said))
    if method == "tools/list":
        return line(("id", id), ("result", _listing(dice, mark)))
    if method in ("initialize", "server/discover"):
        changes = dice.pick(("true", "false"))
        tools = f'{{"tools":{{"listChanged":{changes}}}}}'
        held = f'{{"capabilities":{tools},"serverInfo":{{"name":"s"}},"mark":{mark}}}'
        return line(("id", id), ("result", held))
    if method not in ("tools/call", "tasks/result"):
        return line(("id", id), ("result", f'{{"mark":{mark}}}'))
    if dice.one_in(10):
        return line(
            ("id", id),
            ("result", f'{{"task":{{"taskId":"{dice.pick(("t1", "t2"))}"}},"mark":{mark}}}'),
        )
    if dice.one_in(4):
        return results.given(dice, id).line
    items = ",".join(
        f'{{"id":{n},"title":"t{n}","body":{values.string(dice)}}}' for n in range(dice.below(9))
    )
    count = 60_000 if dice.one_in(100) else dice.size(400)
    document = f'{{"items":[{items}],"total":{mark},"text":"{"long " * count}"}}'
    block = results.block(dice, document)
    twice = f',"structuredContent":{document}' if dice.one_in(3) else ""
    return results.envelope(dice, id, "result", f'{{"content":[{block}]{twice}}}').encode(
        "utf-8", "surrogatepass"
    )


def _listing(dice: Dice, mark: int) -> str:
    tools = []
    for name in sorted(set(TOOLS)):
        if dice.one_in(8):
            continue
        held: dict[str, Any] = {
            "name": name,
            "inputSchema": {"type": "object", "properties": {"file": {}}},
        }
        if dice.one_in(8):
            held["annotations"] = {"readOnlyHint": True}
        if dice.one_in(10):
            held["inputSchema"]["properties"]["limit"] = {"type": "integer"}
        if dice.one_in(10):
            held["outputSchema"] = {"type": "object"}
        tools.append(json.dumps(held))
    more = ',"nextCursor":"2"' if dice.one_in(6) else ""
    if dice.one_in(40):
        more += f',"x":"{"long " * 60_000}"'
    return f'{{"tools":[{",".join(tools)}],"mark":{mark}{more}}}'
