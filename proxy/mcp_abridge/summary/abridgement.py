"""Cuts any document to a number of bytes, with notes on what is left out and how to see it."""

from functools import cache

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_abridge.document.measure import (
    TextFrame,
    TextWriteback,
    chars_that_fit,
    encoded_size,
    ending,
    member,
    size,
    text_in,
)
from mcp_abridge.document.own_names import ABRIDGED, ESCAPE, marked
from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.document.sizes import LEAST_BOUND
from mcp_abridge.document.tokens import density
from mcp_abridge.document.tree import Document, Value, encode, level, opened, raw, text
from mcp_abridge.query.call import ROWS, Call, Notice
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.summary.cutter import SizeReducer
from mcp_abridge.summary.lookout import Lookout
from mcp_abridge.summary.media import description, without_data
from mcp_abridge.summary.omissions import CHARACTERS, Omission
from mcp_abridge.summary.origin import InText, beginning_of, first_words, in_text, origin
from mcp_abridge.summary.sought import sought_by
from mcp_abridge.summary.ways import VIEW, Ways

NAME = ABRIDGED

_STRUCTURE = 2.25  # times a first look at a text
_SHORT = 64 << 10  # bytes of a document in which `in` finds our name quickly
_EXAMINED = 4500  # bytes of the look by which `help` chooses its examples
_NOTES = 700  # bytes for the notes, or a fifth of the whole if that is less


def abridge(
    document: Document, bound: int, call: Call, viewed: str = "", first_look: int | None = None
) -> None:
    """Cut `document` to `bound` bytes, or a far longer one to a `first_look`.

    `viewed`: the document is the result of this view, so that an expression appended to it shows
    the omitted parts.
    """
    frames = [frame for each in document.closers if (frame := each.whole) is not None]
    read = len(frames) == 1 and not document.textual and frames[0].separator is None
    inside = frames[0] if read else None
    form = "" if inside is None else inside.form
    if call.viewable and call.whole is not None and not viewed:
        call.all_question = call.whole_question(given_whole(document, call))
    whole_object = inside is not None and not inside.loses and document.kind == "object"
    # A view takes `text` for the member.
    place = "" if whole_object and "text" in opened(document.cell[0]) else "text"
    texts = (each.sources[0][1] for each in document.closers if each.read_without_rule)
    count = beginning_of(next(texts, ""), bound)
    task = _Task(document, bound, call, viewed, first_look or bound, place=place)
    task = replace(task, origin=origin(form, place, count, call))
    if inside is not None and inside.loses:
        if call.viewable:
            task = replace(task, inside=in_text(document.cell[0], inside, call))
        document.close()
    if any(each.at.steps and each.read_without_rule for each in document.closers):
        [closing] = document.closers
        task = replace(task, origin=origin(closing.sources[0][2].form, place, count, call))
        call.notices.extend(task.in_object(closing))
        return
    if document.closers:
        if form and len(document.source) <= bound and encoded_size(document.source) <= bound:
            return
        structure = Raw(b"") if inside is None else document.json_of(document.cell[0])
        around = len(encode({"items": [], NAME: task.origin})) if task.origin else 0
        room = bound - around
        if len(structure) <= room and size(document) <= room:
            document.changed |= form != ""  # unchanged, the longer text would be restored
            if task.origin:
                if inside is not None and not (inside.before or inside.after):
                    document.close()
                    document.root.set(structure)
                call.notices.append(Notice(NAME, task.origin))
            return
        document.close()
        if inside is not None:
            notices = task.in_text(structure, inside)
            if notices is not None:
                call.notices.extend(notices)
                return
    call.notices.extend(task.whole())


def examples_of(document: Document, call: Call) -> list[str]:
    """Return the views that a notice on this document would offer: a filter, a count ...

    >>> states = ("open", "closed", "new")
    >>> rows = [{"id": n, "state": states[n % 3], "title": f"title {n}"} for n in range(900)]
    >>> examples_of(Document(rows), Call("list"))
    ["[?state=='new'].[id, title]", 'count_by(@, &state)']
    """
    beside = (e.at for e in document.closers[-1:] if e.frame is not None and e.frame.loses)
    at = next(beside, None)
    slot = document.root if at is None else member(document.root, at)
    value = raw(None if slot is None else slot.get())
    if memoryview(value)[0] not in b"{[":
        return []
    place = ROWS if at is not None and memoryview(value)[0] == 0x5B else ""
    lookout = Lookout(call.tool, _EXAMINED, sought_by(call.arguments), call.ordered)
    reducer = SizeReducer(breadth=True, table=True, lookout=lookout, omissions=[], facts=[])
    reducer.fit(value, min(_EXAMINED, len(value) // 4), (place, place))
    examples = next((cut.examples for cut in reducer.cuts if cut.examples), ())
    return [view for view, _ in examples]


def given_whole(document: Document, call: Call) -> bytes:
    """Return a document as `view='all'` gives it; of one that is too long, a part."""
    assert call.whole is not None
    source, most = document.source if document.closers else document.cell[0], call.whole.size
    content = source if isinstance(source, str) else text(source) if document.textual else None
    if content is None and not document.closers:
        # It is written compactly but once: the notice says its size, then it is cut.
        source = document.cell[0] = document.json_of(source)
        document.compact = True
    if content is None:
        return bytes(memoryview(raw(source))[: most + 1])
    part = content[: most + 1]
    return encode(part) if call.structured else part.encode()


def of_server(content: str) -> dict[str, str]:
    """Return the part of a notice beside a text in which a server may speak as we do, or none."""
    match = _own_name()[0].search(content.encode(errors="surrogatepass"))
    return {} if match is None else {NAME: "in the text it is the server's own"}


@cache
def _own_name() -> tuple[Pattern, Pattern]:
    """Find our name, and escapes that may spell it, in a fifth of the time that `in` takes."""
    return Pattern(NAME), Pattern(ESCAPE)


def _may_have_own_name(content: memoryview) -> bool:
    # For a short one the engine need not be loaded.
    return len(content) < _SHORT or any(each.search(content) for each in _own_name())


def _reserve(bound: int) -> int:
    return min(_NOTES, max(bound // 5, min(bound // 2, 150)))


class _Task(Struct, frozen=True):
    """One document to cut, the notes on it, and the calls that show what they say."""

    document: Document
    bound: int
    call: Call
    viewed: str
    first_look: int
    origin: dict[str, str] = {}
    inside: InText = InText()
    place: str = "text"  # of the text in views

    @property
    def _ways(self) -> Ways:
        return Ways(self.call, self.bound, self.viewed, self.origin)

    def whole(self) -> list[Notice]:
        value = self.document.cell[0]
        content = None if type(value) is Raw and memoryview(value)[0] != 0x22 else text(value)
        if content is not None:
            # Every character takes at least one byte.
            if len(content) <= self.bound and encoded_size(value) <= self.bound:
                return []
            return self._text(content)
        return self._whole_structure(self.document.json_of(value))

    def _whole_structure(self, structure: Raw) -> list[Notice]:
        size = len(structure)
        if size <= self.bound and not self.origin:
            return []
        fitted, notices = self._structured(structure, self._look(size, whole=True))
        if fitted is not None:
            self.document.root.set(fitted)
        return notices

    @property
    def _light(self) -> bool:
        """Content that takes many tokens gets fewer bytes."""
        return self.first_look < self.bound and not self.viewed

    def _look(self, size: int, *, whole: bool = False) -> int:
        """Return the bytes for structure of `size` bytes, which is longer than the bound.

        If it is the `whole` document, a text that is nearly all of it gets as many as one alone.
        """
        if size < 2 * self.bound or self.viewed:
            return self.bound
        look = int(self.first_look * _STRUCTURE)
        content = text_in(self.document)[1] if whole else None
        if content is not None:
            look = min(look, self.first_look + size - encoded_size(content))
        return min(self.bound, look)

    def in_object(self, closing: TextWriteback) -> list[Notice]:
        """Cut an object of which nearly all is a text that was read as structure.

        If the structure loses nothing, the text is written anew with a part of it; views read it,
        and it is shown alone if there is no room for more and a way on.
        """
        document, at, outside = self.document, closing.at, closing.sources[0][2]
        if outside.loses:
            slot = member(document.root, at)
            rows = None if slot is None else slot.get()
            document.close()
            task = replace(self, origin={})
            if self.call.viewable and rows is not None and ROWS not in opened(document.cell[0]):
                task = replace(task, inside=in_text(rows, outside, self.call))
            return task.whole()
        value = document.json_of(document.cell[0])
        document.close()
        for frame in (outside, TextFrame()):
            notices = self.in_text(value, frame, at)
            notes = opened(document.cell[0]).get(NAME, {"more": ""})
            if notices is not None and ("more" in notes or not self.call.viewable):
                return notices
        fitted, notices = self._structured(value, self.bound, self.bound * 2 // 3)
        document.root.set(fitted)
        return notices

    def in_text(self, structure: Raw, outside: TextFrame, at: Path = ROOT) -> list[Notice] | None:
        """Cut structure that was read from a text, and write the text back around it.

        The text may be at a path in an object. None if that leaves too little room: then the text
        must be cut as a whole. If its words have our name, the notes say whose it is.
        """
        if not (outside.before or outside.after or at.steps):
            self.document.root.set(structure)
            return self._whole_structure(structure)
        around, own = encoded_size(outside.before + outside.after), of_server(outside.text(""))
        around += encoded_size(own) if own else 0
        bound = self._look(len(bytes(structure)))
        room = target = bound - around
        for _ in range(4):
            if target < LEAST_BOUND:
                return None
            fitted, notices = self._structured(structure, target)
            if fitted is None:
                return None
            notes = fitted.get(NAME, {}) if isinstance(fitted, dict) else {}
            (notices[0].value if notices else notes).update(own)
            whole = Document(fitted)
            slot = member(whole.root, at)
            if slot is None:
                return None
            slot.set(outside.text(slot.get()))
            content = whole.cell[0]
            beside = sum(encoded_size({NAME: notice.value}) for notice in notices)
            total_size = encoded_size(content) + beside
            if total_size <= bound:
                self.document.root.set(content)
                return notices
            # In a text, quotes and backslashes are escaped once more.
            target = target * room * 19 // (max(total_size - around, 1) * 20)
        return None

    def _text(self, content: str) -> list[Notice]:
        far = not self.viewed and len(content) >= 2 * self.bound
        bound = min(self.bound, self.first_look) if far else self.bound
        if self._light and not far:
            bound = int(bound / density(content[:_EXAMINED].encode()))
        reserve = _reserve(bound)
        frame = len(f'{{"{NAME}":}}')
        beside = of_server(content)
        size = encoded_size(self.inside.note)
        if not self.viewed and size <= reserve // 2:
            beside |= (note := self.inside.with_examples(self.call, bound // 7))
            reserve += encoded_size(note) - size + size // 2  # a search is offered, too
        room, notes = bound - reserve, reserve - frame - (encoded_size(beside) if beside else 0)
        if not self.viewed:
            cut_text = description(content)
            note = {"text": f"0 of {len(content)} chars"}
            if cut_text is None:
                from mcp_abridge.summary.excerpt import TextParts  # most answers are structure

                begins = self.inside.begins if "rows" in beside else ""
                parts = TextParts(content, outline=not self.call.error)
                part = parts.excerpt(room, notes, self.bound - frame, self.place, begins)
                cut_text, note = part.text, part.note(self.call, self.place, notes)
            self.document.root.set(cut_text)
            return [Notice(NAME, note | beside)]
        # The parts that views show must rejoin.
        end = ending(content, chars_that_fit(content, room - 2))
        self.document.root.set(content[:end])
        total = len(content)
        cut = Omission("text", CHARACTERS, VIEW, end, total, total - end, end, total)
        return [Notice(NAME, self._ways.notes([cut], notes) | beside)]

    def _structured(self, raw: Raw, bound: int, least: int = 0) -> tuple[Value, list[Notice]]:
        """Return the value cut to fit with its notes; None if it is neither object nor array."""
        call, origin = self.call, first_words(self.origin)
        if _may_have_own_name(memoryview(raw)):
            raw = marked(raw)
        reserve = min((least or _reserve(bound)) + encoded_size(origin) * bool(origin), _NOTES)
        inside = {} if self.viewed else self.inside.with_examples(call, bound // 7)
        reserve += encoded_size(inside) if inside else 0
        head = memoryview(raw)[0]
        # An array as whole document is written as {"items": [...]}, with the notes beside.
        path = "items" if head == 0x5B and not call.blocks else ""
        omissions: list[Omission] = []
        exempt = VIEW if self.viewed else None
        raw = without_data(raw, (path, ""), omissions, numbered=call.blocks, exempt=exempt)
        reducer = SizeReducer(
            blocks=call.blocks,
            breadth=call.breadth,
            table=not call.structured,
            both_ends=not self.viewed,
            omissions=omissions,
            lookout=Lookout(
                call.tool, self.bound, sought_by(call.arguments), call.ordered, self._light
            ),
            facts=[],
            members=self.document.ready if raw is self.document.source else None,
        )
        if head == 0x7B:
            fitted = reducer.fit(raw, bound - reserve, (path, ""))
            members, facts = level(Raw(fitted or b"{}")), reducer.statements | inside
            if reducer.cuts or facts or origin:
                members[NAME] = self._ways.notes(reducer.cuts, reserve - len(NAME) - 4, facts)
            return members, []
        if head != 0x5B:
            return None, []
        room = bound - reserve - len('{"items":}')
        fitted = Raw(reducer.fit(raw, room, (path, "")) or b"[]")
        notes = self._ways.notes(reducer.cuts, reserve - 17, reducer.statements)
        return fitted, [Notice(NAME, notes)] if notes else []
