"""Cuts values to a number of bytes, keeping their structure and types.

Sizes are measured on encoded parts: a part that is left out is decoded only one level deep, to
count its elements. The members of an object share the room, the small ones first; so do the
elements of an array if there are few. Of an array of objects all stay in brief, if possible; of any
other array the first elements stay, and the last one of plain values.

Invariant: at each path, the elements, members and characters shown, plus those that the notes
count as left out, are the whole.
"""

from itertools import islice
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_abridge.document.measure import chars_that_fit, encoded_size, ending
from mcp_abridge.document.names import label
from mcp_abridge.document.tree import encode, level, loads
from mcp_abridge.query.rich_text import tree_text
from mcp_abridge.summary.brief import Brief, brief, examples_of
from mcp_abridge.summary.cuts import MARK, both_ends
from mcp_abridge.summary.examples import Example, greatest_point, in_turn, of_json
from mcp_abridge.summary.layout import MANY
from mcp_abridge.summary.lookout import Lookout
from mcp_abridge.summary.members import WHOLE, Entry, in_place, is_end, rigid, telling, worth
from mcp_abridge.summary.omissions import (
    CHARACTERS,
    COLUMNS,
    ELEMENTS,
    MEMBERS,
    Omission,
    by_path,
    of_rows,
)
from mcp_abridge.summary.paging import Total, more_than, server_total
from mcp_abridge.summary.place import UNSHOWN, Place, element_place, elements, member_place
from mcp_abridge.summary.shares import share, weights_of
from mcp_abridge.summary.tables import INNER, LARGEST, alike, in_rows, inner_rows, named_rows

_PLENTY = 20  # plain values of an array that other content stands beside
_AMPLE = 2000  # bytes: enough of a large element; with less than that or half of it, it is dropped
_ENOUGH = 6  # rows in each other one, fewer than half of them
_NARROW = 10  # bytes of a row in another one if half of them are shown, at least
_SOME = 150  # bytes: enough of an element if rows in brief take less than a quarter of the room
_FAIR = 400  # bytes: a smaller element is kept or left out, not cut
_MOST_MEMBERS = 1000  # an object with more is a map: it keeps its first members
_RECORD = 60  # members: an object with more is a map, as one of like members is: each gets _FAIR
_BOTH_ENDS = 1000  # bytes of a string whose end is shown too
_LONG = 500  # characters shown of each text of a column: of so few rows all have more room
_OF_TEXT = 1200  # bytes of such a row, so that what stands out in its text is shown
_LINES = 8  # line ends of a text of which more is said than how long it is
DEEPEST = 30  # levels; a deeper container that does not fit is emptied


class SizeReducer(Struct, kw_only=True):
    """Cuts values to a number of bytes, and records each omission.

    `blocks`: the value is an array of the texts of several blocks, which all stay if they can.
    `breadth`: of arrays of objects all rows stay in brief, as objects or as a `table`; `lookout` is
    what is known of the call. `both_ends`: of a long string the end is shown too, if the room is
    ample. `omissions` begins with those made before. `facts` are what is said of all rows, if
    tables cannot say it. `members` is the outermost level of the whole if that has been decoded.
    """

    blocks: bool = False
    breadth: bool = False
    table: bool = False
    both_ends: bool = True
    omissions: list[Omission] = []
    lookout: Lookout
    facts: list[tuple[str, dict[str, Any]]] = []
    members: Any = None
    records: dict[Place, tuple[list[Raw], Place]] = {}  # rows of arrays with their columns' names
    totals: dict[Place, Total] = {}  # of arrays, if the server has more than came
    texts: dict[Place, Any] = {}  # of many lines, with what stands out in them

    @property
    def statements(self) -> dict[str, dict[str, Any]]:
        """The facts by their kind, `same` and `counts`."""
        kinds: dict[str, dict[str, Any]] = {}
        for kind, members in self.facts:
            kinds.setdefault(kind, {}).update(members)
        return kinds

    @property
    def cuts(self) -> list[Omission]:
        """The omissions, one for each path and unit; the greatest loss first."""
        return by_path(self.omissions)

    def fit(
        self, raw: Raw, room: int, at: Place, depth: int = 0, *, beside: bool = False
    ) -> bytes | Raw | None:
        """Return `raw` cut to at most `room` bytes; None if that is impossible.

        Only containers and strings of more than 40 characters are cut, and none is emptied: it
        would look as if it had been empty. `beside`: other long values share the room.
        """
        size = len(raw)
        if size <= room:
            return raw
        if room < len(f'"{MARK}"'.encode()) or rigid(raw) or depth > DEEPEST:
            return None
        value = level(raw) if depth or self.members is None else self.members
        if isinstance(value, str):
            return self._string(value, room, at)
        before = len(self.omissions), len(self.facts)
        if isinstance(value, dict):
            if self.table and (prose := tree_text(raw, value)):
                return self._prose(prose, room, at)
            cut = self._object(value, size, room, at, depth)
        else:
            cut = self._array(value, size, room, at, depth, beside)
        if depth and len(cut) == len("[]"):
            self._forget(before)
            return None
        return cut

    def _forget(self, before: tuple[int, int]) -> None:
        del self.omissions[before[0] :], self.facts[before[1] :]

    def _string(self, text: str, room: int, at: Place) -> bytes | None:
        total = len(text)
        if total <= room and encoded_size(text) <= room:
            return encode(text)  # only its original spelling took more bytes
        if self.both_ends and room >= _BOTH_ENDS and text.count("\n") >= _LINES:
            return self._excerpt(text, room, at)
        room -= len(f'"{MARK}"'.encode())
        if self.both_ends and room >= _BOTH_ENDS:
            end, tail = both_ends(text, room)
        else:
            end, tail = ending(text, chars_that_fit(text, room)), total
        last = total - tail
        if not end + last:
            return None
        self._note(at, end + last, total, CHARACTERS, total - end - last, last)
        return encode(text[:end] + MARK + text[tail:])

    def _excerpt(self, text: str, room: int, at: Place) -> bytes:
        """Return a text of many lines with its headings, or with lines that stand out."""
        from mcp_abridge.summary.excerpt import TextParts  # most structure has no such text

        if at not in self.texts:
            self.texts[at] = TextParts(text)
        part = self.texts[at].excerpt(room, 0, self.lookout.bound, at[1])
        loss, last, more = part.stop - part.start, part.total - part.stop, part.facts
        visible, examples = part.total - loss, part.offers
        self._note(at, visible, part.total, CHARACTERS, loss, last, examples=examples, facts=more)
        return encode(part.text)

    def _prose(self, text: str, room: int, at: Place) -> bytes | None:
        """Return the text of a tree of rich text, by the name of the function of views for it."""
        place = UNSHOWN if UNSHOWN in at[1] else f"plain_text({at[1] or '@'})"
        cut = self._string(text, room - len('{"plain_text":}'), (at[0], place))
        return None if cut is None else b'{"plain_text":%b}' % cut

    def _object(self, value: dict[str, Raw], size: int, room: int, at: Place, depth: int) -> bytes:
        if (shape := self._in_rows(value, size, room, at)) is not None:
            return shape
        self.totals |= {member_place(at, n): total for n, total in server_total(value).items()}
        if self.breadth and (part := named_rows(value, size, at)) is not None:
            self.records[part[0]] = part[1:]
        entries = [
            (encode(name) + b":", raw, member_place(at, name))
            for name, raw in islice(value.items(), room // 4)
        ]
        parts = None
        if len(entries) == len(value) <= _MOST_MEMBERS:
            record = len(value) <= _RECORD and not alike([*value.values()])
            parts = self._all(entries, room, depth, 2 if record else _FAIR)
            if parts is None and record:
                before, some = (len(self.omissions), len(self.facts)), telling(entries, room)
                present = self._all(some, room, depth, 2) if some else None
                parts = in_place(present or [], some, entries)
                if parts is None:
                    self._forget(before)
        if parts and b"" in parts:
            return self._without(entries, parts, size, at)
        if parts is None and self.breadth and self.table:
            # Each member as a row, as the function `entries` of views has it.
            members = [
                Raw(b'{"key":%b,"value":%b}' % (encode(name), raw)) for name, raw in value.items()
            ]
            place = f"entries({at[1] or '@'})"
            rows = brief(members, room, place, self.lookout, table=True)
            if rows is not None:
                return self._rows(rows, len(value), size, (at[0], place), MEMBERS)
        if parts is None:
            parts = self._first(entries, room, depth)
        loss = size - sum(map(len, parts))
        self._note(at, len(parts), len(value), MEMBERS, loss)
        return b"{%b}" % b",".join(parts)

    def _without(self, entries: list[Entry], parts: list[bytes], size: int, at: Place) -> bytes:
        """Return the members that have a part, and note those that have none."""
        present = [*filter(None, parts)]
        absent = [entry for entry, part in zip(entries, parts, strict=True) if not part]
        plain = all(rigid(raw) for _, raw, _ in absent)
        if plain:
            absent.sort(key=worth, reverse=True)
        place = next((each[2][1] for each in absent if worth(each) >= 0), UNSHOWN)
        if plain and at[1] not in ("", "view") and size <= self.lookout.bound:
            place = at[1]
        names = tuple(label(loads(prefix[:-1])) for prefix, _, _ in absent)
        loss = size - sum(map(len, present))
        cut = Omission(
            at[0] or "@", MEMBERS, place, 0, 1, loss, len(present), len(parts), names=names
        )
        self.omissions.append(cut)
        return b"{%b}" % b",".join(present)

    def _array(
        self, value: list[Raw], size: int, room: int, at: Place, depth: int, beside: bool
    ) -> bytes:
        numbered = self.blocks and depth == 0
        if not numbered and (shape := self._in_rows(value, size, room, at)) is not None:
            return shape
        records, records_at = self.records.get(at, (value, at))
        if at in self.records and self.table and room >= _FAIR:
            table = brief(records, room, records_at[1], self.lookout, table=True)
            if table is not None:
                return self._rows(table, len(records), size, records_at, shape=True)
        every, count, last = value, len(value), []
        if count == 1:
            self.lookout.lone.add(element_place(at, 0, numbered)[1])
        # The last one may stay if both ends are plain values.
        plain = count > 2 and all(map(is_end, (value[0], value[-1])))
        few = count <= room // WHOLE
        entries = elements(value, at, numbered) if few else []
        parts = self._all(entries, room, depth, _FAIR if numbered else _AMPLE) if few else None
        views, place, name = tuple[Example, ...](), "", ""
        if parts is None and self.breadth:
            inner, place = inner_rows(value, size, at[1])
            name, views = examples_of(inner, place, inside=True)
            if few and INNER * count <= len(inner) < room // _NARROW:
                parts = self._around(entries, room, at, depth, inner, views)
            shape = None
            if parts is None and len(inner) >= INNER * count:
                shape = self._in_rows(value, size, room, at, least=2)
            if shape is not None:
                return shape
        if parts is None and self.breadth:
            rows = brief(value, room, at[1], self.lookout, table=self.table)
            if rows is not None:
                many = rows.has_name and (count >= MANY or size > 8 * room)
                views = in_turn(rows.examples, views) if many or not views else views
                slim = few and rows.omitted and len(rows.value) < room // 4
                long = few and any(clip >= _LONG for _, _, clip, *_ in rows.clips)
                least = _SOME if slim else _OF_TEXT
                parts = self._all(entries, room, depth, least) if slim or long else None
                # Of rows for those inside of them, the first ones with these.
                inside = f"{place}.{name}".removeprefix(f"{at[1]}[].")
                bare = name and not many and inside not in rows.names
                if parts is None and not bare:
                    return self._rows(replace(rows, examples=views), count, size, at)
            elif plain and not numbered and len(value[-1]) + 3 <= room:
                last = [bytes(value[-1])]
                room -= len(last[0]) + 1
                value = value[:-1][: _PLENTY if beside else None]
        if parts is None:
            entries = elements(value[: room // 2], at, numbered)
            parts = self._first(entries, room, depth) + last
        if len(parts) < count:
            loss = size - sum(map(len, parts))
            views = views or greatest_point(every, at[1], self.lookout.lone)
            views = views or of_json(every, at[1])
            views = views or examples_of(records, records_at[1], inside=False)[1]
            self._note(at, len(parts), count, ELEMENTS, loss, len(last), examples=views)
        return b"[%b]" % b",".join(parts)

    def _around(
        self,
        entries: list[Entry],
        room: int,
        at: Place,
        depth: int,
        inner: list[Raw],
        views: tuple[Example, ...],
    ) -> list[bytes] | None:
        """Return entries with the rows in them in brief; None if most of these are not shown."""
        before = len(self.omissions), len(self.facts)
        parts = self._all(entries, room, depth, _SOME)
        cuts = self.omissions[before[0] :]
        hidden = sum(each.total - each.visible for each in cuts if each.unit == ELEMENTS)
        least = min((each.visible for each in cuts if each.unit == ELEMENTS), default=_ENOUGH)
        few = 2 * hidden > len(inner) and least < _ENOUGH
        if parts is None or few or any(each.unit == MEMBERS for each in cuts):
            self._forget(before)
            return None
        for index, cut in enumerate(cuts, before[0]):
            place = cut.place
            if cut.unit == COLUMNS and cut.following.startswith("[*]"):
                place = f"{at[1]}[*]{place[len(at[1]) :].partition(']')[2]}"  # in each entry
            self.omissions[index] = replace(cut, place=place, examples=views)
        return parts

    def _in_rows(
        self, value: Any, size: int, room: int, at: Place, least: int = MANY
    ) -> bytes | None:
        """Return a tree, or arrays side by side, as rows in brief; None of any other value."""
        fits = self.breadth and self.table and size <= LARGEST
        rows, of, others = in_rows(value, at, room, least) if fits else ([], at, b"")
        cut = brief(rows, room - len(others), of[1], self.lookout, table=True)
        if cut is None:  # arrays are left out: cut, times would stand beside other values
            return b"{}" if others and at[1] else None
        table = self._rows(cut, len(rows), size, of, shape=True)
        return b'{%b"rows":%b}' % (others, table) if others else table

    def _rows(
        self,
        rows: Brief,
        count: int,
        size: int,
        at: Place,
        unit: str = ELEMENTS,
        *,
        shape: bool = False,
    ) -> bytes:
        """Note what `rows` leave out of `count` at a place; of another `shape`, also that they are.

        Returns them as JSON.
        """
        self.facts += rows.facts.items()
        beyond = more_than(count, self.totals.get(at))
        self.omissions += of_rows(rows, count, size, at, unit, shape=shape, beyond=beyond)
        return rows.value

    def _all(self, entries: list[Entry], room: int, depth: int, least: int) -> list[bytes] | None:
        """Return all entries, the large ones cut to a fair share; None if that is below `least`.

        A member of which nothing can be shown is empty.
        """
        sizes = [len(raw) for _, raw, _ in entries]
        if sum(min(size, least) for size in sizes) > room:
            return None
        rest = room - 1 - sum(len(prefix) + 1 for prefix, _, _ in entries)
        elastic = [index for index, (_, raw, _) in enumerate(entries) if not rigid(raw)]
        names = {index: entries[index][0].decode() for index in elastic if entries[index][0]}
        weights = weights_of(names, sizes, self.lookout.tool) or dict.fromkeys(elastic, 1.0)
        elastic.sort(key=lambda index: sizes[index] / weights[index])
        rest -= sum(sizes) - sum(sizes[index] for index in elastic)
        if share([sizes[index] for index in elastic], rest) < least:
            return None
        large = {*elastic}
        parts = [
            b"" if index in large else prefix + bytes(raw)
            for index, (prefix, raw, _) in enumerate(entries)
        ]
        before = len(self.omissions), len(self.facts)
        whole = sum(weights.values())
        for index in elastic:
            prefix, raw, at = entries[index]
            fair, beside = int(rest * weights[index] / whole), len(elastic) > 1
            whole -= weights[index]
            cut = self.fit(raw, fair, at, depth + 1, beside=beside)
            if cut is None:
                if not prefix:
                    self._forget(before)
                    return None
                continue
            parts[index] = prefix + bytes(cut)
            rest -= self.lookout.cost(cut)
        return parts

    def _first(self, entries: list[Entry], room: int, depth: int) -> list[bytes]:
        """Return as many of the first entries as fit; large entries are cut to fit more."""
        rest = room - 1
        limit = max(_AMPLE, rest // 3)
        parts: list[bytes] = []
        for prefix, raw, at in entries:
            rest -= len(prefix) + 1
            most, needed_size = rest, len(raw)
            if needed_size > min(rest, limit * 3 // 2):
                whole = needed_size < (_FAIR if self.breadth else _AMPLE)  # of hits, no part serves
                if parts and (whole or rest < min(needed_size // 2, _AMPLE)):
                    break
                most = min(rest, limit)
            cut = self.fit(raw, most, at, depth + 1)
            if cut is None:
                break
            parts.append(prefix + bytes(cut))
            rest -= self.lookout.cost(cut)
        return parts

    def _note(
        self, at: Place, visible: int, total: int, unit: str, loss: int, last: int = 0, **more: Any
    ) -> None:
        if visible < total or more.get("facts"):
            path, place = at
            cut = Omission(path or "@", unit, place, visible - last, total, loss, visible, total)
            beyond = more_than(total, self.totals.get(at))
            self.omissions.append(replace(cut, last=last, beyond=beyond, **more))
