r"""Reads a text as structure for the steps that follow; the text is written back at the end."""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal

from msgspec import field
from msgspec.structs import replace

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.measure import TextFrame, TextWriteback, line_bounds
from mcp_abridge.document.paths import ROOT, Path, select
from mcp_abridge.document.tree import Document, Pieces, Slot, Value
from mcp_abridge.errors import DocumentError, ShapeMismatch
from mcp_abridge.query.call import Call
from mcp_abridge.query.patterns import Pattern, PatternError
from mcp_abridge.transforms.base import Schema, Transform


class Parse(Transform, frozen=True):
    r"""Read a text, or the strings at `at`, as structure; the text around it is kept.

    `json`, `yaml` and `python` (literals, as Python prints them) must hold an object or an array,
    and are written back as compact JSON. So is `csv` (also with tabs or semicolons), whose rows
    below the head are an array of objects. A number of YAML that JSON spells otherwise (`0644`,
    `+49`, `0x1F`, `.5`) stays a string. `lines` and `records` are arrays of strings, joined again
    with the same separators: a line excludes its line end, a record includes everything up to the
    next record.

    `after` is a regular expression: the content begins at the end of its first match. `fence:
    yaml`: the content is the first fenced block (three backticks or more) of that language.
    `split` is a regular expression that ends a record (default: a blank line). If it ends in
    `(?=X)`, records begin only at matches of X; so the head of the text is a record if X matches
    it, and else it is kept outside the records.

    With `groups`, a regular expression with named groups, each line or record is an object of them;
    one that does not match is `{unmatched: its text}`. These are written back as compact JSON.

    If a text cannot be read this way, the step fails (ShapeMismatch): the whole response passes
    unchanged. A document that already is an object or an array is left to the next step.

    >>> document = Document("# log\nb 2\na 1\n")
    >>> Parse(as_="lines", after=Pattern("# log\n"))(document.root, Call("log"))
    >>> document.cell[0]
    ['b 2', 'a 1']
    >>> document.cell[0].sort()
    >>> document.close()
    >>> document.cell[0]
    '# log\na 1\nb 2\n'
    """

    name: ClassVar[str] = "parse"
    burns: ClassVar[bool] = True

    as_: Literal["json", "yaml", "python", "csv", "lines", "records"] = field(name="as")
    """The format of the text."""
    at: Path = ROOT
    """The texts."""
    after: Pattern | None = None
    """The content begins after the first match of this."""
    fence: str | None = None
    """The content is the first fenced block of this language."""
    split: str | None = None
    """The end of a record: a regular expression; a blank line by default."""
    groups: Pattern | None = None
    """Named groups, `(?P<level>\\w+)`, of which each line or record becomes an object."""

    def __post_init__(self) -> None:
        if self.groups is not None:
            if self.as_ not in ("lines", "records"):
                raise ValueError(f"'groups' is for as: lines or records, not as: {self.as_}")
            if not self.groups.groups:
                raise ValueError("groups: no group has a name, such as (?P<level>\\w+)")
        if self.split is not None:
            if self.as_ != "records":
                raise ValueError(f"'split' is for as: records, not as: {self.as_}")
            try:
                _separator(self.split)
            except PatternError as error:
                raise ValueError(f"split: {error}") from error

    def __call__(self, root: Slot, call: Call) -> None:
        document = root.document
        places = list(select(root, self.at))
        if not places:
            call.missing.append(str(self.at))
            return
        values = [slot.open() for slot in places]
        texts = [pair for pair in zip(places, values, strict=True) if isinstance(pair[1], str)]
        if any(isinstance(value, dict | list) for value in values):
            if texts:
                raise ShapeMismatch(f"at {self.at}, some values are texts and some are not")
            return
        sources = []
        for slot, text in texts:
            value, outside = self._read(text, call.fuel)
            sources.append((slot.get(), text, outside))
            slot.parent[slot.key] = value
        if sources:
            among = len(texts) < len(places)
            document.closers.append(TextWriteback(self.at, sources, among=among))

    def reshape(self, schema: Schema) -> Schema | None:
        """Lines and records are texts again in the end; otherwise, none is advertised."""
        again = self.as_ in ("lines", "records") and self.groups is None
        return super().reshape(schema) if again else None

    def _read(self, text: str, fuel: Fuel) -> tuple[Value, TextFrame]:
        start, end = 0, len(text)
        if self.after is not None:
            match = self.after.search(text, fuel=fuel)
            if match is None:
                raise ShapeMismatch(f"no {self.after.text!r} in the text")
            start = match.end()
        if self.fence is not None:
            start, end = _fenced(text, start, self.fence)
        if self.as_ in ("lines", "records"):
            lines = self.as_ == "lines"
            pieces = (
                _lines(text, start, end) if lines else _records(text, start, end, self.split, fuel)
            )
            return pieces if self.groups is None else _rows(*pieces, self.groups, fuel)
        from mcp_abridge.summary import notations
        from mcp_abridge.summary.delimited import from_csv

        read: Callable[[str], tuple[str, int]]
        # YAML takes a thousand times as long as JSON; units of fuel for 64 characters.
        read, units = {
            "json": (notations.from_json, 1),
            "yaml": (notations.from_yaml, 576),
            "python": (notations.from_python, 16),
            "csv": (from_csv, 16),
        }[self.as_]
        if read is not notations.from_yaml or end - start <= notations.MOST_YAML:  # else an error
            fuel.burn((end - start) * units >> 6)
        return _structure(text, start, end, read)


def _fenced(text: str, start: int, language: str) -> tuple[int, int]:
    begin_content, marks = -1, ""
    for begin, end in line_bounds(text, start):
        line = text[begin:end].strip()
        if begin_content < 0:
            marks = line[: len(line) - len(line.lstrip("`"))]
            words = line[len(marks) :].split()
            if len(marks) >= 3 and words[:1] == [language]:
                begin_content = end
        elif line == "`" * max(len(line), len(marks)):
            return begin_content, begin
    raise ShapeMismatch(f"no block of {language!r} between lines of three backticks in the text")


def _lines(text: str, start: int, end: int) -> tuple[Value, TextFrame]:
    content = text[start:end]
    plain, carried = content.count("\n"), content.count("\r\n")
    separator = "\r\n" if plain and plain == carried else "\n"
    ended = content.endswith(separator)
    pieces = Pieces(content.split(separator) if content else ())
    if ended:
        pieces.pop()
    return pieces, TextFrame(
        before=text[:start], after=text[end:], separator=separator, ended=ended
    )


def _records(
    text: str, start: int, end: int, split: str | None, fuel: Fuel
) -> tuple[Value, TextFrame]:
    content, head = text[start:end], 0
    pattern, beginning = _separator(split if split is not None else r"\r?\n(?:\r?\n)+")
    # google-re2 gives the start of a group only by its number; this group ends with the match.
    marks = [
        match.end() - len(match.groupdict().get("ahead") or "" if beginning else "")
        for match in pattern.finditer(content, fuel)
    ]
    if beginning is not None and beginning.search(content, fuel=fuel) is None:
        if not marks:
            raise ShapeMismatch(f"no record begins by {split!r} in the text")
        # The text before the first beginning of a record is not a record.
        head = marks[0]
    bounds = [head, *(mark for mark in marks if head < mark < len(content)), len(content)]
    pieces = Pieces(content[begin:until] for begin, until in pairwise(bounds) if begin < until)
    frame = TextFrame(before=text[: start + head], after=text[end:], separator="")
    *others, final = pieces or [""]
    if others and not final.endswith("\n") and all(each.endswith("\n") for each in others):
        ending = others[0][len(others[0].rstrip("\r\n")) :]
        frame = replace(frame, last=final, ending=ending)
    return pieces, frame


def _rows(pieces: Value, frame: TextFrame, groups: Pattern, fuel: Fuel) -> tuple[Value, TextFrame]:
    matches = [(groups.groups_of(piece.rstrip("\r\n"), fuel), piece) for piece in pieces]
    if pieces and not any(row for row, _ in matches):
        raise ShapeMismatch(f"{groups.text!r} matches no line or record of the text")
    rows = [{"unmatched": piece} if row is None else row for row, piece in matches]
    return rows, TextFrame(before=frame.before, after=frame.after)


@lru_cache(maxsize=64)
def _separator(split: str) -> tuple[Pattern, Pattern | None]:
    """Compile `split`; if it ends in a look-ahead, also the look-ahead, for the head of a text.

    The linear-time engine has no look-ahead. One at the very end can be replaced by a group: its
    text is matched as the group `ahead`, and the record begins at the start of the group. (So two
    records cannot begin within the match of one look-ahead.)
    """
    before, sign, ahead = split.rpartition("(?=")
    if not (sign and ahead.endswith(")") and _is_pattern(before) and _is_pattern(ahead[:-1])):
        return Pattern(split), None
    flags = "".join(re.findall(r"\(\?[imsU-]+\)", before))
    return Pattern(f"{before}(?P<ahead>{ahead}"), Pattern(f"{flags}\\A(?:{ahead}")


def _is_pattern(text: str) -> bool:
    try:
        Pattern(text)
    except PatternError:
        return False
    return True


def _structure(
    text: str, start: int, end: int, read: Callable[[str], tuple[str, int]]
) -> tuple[Value, TextFrame]:
    content = text[start:end]
    try:
        json_text, length = read(content)
        inner = Document.read(json_text.encode())
    except (DocumentError, ValueError, RecursionError) as error:
        raise ShapeMismatch(f"the text cannot be read: {error}") from error
    if inner.kind not in ("object", "array"):
        raise ShapeMismatch("the text holds no object or array")
    lead = len(content) - len(content.lstrip())
    return inner.cell[0], TextFrame(
        before=text[: start + lead], after=content[length:] + text[end:]
    )
