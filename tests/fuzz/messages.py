"""Random messages: the claims that are read from their ends, held against a full parse."""

import json
import re
from collections.abc import Hashable, Iterator
from typing import Any

from msgspec import Raw, Struct

from proxy.document import message
from proxy.document.message import Message
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError
from tests.fuzz.fuzzer import Wrong, with_input
from tests.fuzz.grammar import Dice, grow, spaced
from tests.fuzz.reading import bare, envelope, members, pairs, read, replaced, valid

ENDS = 512
IDS = (
    *("1", "-7", "5.0", '"5"', '"a\\"b"', '"\\u0061"', "null", "true", "[1]", '{"id":1}'),
    *('"\\ud800"', "1e3"),
)
NESTED = (
    *('{"jsonrpc":"2.0","id":9}', '{"id":9,"jsonrpc":"2.0"}', '{"method":"x","id":9}'),
    *('{"a":[{"id":9}]}', '"\\",\\"jsonrpc\\":\\"2.0\\",\\"id\\":9}"', '"id"', "{}", "[]"),
    *("1e400", '"\\ud800"', '"é\u2028"', "null", '"{\\"jsonrpc\\":\\"2.0\\"}"'),
    *('[{"jsonrpc":"2.0","id":9,"result":{}}]', '"' + "x" * 700 + '"', '{"id":5,"a":{"method":1}}'),
)
NAMES = ("result", "error", "method", "params", "x", "ID", "", "jsonrpc2", "res\\u0075lt")
METHODS = ('"tools/call"', '"ping"', '"notifications/progress"', "5", "null", '"a\\/b"')
CALL = '{"name":<string>,"arguments":{"a":<scalar>},"_meta":<anything>}'
_BEGINS = re.compile(rb'\{\s*"(?:jsonrpc|id|method|params|result|error)"\s*:')
NOISE = (
    *(b"debug: ", b"{1} ", b"{", b'{"a":1}', b"[", b"\xff", b"{}{}", b"\xef\xbb\xbf", b'"'),
    *(b"x{y}",),
)


class Line(Struct, frozen=True):
    """A line, and the length of the noise before its message."""

    raw: bytes
    noise: int = 0


def check_one(seed: int, index: int) -> Iterator[Hashable]:
    return with_input(line(Dice.of(seed, "message", index)), check)


def line(dice: Dice) -> Line:
    """Return a message: whole, cut, behind noise, or with members of the same name."""
    parts = [("jsonrpc", '"2.0"'), ("id", dice.pick(IDS))]
    for name in dice.some(NAMES, 4)[1:]:
        parts.append((name, dice.pick(METHODS if name == "method" else NESTED)))
    if dice.one_in(6):
        parts.append(("params", grow(dice, CALL)))
    if dice.one_in(4):
        dice.shuffle(parts)
    if dice.one_in(12):
        parts.insert(dice.below(len(parts)), dice.pick(parts))
    if dice.one_in(12):
        del parts[dice.below(len(parts))]
    text = "{" + ",".join(f'"{name}":{value}' for name, value in parts) + "}"
    raw = spaced(dice, text, lines=False).encode("utf-8", "surrogatepass")
    kind, at = dice.below(10), dice.below(len(raw))
    if kind == 0:
        return Line(raw[:at])
    if kind == 1:
        noise = dice.pick(NOISE) * dice.within(1, 3)
        return Line(noise + raw, len(noise))
    if kind == 2:
        odd = dice.pick((b"\xff", b"\x00", b"", b"NaN", b"}", b",", b"\n"))
        return Line(raw[:at] + odd + raw[at + 1 :])
    return Line(dice.pick((b"", b"", b" ", b"\t", b"\r")) + raw)


def check(line: Line) -> Iterator[Hashable]:
    raw = line.raw
    start, end = raw[:ENDS], raw[-ENDS:]
    claims = {
        "answer": message.response_key(start, end),
        "request": message.request_id(start, end),
        "asks": message.asks(start),
        "answers": message.answers(start),
        "succeeds": message.succeeds(start),
    }
    whole, offset, text = read(raw), message.behind_noise(raw), raw.decode("utf-8", "replace")
    sound = valid(text) is True and text.encode("utf-8", "surrogatepass") == raw
    names = [json.loads(name) for name, _ in pairs(text)] if sound else []
    fields = members(text) if sound else {}
    if sound and text.lstrip()[:1] == "{":
        _reads_as_spelled(text, fields, whole)
    if fields and len(fields) == len(names):
        _claims(fields, **claims)
    if offset is not None and read(raw[offset:]) is None:
        raise Wrong("what stands behind noise is a message", repr(raw[offset:]))
    behind = raw[line.noise :].lstrip()
    # An object that begins with any other member is taken for more of the noise.
    begins = _BEGINS.match(behind) is not None and b"{" not in raw[1 : line.noise]
    after = envelope(behind) if line.noise and begins else None
    if after is not None and after.speaks and (offset is None or raw[offset:] != behind):
        raise Wrong("a message is found behind noise", f"{raw!r}: {offset}")
    if isinstance(whole, Message):
        _replaces(raw, text, fields, whole)
    flags = [bool(claim) for claim in claims.values()]
    yield (*flags, offset is not None, type(whole).__name__, len(raw) > 2 * ENDS, *names[:4])


def _reads_as_spelled(text: str, fields: dict[str, str], whole: Message | list[Raw] | None) -> None:
    if not isinstance(whole, Message):
        raise Wrong("what is JSON can be read", text)
    for name in Message.__struct_fields__:
        value: Raw = getattr(whole, name)
        member = None if value is ABSENT else bytes(value).decode("utf-8", "surrogatepass")
        expected = fields.get(name)
        if expected is not None and name != "id":
            expected = replaced(expected)
        if member != expected:
            raise Wrong(
                "a member is read as it is spelled", f"{name}: {member!r}, not {expected!r}"
            )


def _claims(fields: dict[str, str], **claims: Any) -> None:
    id = fields.get("id", "").encode("utf-8", "surrogatepass")
    answer, request, outcome = claims["answer"], claims["request"], {"result", "error"} & {*fields}
    if answer is not None and (not id or answer != message.id_key(id)):
        raise Wrong("the id of a response is never another", f"{answer!r}, not {id!r}")
    if request is not None and request != id:
        raise Wrong("the id of a request is never another", f"{request!r}, not {id!r}")
    if (claims["asks"] and "method" not in fields) or (
        claims["succeeds"] and "result" not in fields
    ):
        raise Wrong("a message is never taken for one of another kind", f"{claims}: {fields}")
    if (answer is not None or claims["answers"]) and not outcome:
        raise Wrong("what has the id of a response is one", f"{claims}: {fields}")


def _replaces(raw: bytes, text: str, fields: dict[str, str], whole: Message) -> None:
    """Check that a message with another member keeps all others."""
    try:
        changed = message.replaced(raw, result=[1])
    except DocumentError:
        return
    if b"\n" in message.one_line(raw):
        raise Wrong("a message is one line", repr(raw))
    if not fields:
        return
    now = members(changed.decode("utf-8", "surrogatepass"))
    for name, value in {**fields, "result": "[1]"}.items():
        if bare(now.get(name, "")) != bare(value if name == "id" else replaced(value)):
            raise Wrong("other members stay as they were spelled", f"{name}: {changed!r}")
    if whole.params is ABSENT or bytes(whole.params)[:1] != b"{":
        return
    try:
        changed = message.with_arguments(raw, whole.params, {"a": 1})
    except DocumentError:
        return
    before = members(members(replaced(text))["params"])
    after = members(members(changed.decode("utf-8", "surrogatepass"))["params"])
    if {**before, "arguments": '{"a":1}'} != after:
        raise Wrong("a call keeps all but its arguments", repr(changed))
