"""Documents cut to random bounds: what is shown and what the notes count are the whole."""

import json
import re
from collections.abc import Hashable, Iterator
from typing import Any

from msgspec import Struct

from proxy.document.surrogates import replace_lone
from proxy.document.tree import Document
from proxy.errors import DocumentError
from proxy.transforms.abridge import Abridge
from proxy.transforms.base import Call
from tests.fuzz.dice import Dice
from tests.fuzz.fuzzer import Wrong, noted
from tests.fuzz.values import document, write
from tests.omissions import check_notes, check_text, left_out

_BOUNDS = (300, 400, 700, 1000, 2000, 5000, 10_000)
_ROWS = (3, 10, 40, 200)


class _Cut(Struct):
    """A document as JSON, and how it is cut."""

    raw: bytes
    bound: int
    structured: bool
    breadth: bool


def check_one(seed: int, index: int) -> Iterator[Hashable]:
    """Cut one document, and hold its notes against what it shows."""
    dice = Dice.of(seed, "omissions", index)
    tree = [document(dice) for _ in range(dice.pick(_ROWS))] if dice.one_in(3) else document(dice)
    bound, breadth = dice.pick(_BOUNDS), not dice.one_in(4)
    cut = _Cut(write(dice, tree).encode(), bound, dice.one_in(2), breadth)
    yield from noted(cut, _check)


def _check(cut: _Cut) -> Iterator[Hashable]:
    try:
        document = Document.read(replace_lone(cut.raw))
        before = json.loads(document.encode())
    except (DocumentError, RecursionError):
        return
    call = Call(
        "t",
        bound=cut.bound,
        structured=cut.structured,
        breadth=cut.breadth,
        viewable=True,
        notices=[],
    )
    Abridge()(document.root, call)
    written = document.encode()
    after = json.loads(written)
    notes = _notes(call, before, after)
    if notes is None:
        return
    size = len(written) + sum(len(json.dumps(notice.value)) for notice in call.notices)
    if size > cut.bound + 200:
        raise Wrong("the document is within its bound", f"{size} of {cut.bound}")
    if cut.structured and any(
        " columns" in note and (name == "others" or "." in name) for name, note in notes.items()
    ):
        return  # which of several arrays at one path are in brief, the notes do not say
    path = "items" if isinstance(before, list) else ""
    try:
        if isinstance(before, str):
            check_text(before, after, notes)
        else:
            check_notes(
                left_out(before, after, path, notes=notes if cut.structured else None), notes
            )
    except AssertionError as error:
        raise Wrong("shown and left out are the whole", str(error)) from error
    yield cut.bound, cut.structured, *(re.sub(r"\d+", "0", str(note)) for note in notes.values())


def _notes(call: Call, before: Any, after: Any) -> dict[str, Any] | None:
    """Return the notes, which are the last member of an object; None if nothing was cut."""
    if call.notices:
        notes: dict[str, Any] = call.notices[0].value
        return notes
    if after == before or not isinstance(after, dict):
        return None
    name, notes = after.popitem()
    return notes if name.startswith("_abridged") else None
