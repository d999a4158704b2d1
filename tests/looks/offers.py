"""The views that a look offers, read from its sentences as a model reads them, and what is wrong.

Each must run as it is written, show something, and be what the sentence says of it.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from tests.looks.documents import Sample
from tests.looks.oracle import UNKNOWN, dumps, number, value_of
from tests.looks.reading import Conversation, Look
from tests.looks.statements import Falsehood, falsehoods

_VIEW = re.compile(r"""view=(?:'([^']*)'|"((?:[^"\\]|\\.)*)")([^;]*)""")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_ADVICE = re.compile(r"write a JMESPath such as (.+), or help|; write ([^,;]+)$")
_FOR_THIS = re.compile(r"^For this result: (.+?)(?: or (.+))?$", re.MULTILINE)
_WINDOW = re.compile(r"(.*)\[(\d+):\d+\](.*)", re.DOTALL)
_OF_WINDOW = re.compile(r"(.*)\[(\d+):\d+\] \| ", re.DOTALL)
_LEFT = re.compile(r" is next, (\d+) of (\d+) (elements|chars|lines) are left")
_FIRST = re.compile(r"(?:first )?(\d+)(?: and last \d+)? of \d+(?: chars)?(?:;|$)")
_LINE = re.compile(r" shows line (\d+)")
_STEPS = 3  # views that follow one another

SLIPS = ("nosuch", "items[*].nosuch", "[?nosuch=='x']", "help", "[?id=='3']", "a.", "sum(@)")
"""Views that a model may write, whose answers advise others."""


class Offer(Struct, frozen=True):
    """A view, and what the sentence says of it."""

    view: str
    label: str


class Window(Struct, frozen=True):
    """The part of a text or array that a view shows; `rest` is what follows in the view.

    A window of a window, which is its `outer`, begins there at an `offset`.
    """

    place: str
    start: int
    rest: str
    outer: str
    offset: int

    @classmethod
    def of(cls, view: str) -> "Window | None":
        """Return the window that a view is; None if it is none."""
        match = _WINDOW.fullmatch(view)
        if match is None:
            return None
        outer, offset = _OF_WINDOW.fullmatch(match[1]), int(match[2])
        place, start = (match[1], 0) if outer is None else (outer[1], int(outer[2]))
        return cls(place, start + offset, match[3], match[1].removesuffix(" | "), offset)


def offers(look: Look) -> Iterator[Offer]:
    for sentence in look.sentences:
        for plain, escaped, label in _VIEW.findall(sentence):
            yield Offer(plain or re.sub(r"\\(.)", r"\1", escaped), label)
        for views in (*_ADVICE.findall(sentence), *_FOR_THIS.findall(sentence)):
            yield from (Offer(view, "") for view in views if view)


def breaches(sample: Sample, conversation: Conversation, look: Look) -> Iterator[Falsehood]:
    """Yield what is wrong with each offer of a look, and with those of the views that it offers."""
    whole = whole_of(sample, look)
    for offer in offers(look):
        yield from _unseen(sample, whole, look, offer)
        yield from _breaches(sample, whole, conversation, look, offer)


def _unseen(sample: Sample, whole: Any, look: Look, offer: Offer) -> Iterator[Falsehood]:
    """Hold the rest of a text that is offered to begin where what is shown of it ends."""
    window = Window.of(offer.view)
    place = value_of(whole, sample.texts[0], window.place) if window and window.place else None
    if window and isinstance(place, str) and not window.rest and "\x1b" not in place:
        before = place[: window.start]
        spellings = (before, inner := dumps(before)[1:-1], dumps(inner)[1:-1])
        if not any(each in look.text for each in spellings):
            yield Falsehood("gap", offer.view, f"without all of {before!r}")


def whole_of(sample: Sample, look: Look) -> Any:
    """Return the document that views are of; UNKNOWN if it was read from a text."""
    if sample.read_by_us(look.value):
        return UNKNOWN
    if isinstance(sample.value, str):
        if look.notes.keys() & {"rows", "members"}:
            return UNKNOWN  # which are in the text
        return {"text": sample.texts[0]}
    if not sample.lossy:
        return sample.value
    names = [*sample.value[0]]
    columns = [_typed([row[name] for row in sample.value]) for name in names]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _typed(cells: list[str]) -> list[Any]:
    """Return the cells of a column of CSV: numbers and null if there is nothing else."""
    filled = [*filter(None, cells)]
    if not filled or not all(map(_NUMBER.fullmatch, filled)):
        return [*cells]
    return [json.loads(cell) if cell else None for cell in cells]


def _breaches(
    sample: Sample, whole: Any, conversation: Conversation, look: Look, offer: Offer, step: int = 1
) -> Iterator[Falsehood]:
    def wrong(kind: str, claim: object) -> Falsehood:
        return Falsehood(kind, offer.view, f"{offer.label}: {claim!s:.300}")

    text = sample.texts[0]
    expected = value_of(whole, text, offer.view)
    for answer in conversation.ask(offer.view):
        if answer.failed:
            yield wrong("refused", answer.value)
            continue
        value = answer.value
        bare = isinstance(value, str) or "view" not in value
        if isinstance(expected, str) and expected.startswith(answer.text.partition("…")[0]):
            bare, value = True, answer.text  # a part of JSON
        part = value if bare else value["view"]
        if part in (None, "", [], {}):
            yield wrong("nothing", answer.whole)
            continue
        if expected is not UNKNOWN:
            source = expected if bare else {"view": expected}
            for each in falsehoods(source, answer):
                yield wrong(each.kind, f"{each.path}: {each.claim}")
        yield from (wrong(*each) for each in _label(whole, text, look, offer, expected))
        if step < _STEPS and answer.size and isinstance(expected, str | list):
            yield from _sequel(sample, whole, conversation, answer, offer, part, step)


def _label(
    whole: Any, text: str, look: Look, offer: Offer, expected: Any
) -> Iterator[tuple[str, object]]:
    label, value = offer.label.strip(), expected
    if value is UNKNOWN:
        return
    if line := _LINE.match(offer.label):
        lines = re.findall(r"\d+", offer.view)
        if not int(lines[0]) <= int(line[1]) <= int(lines[1]):
            yield "label", f"line {line[1]}"
    elif label == "counts":
        place = value_of(whole, text, offer.view[len("count_by(") :].rpartition(", &")[0])
        if not isinstance(value, dict) or sum(value.values()) != len(place):
            yield "label", value
    elif label.startswith("finds the greatest"):
        place, _, by = offer.view[len("max_by(") : -1].rpartition(", &")
        rows = value_of(whole, text, place)
        if rows is UNKNOWN:
            return
        every = [value_of(each, "", by) for each in rows or ()]
        numbers = [each for value in every if (each := number(value)) is not None]
        most = max(numbers, default=None)
        if number(value_of(value, "", by)) != most:
            yield "label", f"{value!r:.80}, and {most} is greater"
    elif label == "filters" and not value:
        yield "label", value


def _sequel(
    sample: Sample,
    whole: Any,
    conversation: Conversation,
    answer: Look,
    offer: Offer,
    part: Any,
    step: int,
) -> Iterator[Falsehood]:
    """Hold the view that follows a window to begin where the part ends that was shown."""
    window = Window.of(offer.view)
    for following in offers(answer):
        after = Window.of(following.view)
        same = window and after and (window.place, window.rest) == (after.place, after.rest)
        if window and after and same and not isinstance(part, dict):
            first = _FIRST.search(answer.notes.get("view", answer.notes.get("text", "")))
            end = window.start + (int(first[1]) if first else len(part))
            if after.start != end:
                claim = f"after {end} comes {following.view}"
                yield Falsehood("gap", offer.view, claim)
            rest, outer = _LEFT.match(following.label), after.outer
            place = value_of(whole, sample.texts[0], outer) if outer else whole
            first_left = end - (after.start - after.offset)
            if (
                rest
                and isinstance(place, str | list)
                and (int(rest[1]), int(rest[2])) != (len(place) - first_left, len(place))
            ):
                yield Falsehood("amounts", offer.view, following.label)
        if not (window and after and window.place == after.place):
            yield from _unseen(sample, whole, answer, following)
        yield from _breaches(sample, whole, conversation, answer, following, step + 1)
