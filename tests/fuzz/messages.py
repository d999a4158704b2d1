"""Random messages: what is read of their ends and of the whole, held against a full parse."""

import json
import re
from collections.abc import Hashable, Iterator

from msgspec import Raw, Struct

from proxy.document import message
from proxy.document.message import Message
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError
from tests.fuzz.dice import Dice
from tests.fuzz.fuzzer import Wrong, noted
from tests.fuzz.reading import bare, members, replaced, valid

ENDS = 512
IDS = (
    *("1", "-7", "5.0", '"5"', '"a\\"b"', '"\\u0061"', "null", "true", "[1]", '{"id":1}'),
    *('"\\ud800"', "1e3"),
)
NESTED = (
    *('{"jsonrpc":"2.0","id":9}', '{"id":9,"jsonrpc":"2.0"}', '{"method":"x","id":9}'),
    *('{"a":[{"id":9}]}', '"\\",\\"jsonrpc\\":\\"2.0\\",\\"id\\":9}"', '"id"', "{}", "[]"),
    *("1e400", '"\\ud800"', '"é\u2028"', "null", '"{\\"jsonrpc\\":\\"2.0\\"}"'),
    *('[{"jsonrpc":"2.0","id":9,"result":{}}]', '"' + "x" * 700 + '"'),
)
NAMES = ("result", "error", "method", "params", "x", "ID", "", "jsonrpc2", "res\\u0075lt")
METHODS = ('"tools/call"', '"ping"', '"notifications/progress"', "5", "null", '"a\\/b"')
SPACES = ("", "", "", " ", "\t", "\r", "  ")
_BEGINS = re.compile(rb'\{\s*"(?:jsonrpc|id|method|params|result|error)"\s*:')
NOISE = (
    *(b"debug: ", b"{1} ", b"{", b'{"a":1}', b"[", b"\xff", b"{}{}", b"\xef\xbb\xbf", b'"'),
    *(b"x{y}",),
)


def check_one(seed: int, index: int) -> Iterator[Hashable]:
    return noted(said(Dice.of(seed, "message", index)), check)


class Said(Struct, frozen=True):
    """A line, and where in it a message begins that noise stands before."""

    raw: bytes
    noise: int = 0


def said(dice: Dice) -> Said:
    """Return a message: whole, cut, behind noise, or with members of the same name."""
    pairs = [("jsonrpc", '"2.0"'), ("id", dice.pick(IDS))]
    for _ in range(dice.below(4)):
        name = dice.pick(NAMES)
        pairs.append((name, dice.pick(METHODS) if name == "method" else _value(dice)))
    if dice.one_in(4):
        dice.shuffle(pairs)
    if dice.one_in(12):
        pairs.insert(dice.below(len(pairs)), dice.pick(pairs))
    if dice.one_in(12):
        del pairs[dice.below(len(pairs))]
    raw = _written(dice, pairs).encode("utf-8", "surrogatepass")
    kind = dice.below(10)
    if kind == 0:
        return Said(raw[: dice.below(len(raw) + 1)])
    if kind == 1:
        noise = dice.pick(NOISE) * dice.within(1, 3)
        return Said(noise + raw, len(noise))
    if kind == 2:
        at = dice.below(len(raw))
        return Said(
            raw[:at] + dice.pick((b"\xff", b"\x00", b"", b"NaN", b"}", b",", b"\n")) + raw[at + 1 :]
        )
    return Said(raw)


def _value(dice: Dice) -> str:
    if dice.one_in(3):
        inner = ",".join(
            f'"{name}":{dice.pick(NESTED)}' for name in dice.some(("a", "id", "method"), 3)
        )
        return "{" + inner + "}"
    return dice.pick(NESTED)


def _written(dice: Dice, pairs: list[tuple[str, str]]) -> str:
    gap = SPACES if dice.one_in(5) else ("",)
    parts = [
        f'{dice.pick(gap)}"{name}"{dice.pick(gap)}:{dice.pick(gap)}{value}{dice.pick(gap)}'
        for name, value in pairs
    ]
    return f"{dice.pick(gap)}{{{','.join(parts)}}}{dice.pick(gap)}"


def check(given: Said) -> Iterator[Hashable]:
    raw = given.raw
    start, end = raw[:ENDS], raw[-ENDS:]
    claims = (message.response_key(start, end), message.request_id(start, end))
    asks, answers, succeeds = message.asks(start), message.answers(start), message.succeeds(start)
    read = _read(raw)
    found = message.behind_noise(raw)
    text = raw.decode("utf-8", "replace")
    sound = valid(text) is True and text.encode("utf-8", "surrogatepass") == raw
    held = members(text) if sound else {}
    if sound and text.lstrip()[:1] == "{":
        _members(raw, text, held, read)
    twice = sound and _repeats(text)
    if held and not twice:
        _claims(held, claims, asks=asks, answers=answers, succeeds=succeeds)
    if found is not None and _read(raw[found:]) is None:
        raise Wrong("what stands behind noise is a message", repr(raw[found:]))
    behind = raw[given.noise :].lstrip()
    # An object that begins with any other member is taken for more of the noise.
    begins = _BEGINS.match(behind) is not None and b"{" not in raw[1 : given.noise]
    hidden = given.noise and begins and _speaks(behind)
    if hidden and (found is None or raw[found:] != behind):
        raise Wrong("a message is found behind noise", f"{raw!r}: {found}")
    if isinstance(read, Message):
        _changed(raw, text, held, read)
    yield (
        *(claim is not None for claim in claims),
        asks,
        answers,
        succeeds,
        found is not None,
        type(read).__name__,
        sound,
        twice,
        len(raw) > 2 * ENDS,
        tuple(held)[:4],
    )


def _read(raw: bytes) -> Message | list[Raw] | None:
    try:
        return message.read(raw)
    except DocumentError:
        return None


def _speaks(raw: bytes) -> bool:
    read = _read(raw)
    return isinstance(read, Message) and read.speaks


def _repeats(text: str) -> bool:
    names: list[str] = []
    json.loads(
        text, object_pairs_hook=lambda pairs: names.__setitem__(slice(None), [n for n, _ in pairs])
    )
    return len(set(names)) < len(names)


def _members(raw: bytes, text: str, held: dict[str, str], read: Message | list[Raw] | None) -> None:
    if read is None:
        raise Wrong("what is JSON can be read", text)
    assert isinstance(read, Message)
    expected = {name: replaced(value) for name, value in held.items()}
    for name in Message.__struct_fields__:
        found: Raw = getattr(read, name)
        was = None if found is ABSENT else bytes(found).decode("utf-8", "surrogatepass")
        if was != (expected.get(name) if name != "id" else held.get(name)):
            raise Wrong(
                "a member is read as it is spelled", f"{name}: {was!r}, not {held.get(name)!r}"
            )


def _claims(
    held: dict[str, str],
    claims: tuple[bytes | None, bytes | None],
    *,
    asks: bool,
    answers: bool,
    succeeds: bool,
) -> None:
    id = held.get("id", "").encode("utf-8", "surrogatepass")
    answer, asked = claims
    if answer is not None and (not id or answer != message.id_key(id)):
        raise Wrong("the id of a response is never another", f"{answer!r}, not {id!r}")
    if asked is not None and asked != id:
        raise Wrong("the id of a request is never another", f"{asked!r}, not {id!r}")
    if answer is not None and not {"result", "error"} & set(held):
        raise Wrong("what has the id of a response is one", f"{held}")
    if asks and "method" not in held:
        raise Wrong("what surely asks has a method", f"{held}")
    if answers and not {"result", "error"} & set(held):
        raise Wrong("what surely answers has a result or an error", f"{held}")
    if succeeds and "result" not in held:
        raise Wrong("what succeeds has a result", f"{held}")


def _changed(raw: bytes, text: str, held: dict[str, str], read: Message) -> None:
    """Hold a message with another member against what it was."""
    try:
        made = message.replaced(raw, result=[1])
    except DocumentError:
        return
    if b"\n" in message.one_line(raw):
        raise Wrong("a message is one line", repr(raw))
    if not held:
        return
    now = members(made.decode("utf-8", "surrogatepass"))
    for name, value in held.items():
        kept = value if name == "id" else replaced(value)
        if name != "result" and bare(now.get(name, "")) != bare(kept):
            raise Wrong("other members stay as they were spelled", f"{name}: {made!r}")
    if now.get("result") != "[1]":
        raise Wrong("a member is replaced", repr(made))
    if read.params is not ABSENT and bytes(read.params)[:1] == b"{":
        _recalled(raw, text, read)


def _recalled(raw: bytes, text: str, read: Message) -> None:
    try:
        made = message.with_arguments(raw, read.params, {"a": 1})
    except DocumentError:
        return
    was, now = members(replaced(text)), members(made.decode("utf-8", "surrogatepass"))
    before, after = members(was["params"]), members(now["params"])
    if {**before, "arguments": ""} != {**after, "arguments": ""} or after["arguments"] != '{"a":1}':
        raise Wrong("a call keeps all but its arguments", repr(made))
