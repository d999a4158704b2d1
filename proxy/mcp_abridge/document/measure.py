"""Sizes of values in bytes as their document will be written, with parsed texts written back.

`parse` reads a text as structure for the steps that follow. Its TextWriteback writes the text back
at the end, and gives it before, so that sizes are those of the final document.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from msgspec import UNSET, Raw, Struct
from msgspec.structs import astuple

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.paths import Name, Path, select
from mcp_abridge.document.tree import Document, Slot, Value, compact, encode, opened, text, to_text
from mcp_abridge.errors import ShapeMismatch

_NEARLY_ALL = 0.95  # of the bytes of an object
_DEEPEST = 3  # names that lead to a text


class TextFrame(Struct, frozen=True, kw_only=True):
    """The text around the structure that was read from a text.

    `separator` joins lines; it is empty for records, and None if the structure is written as JSON.
    `ended`: it follows the last line too. `last` is the last record if it lacks `ending`, the line
    ends that close the other records. `form` is what a text without a rule was read as: such a text
    is restored if nothing changes the structure. `loses`: the text says more than the structure, so
    that it is what is shown, and the structure is for views alone. `sample`: it is of the beginning
    of the text alone, for what is said of it beside the text.
    """

    before: str = ""
    after: str = ""
    separator: str | None = None
    ended: bool = False
    last: str | None = None
    ending: str = ""
    form: str = ""
    loses: bool = False
    sample: bool = False

    def text(self, value: Value, *, more: bool = False) -> str:
        """Return the text that `value` is written back as; `more`: its end was cut off."""
        return f"{self.before}{self._inner(value, more)}{self.after}"

    def _inner(self, value: Value, more: bool) -> str:
        if self.separator is not None:
            value = opened(value)
        if self.separator is None or not isinstance(value, list):
            return to_text(value)
        pieces = [*map(to_text, value)]
        if self.last is not None and self.last in pieces[:-1]:
            at = pieces.index(self.last)
            pieces[at] += self.ending
        end = self.separator if pieces and (self.ended or more) else ""
        return self.separator.join(pieces) + end


class Structure(Struct, frozen=True):
    """The compact JSON that a text which fills a document was read as, and the text around it.

    `names` lead to the member of an object that has the text; none if the text is the document.
    """

    value: Raw
    frame: TextFrame
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(memoryview(self.value))

    def put_into(self, document: Document) -> None:
        """Put it in place of the text; unchanged, the text is restored at the end."""
        at = Path(".".join(self.names), tuple(map(Name, self.names)))
        [slot] = select(document.root, at)
        source = slot.parent[slot.key]
        sources = [(source, text(source) or "", self.frame)]
        slot.parent[slot.key], document.compact = self.value, not self.names
        document.closers.append(TextWriteback(at, sources, among=False))


def text_in(document: Document) -> tuple[tuple[str, ...], str | None]:
    """Return the text that a document is, or that is nearly all of an object, and the names to it.

    None of any other document. That stays unopened: it would be written anew, however long it is.
    """
    value, names = document.cell[0], tuple[str, ...]()
    if isinstance(value, str):
        return names, value
    if document.ready is not None and value is document.source:
        value = document.ready
    while len(names) < _DEEPEST and _is_object(value):
        members = opened(value)
        sizes = {name: _size(value) for name, value in members.items()}
        name = max(sizes, key=lambda each: sizes[each], default="")
        if not name or sizes[name] < _NEARLY_ALL * sum(sizes.values()):
            break
        value, names = members[name], (*names, name)
        if (content := text(value)) is not None:
            return names, content
    return (), None


def _is_object(value: Value) -> bool:
    return memoryview(value)[0] == 0x7B if type(value) is Raw else isinstance(value, dict)


def _size(value: Value) -> int:
    return len(memoryview(value)) if type(value) is Raw else len(encode(value))


class TextWriteback(Struct):
    """The last step on a document: it writes the texts at one path back.

    `sources` are the texts that were read: each as it came, decoded, and its frame. `among`: the
    path also has null, booleans or numbers beside the texts. The document is not held: in a circle
    with it, texts of megabytes would stay until garbage is collected.
    """

    at: Path
    sources: list[tuple[Raw | str, str, TextFrame]]
    among: bool
    more: bool = False

    @property
    def whole(self) -> TextFrame | None:
        """The frame of the structure if the whole document is the text."""
        return None if self.at.steps else self.sources[0][2]

    @property
    def read_without_rule(self) -> bool:
        return bool(self.sources[0][2].form)

    @property
    def frame(self) -> TextFrame | None:
        """The frame of structure whose text views can have: that of the document, or nearly all."""
        return self.sources[0][2] if self.read_without_rule else self.whole

    def texts(self, document: Document) -> Iterator[tuple[Slot, str]]:
        """Yield each place and its text. Raises ShapeMismatch if texts can no longer be told."""
        places = [
            slot
            for slot in select(document.root, self.at)
            if not self.among or isinstance(slot.open(), str | list | dict)
        ]
        around = [outside for _, _, outside in self.sources]
        if any(outside != around[0] for outside in around[1:]) and len(places) != len(around):
            raise ShapeMismatch(
                f"{self.at}: some of the texts read as structure were moved or removed"
            )
        for position, slot in enumerate(places):
            outside = around[position] if position < len(around) else around[0]
            yield slot, outside.text(slot.get(), more=self.more)

    def write(self, document: Document) -> None:
        """Write the texts; an unchanged text is restored as the server sent it."""
        if self.read_without_rule and not document.changed:
            for slot in select(document.root, self.at):
                slot.parent[slot.key] = self.sources[0][0]
            return
        sources = {string: source for source, string, _ in self.sources}
        for slot, string in self.texts(document):
            if string in sources:
                slot.parent[slot.key] = sources[string]
            else:
                slot.set(string)


def encoded_size(value: Value) -> int:
    """Count the bytes of `value` as compact JSON."""
    content = encode(value)
    return len(content if isinstance(value, str) else compact(content))


def size(document: Document) -> int:
    """Count the bytes of the whole document as it will be written."""
    total = encoded_size(document.cell[0])
    for closing in document.closers:
        for slot, string in closing.texts(document):
            total += encoded_size(string) - encoded_size(slot.get())
    return total


def writeback_at(document: Document, path: Path) -> TextWriteback | None:
    """Return the TextWriteback of the text that `path` leads into, if any."""
    last_first = reversed(document.closers)
    return next((c for c in last_first if path.steps[: len(c.at.steps)] == c.at.steps), None)


def chars_that_fit(string: str, room: int) -> int:
    r"""Count the characters at the start of `string` that take at most `room` bytes as JSON."""
    count, span = 0, min(len(string), room)
    while span > 0:
        part = string[count : count + span]
        size = encoded_size(part) - 2
        if size <= room:
            count, room = count + len(part), room - size
            span = min(len(string) - count, room)
        else:  # a guess; of two characters, the first may fit
            span = span * room // size or span // 2
    return count


def line_bounds(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each line from `start` on, its newline included."""
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield start, end
        start = end


def ending(text: str, most: int) -> int:
    """Return the position of a cut after at most `most` characters: at a line, a word, or there."""
    if most >= len(text):
        return len(text)
    line = text.rfind("\n\n", most - most // 5, most) + 2
    if line > 1:
        return line
    line = text.rfind("\n", most // 2, most) + 1
    return line or text.rfind(" ", most - most // 10, most) + 1 or most


def strings(root: Slot, path: Path) -> Iterator[tuple[Slot, str]]:
    """Yield the strings at `path`, each with its place; for an array, the strings in it."""
    for slot in select(root, path):
        value = slot.get()
        value = value if isinstance(value, list) else slot.open()
        if isinstance(value, str):
            yield slot, value
        elif isinstance(value, list):
            for position, element in enumerate(value):
                string = text(element)
                if string is not None:
                    yield Slot(slot.document, value, position), string


def member(root: Slot, path: Path) -> Slot | None:
    """Return the one place at `path`, or None. Raises ShapeMismatch if an array is on the way."""
    slot = root
    for position, step in enumerate(path.steps):
        value = slot.open()
        if isinstance(value, list):
            way = ".".join(path.text.split(".")[:position])
            raise ShapeMismatch(f"{path} steps through an array{' at ' + way if way else ''}")
        if not isinstance(step, Name) or not isinstance(value, dict) or step.text not in value:
            return None
        slot = slot.child(step.text)
    return slot


def growth_limit(size: int) -> int:
    """Return the most bytes that `size` bytes may grow to: four times as many, and a megabyte."""
    return 4 * size + (1 << 20)


def exceeds(value: Value, limit: int, fuel: Fuel | None = None) -> bool:
    """Return True if `value` takes more than `limit` bytes as JSON. Raises OutOfFuel."""
    room, waiting = limit, [value]
    while waiting and room >= 0:
        item = waiting.pop()
        if fuel is not None and isinstance(item, dict | list):
            fuel.burn(1 + (len(item) >> 2))
        if isinstance(item, dict):
            room -= 2 + sum(len(name) + 4 for name in item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            room -= 2 + len(item)
            if room >= 0 and (inner := _size_of_unopened(item, fuel)) is not None:
                room -= inner
            elif room >= 0:
                waiting.extend(item)
        elif isinstance(item, str):
            room -= 2 + len(item)
        elif isinstance(item, Struct):
            waiting.extend(each for each in astuple(item) if each is not UNSET)
        else:
            room -= len(memoryview(item)) if type(item) is Raw else 1
    return room < 0


def _size_of_unopened(rows: list[Value], fuel: Fuel | None) -> int | None:
    """Return the bytes of elements, or of rows of them, that are all unopened; else None."""
    types = {*map(type, rows)}
    if types not in ({list}, {dict}):
        size, values = 0, iter(rows)
    else:
        cells = sum(map(len, rows))
        if fuel is not None:
            fuel.burn((len(rows) + cells) >> 2)
        size, values = 2 * len(rows) + cells, chain.from_iterable(rows)
        if types == {dict}:
            size += 3 * cells + sum(map(len, values))
            values = chain.from_iterable(map(dict.values, rows))
    try:
        contents: Iterable[Any] = map(memoryview, values)
        return size + sum(map(len, contents))
    except TypeError:
        return None
