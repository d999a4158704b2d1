"""The lines of clients and servers in the sessions that are fuzzed."""

import json
from typing import Any

from tests.fuzz import results
from tests.fuzz.covered import TOOLS
from tests.fuzz.grammar import Dice, grow, jumbled
from tests.fuzz.reading import members

IDS = ('"a"', "0", "-1", "1.0", '"1"', '"\\u0061"', "1e3", '"é"', "null", "true", "[1]", '{"a":1}')
METHODS = ("ping", "resources/read", "prompts/get", "logging/setLevel", "no/such")
NOISE = (
    *(b"debug: 1", b"", b"  ", b"{", b"[]", b"5", b'{"level":"info"}', b"\xff\xfe", b'"text"'),
    *(b"nul", b'{"jsonrpc":"2.0"', b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":1}'),
    *(b"[" * 2000, b"\xef\xbb\xbf"),
)
ARGUMENTS: dict[str, tuple[int, tuple[Any, ...]]] = {
    "offset": (3, (0, 2, 4, 100, -1, "2")),
    "limit": (3, (1, 2, 10, 11, 50, "5")),
    "startIndex": (6, (0, 10, 30)),
    "action": (4, ("x", "y")),
    "path": (6, ("a.md",)),
    "ours": (8, (2,)),
}
# What two readers may read in two ways, or what the proxy cannot decode.
ODD_ARGUMENTS = (
    *('{"limit":1,"limit":50}', "[]", "null", '{"n":1e400,"s":"\\ud800"}', '{"a":[[1]]}'),
)
ODD_MEMBERS = (
    *(',"task":{}',) * 4,
    *(',"inputResponses":{}', ',"requestState":"s"') * 2,
    *(',"Name":"get"', ',"name":"gone"', ',"arguments":{"limit":50}', ',"ARGUMENTS":{}'),
)
TWICE = (',"method":"ping"', ',"Method":"ping"', ',"params":{"name":"gone"}')


def line(members: str) -> bytes:
    return f'{{"jsonrpc":"2.0",{members}}}'.encode("utf-8", "surrogatepass")


def request(dice: Dice, id: str, mark: int) -> bytes:
    """Return a request of a client, told from all others by its mark."""
    if dice.below(20) < 12:
        return call(dice, id, mark)
    client = dice.pick(("Zed", "claude-code", "x"))
    method, params = dice.pick(
        (
            ("tools/list", dice.pick(("{}", '{"cursor":"2"}'))),
            ("initialize", f'{{"clientInfo":{{"name":"{client}"}},"mark":{mark}}}'),
            ("server/discover", _meta(dice, mark)),
            (dice.pick(("tasks/result", "tasks/get")), f"{{{_task_id(dice)}}}"),
            (dice.pick(METHODS), f'{{"mark":{mark},"uri":"call"}}'),
        )
    )
    return line(f'"id":{id},"method":"{method}","params":{params}')


def call(dice: Dice, id: str, mark: int) -> bytes:
    """Return a call of a tool, seldom one that two readers may read in two ways."""
    arguments = dice.pick_options({**ARGUMENTS, "view": (8, (grow(dice, "<view>"),))})
    spelled = dice.pick(ODD_ARGUMENTS) if dice.one_in(30) else json.dumps(arguments)
    odd = dice.pick(ODD_MEMBERS) if dice.one_in(7) else ""
    meta, tool = _meta(dice, mark), dice.pick(TOOLS)
    params = f'{{"name":"{tool}","arguments":{spelled},"_meta":{meta}{odd}}}'
    if dice.one_in(20):
        params = jumbled(dice, params, whole=True)
    method = "tools\\/call" if dice.one_in(25) else "tools/call"
    twice = dice.pick(TWICE) if dice.one_in(50) else ""
    if dice.one_in(8):
        return line(f'"params":{params},"method":"{method}","id":{id}')
    return line(f'"id":{id},"method":"{method}","params":{params}{twice}')


def _meta(dice: Dice, mark: int) -> str:
    more = {
        "progressToken": (3, (mark,)),
        "io.modelcontextprotocol/protocolVersion": (5, ("2026-07-28",)),
    }
    return json.dumps({"mark": mark, **dice.pick_options(more)})


def notice(dice: Dice, ids: list[str]) -> bytes:
    """Return a notification; one that cancels names one of these ids, or another."""
    word = dice.pick(("initialized", "progress", "roots/list_changed", "cancelled"))
    params = f'{{"progressToken":{dice.below(50)},"progress":1}}'
    if word == "cancelled":
        params = f'{{"requestId":{dice.pick(ids or ["1"])},"reason":"x"}}'
    return line(f'"method":"notifications/{word}","params":{params}')


def garbled(dice: Dice, raw: bytes) -> bytes:
    odd = dice.pick((b"NaN", b"[" * 3000, b"\xff", b"1e", b'"\\ud800\\x"'))
    forms = (
        raw[: dice.below(len(raw))],
        raw[:-1] + b',"x":' + odd + b"}",
        b"\xef\xbb\xbf" + raw,
        raw + dice.pick((b"\r", b" ", b"}", b"\x00", b",{}")),
        raw.replace(b'"', b"'", dice.within(1, 4)),
        *(dice.pick(NOISE), dice.pick(NOISE)),
    )
    return dice.pick(forms)


def answer(dice: Dice, id: str, method: str, mark: int) -> bytes:
    if dice.one_in(14):
        error = f'{{"code":-32602,"message":"no {mark}","data":{{"mark":{mark}}}}}'
        return line(f'"id":{id},"error":{error}')
    if method in ("tools/call", "tasks/result"):
        return _result(dice, id, mark)
    result = f'{{"mark":{mark}}}'
    if method == "tasks/get":
        result = _task(dice, mark)
    elif method == "tools/list":
        result = _listing(dice, mark)
    elif method in ("initialize", "server/discover"):
        tools = f'{{"tools":{{"listChanged":{dice.pick(("true", "false"))}}}}}'
        result = f'{{"capabilities":{tools},"serverInfo":{{"name":"s"}},"mark":{mark}}}'
    return line(f'"id":{id},"result":{result}')


def _result(dice: Dice, id: str, mark: int) -> bytes:
    if dice.one_in(10):
        task = dice.pick((f'"task":{{{_task_id(dice)}}}', f'"resultType":"task",{_task_id(dice)}'))
        return line(f'"id":{id},"result":{{{task},"mark":{mark}}}')
    return results.response(dice, id)


def _task_id(dice: Dice) -> str:
    return f'"taskId":"{dice.pick(("t1", "t2", "none"))}"'


def _task(dice: Dice, mark: int) -> str:
    """Return the state of a task, with a response of its call unless that still runs."""
    final = members(results.response(dice, "1").decode("utf-8", "surrogatepass"))
    inner = [f'"{name}":{final[name]}' for name in ("result", "error") if name in final]
    more = [] if dice.one_in(4) else inner
    return "{" + ",".join([_task_id(dice), f'"mark":{mark}', *more]) + "}"


def news(dice: Dice, mark: int) -> bytes:
    """Return a notification about a task."""
    return line(f'"method":"notifications/tasks","params":{_task(dice, mark)}')


def _listing(dice: Dice, mark: int) -> str:
    tools = []
    for name in sorted(set(TOOLS)):
        properties: dict[str, Any] = {
            "file": {},
            **dice.pick_options({"limit": (10, ({"type": "integer"},))}),
        }
        more = {
            "annotations": (8, ({"readOnlyHint": True},)),
            "outputSchema": (10, ({"type": "object"},)),
        }
        schema = {"type": "object", "properties": properties}
        if not dice.one_in(8):
            tools.append(
                json.dumps({"name": name, "inputSchema": schema, **dice.pick_options(more)})
            )
    cursor = ',"nextCursor":"2"' if dice.one_in(6) else ""
    long = f',"x":"{"long " * 60_000}"' if dice.one_in(40) else ""
    return f'{{"tools":[{",".join(tools)}],"mark":{mark}{cursor}{long}}}'
