"""A look as a model reads it: a value, the notes on what it leaves out, and the views on offer."""

import argparse
import json
import re
from collections.abc import Iterator
from typing import Any

from mcp_abridge.cli import options
from mcp_abridge.replay.answers import ClientView, read
from mcp_abridge.replay.exchanges import recorded
from mcp_abridge.replay.play import Replay
from mcp_abridge.shaping.pipeline import shape
from msgspec import Struct
from msgspec.structs import replace

_NOTICES = {"_abridged", "more", "around", "age"}
_OPENING = re.compile(r"^[\[{]", re.MULTILINE)


class Number(float):
    """A number with a point or an exponent, which is written as it was spelled."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


_DECODER = json.JSONDecoder(parse_float=Number)


class Look(Struct, frozen=True):
    """A value as it is shown, the notes on it by path, and sentences that speak of further views.

    `value` is a text, unless the whole answer is JSON, or has JSON after a line of prose; `whole`
    has the notes as well, and `text` is the answer as it was sent.
    """

    whole: Any
    value: Any
    text: str
    notes: dict[str, Any]
    size: int
    failed: bool = False
    sentences: tuple[str, ...] = ()


class Conversation:
    """A call whose result has a budget, and the views that follow it: a path of `explain`."""

    def __init__(self, result: dict[str, Any], budget: int) -> None:
        arguments = argparse.Namespace(rules=None, allow_python=False, budget=budget)
        exchange = recorded(json.dumps(result).encode(), "tool", None)
        self._replay = Replay(options.selection(arguments, {})(None, None), exchange)
        members = result.get("structuredContent", {})
        alone = [*members.values()] == [block["text"] for block in result["content"]]
        self._member = next(iter(members)) if alone else ""
        self._inner = inner_member(document(result["content"][0]["text"]))

    def first(self) -> list[Look]:
        """Return the look in each copy of the answer."""
        return [*looks(self._replay.answer, self._member, self._inner)]

    def in_shell(self) -> list[str]:
        """Return the sentences that the command `mcp-abridge view FILE` says in place of these."""
        if not self._replay.shaped:
            return []
        job, _ = self._replay.shaped[0]
        answer = read(shape(replace(job, reader="mcp-abridge view FILE")).raw)
        every = looks(answer, self._member, self._inner)
        return [each for look in every for each in look.sentences]

    def ask(self, view: str) -> list[Look]:
        return [*looks(self._replay.ask({"view": view}), self._member, view=True)]


def looks(
    answer: ClientView, member: str = "", inner: str = "", *, view: bool = False
) -> Iterator[Look]:
    """Read the text copy of an answer, and the structured one if there is one.

    `member` is the one that holds a document that is a text, `inner` that with a text which is
    nearly all of an object, and structure. A `view` has remarks beside it.
    """
    assert answer.error is None, answer.error
    texts = [*answer.texts]
    size = sum(len(text.encode()) for text in texts)
    beside: dict[str, Any] = {}
    while len(texts) > 1 and (notice := _notice(texts[-1])):
        beside |= notice
        texts.pop()
    [text] = texts
    names = _NOTICES if view else {"_abridged"}
    is_text = "text" in beside.get("_abridged", {})
    value = text if is_text else with_inner(document(text), inner)
    yield _look(value, beside, text, size, answer.failed, names)
    if answer.structured is not None:
        structured = bytes(answer.structured)
        value = with_inner(_DECODER.decode(structured.decode()), inner)
        claim = {}
        if member and isinstance(value.get(member), str):
            value, claim = value.pop(member), value
            value = value if claim else document(value)
        text = value if isinstance(value, str) else structured.decode()
        yield _look(value, claim, text, len(structured), answer.failed, names)


def _look(
    value: Any, beside: dict[str, Any], text: str, size: int, failed: bool, names: set[str]
) -> Look:
    whole, notes, claim = value, dict(beside.get("_abridged", {})), dict(beside)
    if isinstance(value, dict):
        claim |= {name: value[name] for name in names & value.keys()}
        value = {name: each for name, each in value.items() if name not in claim}
        own = claim.get("_abridged", {})
        notes |= own if isinstance(own, dict) else {}
    ways = ("more", "read_from", "rows", "members")
    sentences = [*map(notes.get, ways), claim.get("more")]
    if isinstance(value, str) and (failed or value.startswith("A view is ")):
        sentences.append(value)
    texts = tuple(each for each in sentences if isinstance(each, str))
    return Look(whole, value, text, notes, size, failed, texts)


def _notice(text: str) -> dict[str, Any]:
    try:
        value = _DECODER.decode(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) and value.keys() <= _NOTICES else {}


def document(text: str) -> Any:
    """Return the JSON that a text is, or that stands in it after words; else the text."""
    opening = _OPENING.search(text)
    if opening is None:
        return text
    try:
        value, end = _DECODER.raw_decode(text, opening.start())
    except ValueError:
        return text
    return text if re.search(r"[\[{]", text[end:]) else value


def inner_member(value: Any) -> str:
    """Return the name of the member of an object that is nearly all of it, and a text with JSON."""
    sizes = (
        {name: len(json.dumps(each)) for name, each in value.items()}
        if isinstance(value, dict)
        else {}
    )
    name = max(sizes, key=lambda each: sizes[each], default="")
    text = value[name] if name and sizes[name] >= 0.95 * sum(sizes.values()) else None
    if not isinstance(text, str) or isinstance(inner := document(text), str):
        return ""
    size = len(json.dumps(inner, ensure_ascii=False, separators=(",", ":")))
    return name if 2 * size >= len(text) else ""


def with_inner(value: Any, name: str) -> Any:
    """Return an object with the JSON in the text of a member in place of that text."""
    inner = value.get(name) if name and isinstance(value, dict) else None
    return value | {name: document(inner)} if isinstance(inner, str) else value
