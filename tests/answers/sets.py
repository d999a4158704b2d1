"""The sets whose results a file describes: those of SEEN, and unseen.yaml for the end of a work.

Once unseen.yaml was looked at it is no measure any more: third.yaml, fourth.yaml and fifth.yaml
were it before.

A result is a template (shapes.py) in a form, or was recorded from a running server.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from tests.answers.question import Alone, Atom, Entry, Every, Group, Question, Row
from tests.answers.shapes import Maker, Words, at_path, lines

HERE = Path(__file__).parent
SEEN = ("second", "third", "fourth", "fifth")
Json = dict[str, Any]


class Described(Struct, frozen=True, forbid_unknown_fields=True):
    """A result, and the questions about it.

    `names` are paths of the members that name the rows of its lists; of a text, regular
    expressions between slashes, whose group is the name.
    """

    group: Group
    about: str
    form: str = "compact"
    value: Any = None
    recorded: str = ""
    names: tuple[str, ...] = ()
    words: Words = {}
    before: str = ""
    after: str = ""
    questions: dict[str, Entry] = {}


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_FORMS: dict[str, Callable[[Any], str]] = {
    "compact": compact,
    "structured": compact,
    "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
    "text": lambda value: "\n".join(lines(value)),
}


@cache
def described(name: str) -> dict[str, Described]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = yaml.load((HERE / f"{name}.yaml").read_text(), loader)
    return msgspec.convert(content, dict[str, Described])


@cache
def document(name: str, tool: str) -> Any:
    """Return the value that a result shows, or its text."""
    result = described(name)[tool]
    if not result.recorded:
        value = Maker(tool, result.words).fill(result.value)
        return _FORMS["text"](value) if result.form == "text" else value
    text = _text(_recorded(result))
    try:
        return json.loads(text)
    except ValueError:
        return text


def whole(name: str, tool: str) -> Json:
    """Return a result as the server sends it."""
    result = described(name)[tool]
    if result.recorded:
        return _recorded(result)
    value = document(name, tool)
    text = value if isinstance(value, str) else _FORMS[result.form](value)
    content = [{"type": "text", "text": f"{result.before}{text}{result.after}"}]
    structured = {"structuredContent": value} if result.form == "structured" else {}
    return {"content": content, **structured}


def _recorded(result: Described) -> Json:
    recording: Json = json.loads((HERE / "recorded" / result.recorded).read_text())
    return dict(recording["result"])


def _text(result: Json) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


@cache
def described_questions(name: str) -> tuple[Question, ...]:
    return tuple(
        _question(name, tool, word, entry)
        for tool, result in sorted(described(name).items(), key=lambda each: each[1].group)
        for word, entry in result.questions.items()
    )


def _question(name: str, tool: str, word: str, entry: Entry) -> Question:
    every = tuple(_every(name, tool, entry.every)) if entry.every else ()
    own = {"group": described(name)[tool].group, "set": name, "tool": tool}
    return entry_question(f"{tool}/{word}", entry, every, **own)


def entry_question(name: str, entry: Entry, every: tuple[Row, ...], **own: Any) -> Question:
    """Return the question of an entry; `every` row of the result is evidence, too."""
    evidence: tuple[tuple[Atom, ...], ...] = tuple(filter(None, (entry.rows, every)))
    if entry.alone:
        evidence = ((Alone(entry.alone),), *evidence)
    own |= {
        "name": name,
        "evidence": evidence,
        "views": (entry.views,) if isinstance(entry.views, str) else entry.views,
        "pattern": entry.pattern or entry.word,
    }
    return Question(**{**msgspec.structs.asdict(entry), **own})


def _every(name: str, tool: str, every: Every) -> Iterator[Row]:
    value = document(name, tool)
    if every.pattern:
        for match in re.finditer(every.pattern, value, re.MULTILINE):
            yield Row(match.groups() or (match[0],), near=every.near)
        return
    for row in at_path(value, every.rows):
        cells = [cell for path in every.of for cell in at_path(row, path)]
        key = at_path(row, every.key) if every.key else [""]
        yield Row(tuple(map(_cell, cells)), near=every.near, key=_cell(key[0]))


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
