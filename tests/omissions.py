"""Counts the parts that a shortened document leaves out, and compares its notes with them."""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from mcp_abridge.document.escapes import without_escapes
from mcp_abridge.document.printable import quoted

_AMOUNT = re.compile(
    r"(?:(\d+)|first (\d+) and last (\d+)) of (\d+)\+?( members| chars| columns)?"
    r"(?: in (\d+) (?:arrays|objects|texts))?(?:, without (.+?)(?: and (\d+) more)?)?"
)
_SUMS = re.compile(r"(.+) at (\d+) paths?(?:, most at (.+))?")
_PLAIN = re.compile(r'(?:\.?(?:"(?:[^"\\]|\\.)*"|[^".\[]+))+')
_PAIR = re.compile(r"\A\[\?(\w+)=='([^']*)'\]\.(\w+) \| \[0\]")
_ABSENT = object()


class LeftOut:
    """The amounts that a document leaves out of another, by path and unit.

    `counts` has elements, members and characters, each `shown`, `total` and the number of `places`;
    `columns` the names that rows in brief lack, `elsewhere` those of the rows that are not shown,
    `texts` those that are cut, as they were and as they are shown.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.columns: dict[str, set[str]] = defaultdict(set)
        self.elsewhere: dict[str, set[str]] = defaultdict(set)
        self.statements: dict[str, dict[str, Any]] = defaultdict(dict)
        self.texts: dict[str, list[tuple[str, str]]] = defaultdict(list)

    def count(self, path: str, unit: str, visible: int, total: int) -> None:
        if visible < total:
            for kind, number in {"shown": visible, "total": total, "places": 1}.items():
                self.counts[path or "@", unit, kind] += number


def left_out(
    before: Any,
    after: Any,
    path: str = "",
    *,
    blocks: bool = False,
    notes: dict[str, str] | None = None,
) -> LeftOut:
    """Count the shown parts of each array, object and text that `after` has cut from `before`.

    `notes` tell apart rows that lack some columns, and objects that lack their last members.
    """
    brief = [
        name.removeprefix("@.") for name, note in (notes or {}).items() if " columns" in str(note)
    ]
    amounts = LeftOut()
    statements: Any = notes or {}
    for name, counts in (statements.get("same", {}) | statements.get("counts", {})).items():
        array, _, column = name.partition("[].")
        amounts.statements[array][column] = (
            counts if name in statements.get("counts", {}) else [counts]
        )
    _compare(amounts, before, after, path, path, blocks=blocks, brief=brief)
    return amounts


def _compare(
    amounts: LeftOut,
    before: Any,
    after: Any,
    path: str,
    place: str,
    *,
    blocks: bool = False,
    brief: list[str],
) -> None:
    if isinstance(before, str) and before != after:
        amounts.texts[path].append((before, after))
        amounts.count(path, " chars", characters(before, after), len(before))
    elif isinstance(before, dict) and after.keys() >= {"columns", "rows"} > before.keys() & {
        *("columns", "rows")
    }:
        # A map of like objects is shown as its entries are.
        entries = [{"key": name, "value": value} for name, value in before.items()]
        _compare_rows(amounts, entries, _rows(after, brief=True) or [], path or "[]", " members")
    elif isinstance(before, dict):
        amounts.count(path, " members", len(after), len(before))
        for name, value in after.items():
            inner, way = below(path, name), f"{place}.{_spelled(name)}" if place else _spelled(name)
            _compare(amounts, before[name], value, inner, way, brief=brief)
    elif isinstance(before, list):
        before, after = unpaired(before, after)
        statements = amounts.statements[place]
        rows = _rows(after, bool(statements or {path or "@", "others"} & {*brief}), statements)
        if rows is not None:
            _compare_rows(amounts, before, rows, path, "")
            return
        amounts.count(path, "", len(after), len(before))
        for position, (source, one) in enumerate(_pairs(before, after)):
            inner = f"{path}[{position}]" if blocks else f"{path}[]"
            _compare(amounts, source, one, inner, f"{place}[{position}]", brief=brief)


def unpaired(rows: Any, after: Any) -> tuple[Any, Any]:
    """Return rows of names with values, and the table of them, as those of objects."""
    columns = after.get("columns", ()) if isinstance(after, dict) else ()
    first = next(filter(None, map(_PAIR.match, columns)), None)
    if first is None:
        return rows, after
    names = [
        _PAIR.sub(lambda pair: _spelled(pair[2]) + "[0]" * (pair.end() < len(pair.string)), column)
        for column in columns
    ]
    objects = [
        {each[first[1]]: each[first[3]] for each in reversed(row) if len(each) == 2} for row in rows
    ]
    return objects, after | {"columns": names}


def _pairs(before: list[Any], after: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield each element shown with its source: the first ones, or those and the last one.

    Of rows, the last one is shown beside two others or more: of fewer, an equal one is the first.
    """
    count = len(after)
    least = 2 if after and isinstance(after[-1], dict) else 0
    part = least < count < len(before)
    whole = part and after[-1] == before[-1] != before[count - 1]
    if whole or (part and not _like(before[count - 1], after[-1]) and _like(before[-1], after[-1])):
        return zip([*before[: count - 1], before[-1]], after, strict=True)
    return zip(before, after, strict=False)


def _rows(after: Any, brief: bool, statements: dict[str, Any] | None = None) -> list[Any] | None:
    """Return the rows of an array that is shown in brief, with their columns as objects again."""
    if isinstance(after, dict):
        facts: dict[str, Any] = {name: [value] for name, value in after.get("same", {}).items()}
        facts |= after.get("counts", {})
        cells = [dict(zip(after["columns"], row, strict=True)) for row in after["rows"]]
        return [_row({**_facts(facts, at), **row}) for at, row in enumerate(cells)]
    if brief and len(after) > 2 and all(isinstance(each, dict) for each in after):
        return [_merged(_row(_facts(statements or {}, at)), row) for at, row in enumerate(after)]
    return None


def _facts(facts: dict[str, Any], position: int) -> dict[str, Any]:
    """Return the cells of a row that are statements of all rows at once, by `same` and `counts`."""
    cells = {name: same[0] for name, same in facts.items() if isinstance(same, list)}
    for name, counts in facts.items():
        if isinstance(counts, dict) and all(
            " at [" in str(each) for each in [*counts.values()][1:]
        ):
            here = (value for value, at in counts.items() if f"[{position}]" in str(at))
            cells[name] = Named(next(here, next(iter(counts))))
    return cells


class Parts(list[tuple[str, Any]]):
    """The parts that are shown of an array: expressions over it, and their values."""

    __slots__ = ()

    def whole(self, array: Any) -> bool:
        """Return True if each element is among them, or each member of it."""
        if not isinstance(array, list) or any(
            "…" in json.dumps(v, ensure_ascii=False) for _, v in self
        ):
            return False
        names = {name for name, _ in self}
        return all(
            {"[]", f"[{at}]"} & names
            or (
                isinstance(one, dict)
                and one
                and all(
                    {f"[].{_spelled(name)}", f"[{at}].{_spelled(name)}"} & names for name in one
                )
            )
            for at, one in enumerate(array)
        )


class Named(str):
    """A value as counts name it: a text as it is, any other as JSON."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str(self) == (other if isinstance(other, str) else json.dumps(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def _merged(one: Any, other: Any) -> Any:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return other
    return one | {name: _merged(one.get(name), value) for name, value in other.items()}


def _row(cells: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in cells.items():
        way = _PLAIN.match(name)
        assert way is not None, name
        *outer, last = re.findall(r'"(?:[^"\\]|\\.)*"|[^.]+', way[0])
        inner = row
        for each in outer:
            inner = inner.setdefault(_unquoted(each), {})
        own = _unquoted(last)
        if way[0] != name:  # what lies in an array is a part of it
            value = Parts([*inner.get(own, ()), (name.removeprefix(way[0]), value)])
        inner[own] = value
    return row


def _unquoted(name: str) -> str:
    return json.loads(name) if name.startswith('"') else name


def _compare_rows(
    amounts: LeftOut, before: list[Any], rows: list[Any], path: str, unit: str
) -> None:
    amounts.count("" if path == "[]" else path, unit, len(rows), len(before))
    opened = {column for row in rows for column in _opened(row)}
    for source, row in _pairs(before, rows):
        _compare_row(amounts, source, row, path, "", opened)
    others = LeftOut()
    for source in before if len(rows) < len(before) else ():
        _compare_row(others, source if isinstance(source, dict) else {}, {}, path, "", opened)
    for array, names in others.columns.items():
        amounts.elsewhere[array] |= names


def _opened(cells: dict[str, Any], outer: str = "") -> Iterator[str]:
    """Yield the columns that are objects, of which some members are shown."""
    for name, cell in cells.items():
        if isinstance(cell, dict):
            yield outer + _spelled(name)
            yield from _opened(cell, f"{outer}{_spelled(name)}.")


def _compare_row(
    amounts: LeftOut, before: Any, after: Any, path: str, column: str, opened: set[str]
) -> None:
    for name, value in before.items():
        inner = f"{column}.{_spelled(name)}" if column else _spelled(name)
        cell = after.get(name, {} if inner in opened and isinstance(value, dict) else _ABSENT)
        if cell is _ABSENT:
            amounts.columns["@" if path in ("", "[]") else path].add(inner)
        elif isinstance(value, dict) and isinstance(cell, dict) and value != cell:
            _compare_row(amounts, value, cell, path, inner, opened)
        elif isinstance(cell, Parts):
            if value is not None and not cell.whole(value):
                amounts.columns["@" if path in ("", "[]") else path].add(inner)
        elif cell == "…" or (isinstance(value, list) and value != cell):
            # Too large, or parts of its elements.
            amounts.columns["@" if path in ("", "[]") else path].add(inner)
        elif not isinstance(value, dict) and isinstance(cell, dict) and _says_nothing(cell):
            if value is not None:
                amounts.columns["@" if path in ("", "[]") else path].add(inner)
        elif isinstance(value, str) and value != cell:
            outer = path if path == "[]" else re.sub(r"(\[\])+$", "", path)
            text = f"{outer}.{inner}" if outer else inner
            amounts.count(text, " chars", characters(value, cell), len(value))
        else:
            assert value == cell or _only_absent(value, cell), (name, value, cell)


def _says_nothing(cell: Any) -> bool:
    """Return True for cells of members that are not there, which counts may name."""
    if isinstance(cell, dict):
        return all(map(_says_nothing, cell.values()))
    if isinstance(cell, Parts):
        return all(each in (None, "…") for _, each in cell)
    return cell in (None, "…") or isinstance(cell, Named)


def _only_absent(value: Any, cell: Any) -> bool:
    """Return True for cells of a table that stand for members of an object that is not there."""
    if isinstance(cell, dict):
        return value is None and all(_only_absent(None, each) for each in cell.values())
    return value is None and cell is None


def _like(before: Any, after: Any) -> bool:
    """Return True if `after` may be `before` with parts left out."""
    if isinstance(after, Parts):
        return True
    if after == "…":  # too large, or a row that has none of the columns
        return before in (None, after) or isinstance(before, dict | list)
    if isinstance(after, dict) and not isinstance(before, dict) and _says_nothing(after):
        return True
    if isinstance(after, str) and ("…" in after or after.endswith(" left out]")):
        return str(before).startswith(after.partition("…")[0])
    if isinstance(before, dict) and isinstance(after, dict):
        like = all(_like(before.get(name), after[name]) for name in after)
        return like and bool(before) == bool(after)
    if isinstance(before, list) and isinstance(after, list):
        return bool(before) == bool(after) and all(map(_like, before[:1], after))
    if isinstance(before, list):
        return isinstance(after, dict) and "rows" in after
    return bool(before == after)


def below(path: str, name: str) -> str:
    while path.endswith("[]") and path != "[]":
        path = path.removesuffix("[]")
    return f"{path}.{_spelled(name)}" if path else _spelled(name)


def _spelled(name: str) -> str:
    if len(name) > 40 or not name.isprintable() or {*name} & {*"\"'`\\"}:
        return quoted(name)  # cut, and no view reaches it
    plain = name.isascii() and name.isidentifier()
    return name if plain else json.dumps(name, ensure_ascii=False)


def check_notes(amounts: LeftOut, notes: dict[str, str]) -> None:
    """Assert that the notes `_abridged` say all of `amounts`, and nothing else."""
    rest, columns = Counter(amounts.counts), dict(amounts.columns)
    for name, note in notes.items():
        if name in ("more", "others", "read_from", "same", "counts"):
            continue
        path = name.removeprefix("@.")
        facts = [part for part in note.split("; ") if _FACT.fullmatch(part)]
        if facts and len(amounts.texts[path]) == 1:
            [(before, after)] = amounts.texts[path]
            check_text(before, after, {"text": note})
        for part in note.split("; "):
            if part.startswith("the server has ") or part in facts:
                continue
            match = _AMOUNT.fullmatch(part)
            assert match is not None, (name, note)
            all_shown, first, last, total, unit, places, names, more = match.groups()
            if unit == " columns":
                column_names = names.split(", ")
                omitted = {each.removeprefix("parts of ") for each in column_names}
                missing = _under(column_names, columns.pop(path, set()))
                possible = missing | _under(column_names, amounts.elsewhere[path])
                assert omitted <= possible, (name, note, possible)
                number = len(column_names) + int(more or 0)
                most = number if "…" in names else len(possible)  # long names may be cut alike
                assert len(missing) <= number <= most, (name, note, missing, possible)
                # Several arrays are counted one by one, but name a column once.
                count = int(total) - int(all_shown)
                assert count >= number if places else count == number
                continue
            visible = int(all_shown or 0) + int(first or 0) + int(last or 0)
            if visible == int(total):
                assert facts == [_CODES], note
                continue
            numbers = {"shown": visible, "total": int(total), "places": int(places or 1)}
            for kind, number in numbers.items():
                assert rest.pop((path, unit or "", kind), 0) == number, (name, note)
    sums: Counter[tuple[str, str]] = Counter()
    for (_, unit, kind), number in rest.items():
        if kind != "places":
            sums[unit, kind] += number
    others: Counter[tuple[str, str]] = Counter()
    if "others" in notes:
        parts, paths, place = _SUMS.fullmatch(notes["others"]).groups()  # type: ignore[union-attr]
        assert place in {None, *(path for path, _, _ in rest), *columns}
        assert int(paths) == len({path for path, _, _ in rest} | columns.keys())
        for part in parts.split(", "):
            amount, _, _, total, unit, *_ = _AMOUNT.fullmatch(part).groups()  # type: ignore[union-attr]
            if unit == " columns":
                most = sum(len(each | amounts.elsewhere[at]) for at, each in columns.items())
                least = sum(map(len, columns.values()))
                assert least <= int(total) - int(amount) <= most
                columns = {}
                continue
            others[unit or "", "shown"] += int(amount)
            others[unit or "", "total"] += int(total)
    assert +sums == +others, (rest, notes)
    assert not columns, (columns, notes)


def _under(listed: list[str], names: set[str]) -> set[str]:
    """Return names; in place of those that lie in a column of which parts are listed, that one."""
    whole = [each.removeprefix("parts of ") for each in listed if each.startswith("parts of ")]
    outer = {name: next((e for e in whole if name.startswith(f"{e}.")), name) for name in names}
    return {name if name in listed or name in whole else outer[name] for name in names}


_ENDS = re.compile(r"(?:first )?(\d+)(?: and last (\d+))? of (\d+) chars")
_CODES = "escape codes are not shown"
_FACT = re.compile(
    r"(?:parts of )?lines \d+ to \d+ are left out|unlike the others: [\d, …]+"
    rf"|(?:\S+: )?(?:at least )?\d+ lines? there with a failure: [\d, …]+|{_CODES}"
)
_OUTLINE = re.compile(r"((?:line|char) \d+: .*\n)+(and (at least )?\d+ more headings\n)?")

_QUOTES = re.compile(r"(?=(…\n(?:line \d+: .*\n)+…))")


def characters(before: str, after: str) -> int:
    """Count the characters that `after`, which is `before` cut, shows of it: of both ends.

    Escape codes are counted with what stands beside them.
    """
    if after.endswith(" left out]") and not before.endswith(" left out]"):
        return 0
    if "\x1b" in before and "\x1b" not in after:
        plain, offset = without_escapes(before)
        first, last = _ends_shown(plain, after)
        return offset(first) + len(before) - offset(len(plain) - last)
    return sum(_ends_shown(before, after))


def _ends_shown(before: str, after: str) -> tuple[int, int]:
    for mark in re.finditer("…", after):
        first, last = after[: mark.start()], after[mark.end() :]
        outline = _OUTLINE.fullmatch(last[1:])
        if before.startswith(first) and (before.endswith(last) or outline):
            _check_lines(before, outline[0] if outline else "")
            return len(first), len(last) * before.endswith(last)
    for quotes in _QUOTES.finditer(after):
        first, last = after[: quotes.start()], after[quotes.end(1) :]
        if before.startswith(first) and before.endswith(last):
            _check_lines(before, quotes[1])
            return len(first), len(last)
    assert before.startswith(after), after
    return len(after), 0


def _check_lines(before: str, quotes: str) -> None:
    """Assert that lines that are quoted with their numbers stand there; of a file, its changes."""
    lines = before.split("\n")
    for number, line in re.findall(r"line (\d+): …?(.*)\n", quotes):
        rest = lines[int(number) - 1 :]
        if changes := re.fullmatch(r"(.+) \+(\d+) -(\d+)", line):
            line, *amounts = changes.groups()
            part = "\n".join(rest).partition("\ndiff --git ")[0].splitlines()
            signs = Counter(each[:1] for each in part if each[:3] not in ("+++", "---"))
            assert [signs["+"], signs["-"]] == [*map(int, amounts)], (line, amounts, signs)
        if rest[0] == f"kind: {line.partition(' ')[0]}":  # of Kubernetes, with its name
            line = f"  name: {line.partition(' ')[2]}"
            rest = rest[: rest.index("---") if "---" in rest else None]
            rest[0] = next(filter(line.__eq__, rest), "")
        assert line in rest[0], (number, line)


def check_text(before: str, after: str, note: dict[str, str]) -> None:
    """Hold the note on a text to say how much of either end is shown, and of how much."""
    match = _ENDS.match(note["text"])
    assert match is not None, note
    if "\x1b" in before:  # escape codes are counted, and not shown
        return
    first, last, total = (int(each or 0) for each in match.groups())
    assert (first + last, total) == (characters(before, after), len(before))
    assert after[:first] == before[:first]
    assert first + last < total
    if last:
        assert after[-last:] == before[-last:]
    if lines := re.search(r"; (?:parts of )?lines (\d+) to (\d+) are left out", note["text"]):
        numbers = [before.count("\n", 0, at) + 1 for at in (first, len(before) - last - 1)]
        assert [*map(int, lines.groups())] == numbers


_VIEW = re.compile(r"""view=(?:'([^']*)'|"((?:[^"\\]|\\.)*)")""")
_INTERPRETED = {"Cc", "Cs", "Zl", "Zp"}
_MOST = 40


def check_voice(notice: Any, others: Iterable[str]) -> list[str]:
    """Hold a notice to quote of texts of `others` at most 40 characters, as one line.

    Return the views that it names.
    """
    sentences = [*strings(notice)]
    for sentence in sentences:
        assert not _INTERPRETED & {*map(unicodedata.category, sentence)}, ascii(sentence)
        longer = [sentence[at : at + _MOST + 1] for at in range(len(sentence) - _MOST)]
        for each in others:
            assert not any(part in each for part in longer), (each, sentence)
    pairs = (pair for sentence in sentences for pair in _VIEW.findall(sentence))
    return [plain or re.sub(r"\\(.)", r"\1", escaped) for plain, escaped in pairs]


def strings(value: Any) -> Iterator[str]:
    """Yield the texts and the names in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from strings(each)
