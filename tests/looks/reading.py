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

    def first(self) -> list[Look]:
        """Return the look in each copy of the answer."""
        return [*looks(self._replay.answer, self._member)]

    def in_shell(self) -> list[str]:
        """Return the sentences that the command `mcp-abridge view FILE` says in place of these."""
        if not self._replay.shaped:
            return []
        job, _ = self._replay.shaped[0]
        answer = read(shape(replace(job, reader="mcp-abridge view FILE")).raw)
        return [each for look in looks(answer, self._member) for each in look.sentences]

    def ask(self, view: str) -> list[Look]:
        return [*looks(self._replay.ask({"view": view}), self._member, view=True)]


def looks(answer: ClientView, member: str = "", *, view: bool = False) -> Iterator[Look]:
    """Read the text copy of an answer, and the structured one if there is one.

    `member` is the one that holds a document that is a text. A `view` has remarks beside it.
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
    yield _look(text if is_text else document(text), beside, text, size, answer.failed, names)
    if answer.structured is not None:
        structured = bytes(answer.structured)
        value = _DECODER.decode(structured.decode())
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
    sentences = [notes.get("more"), notes.get("read_from"), claim.get("more")]
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
    return value if text[end:].strip() in ("", "```") else text
