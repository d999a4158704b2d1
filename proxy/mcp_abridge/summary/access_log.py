r"""Lines of an access log as rows: without it, nobody counts the requests of a path or a client.

They have the Common or the Combined Log Format of Apache, nginx and others, with a host before and
more fields after it. Which fields there are, most of the first lines say; any other line is a row
of one text, so that a line that was cut short gives no wrong values.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Raw

from mcp_abridge.document.garbage import uncollected
from mcp_abridge.document.possessive import possessive
from mcp_abridge.document.rows import row_type
from mcp_abridge.document.tree import encode
from mcp_abridge.summary.notations import JSON_NUMBER
from mcp_abridge.summary.rows import LONGEST

_BEGINNING = 16_000  # characters by which the fields are told
_FIRST = 20  # lines by which they are told, at most
_FEWEST = 3  # rows
_EACH = 20  # rows for each other line, if there are more than two
_PART = 1 << 17  # characters that are read at a time, in half the time that all at once take

_HOST = r"(?=\S*[A-Za-z.])([\w.:-]++) (?=[\w-]*+[.:])"
_CLIENT = (  # no address that is cut, nor one behind a number or the name of a file
    r"([0-9]++\.[0-9]++\.[0-9]++\.[0-9]++(?::[0-9]++)?(?= )|(?=\S*[A-Za-z_])[\w.-]++(?= )"
    r"|[0-9a-fA-F]*+:[0-9a-fA-F]*+:[\w.:%]*+) (?:-|\S++(?= \S++ \[)) (-|[^-\s\[][^\[\n]*?)"
)
_TIME = r"\[([0-9]++/[A-Z][a-z]++/[^]\n]++)\]"
_REQUEST = r"([A-Z][A-Z-]*+) (\S++) (HTTP/[0-9.]++)"
_PLAIN = r'"([^"\n]*+)(?<!\\)"'  # takes a fifth of the time, but finds no end behind an escape
_QUOTED = r'"([^"\\\n]*+' + possessive(r'\\.[^"\\\n]*+') + ')"'
_BARE = r'([^\s"]++' + possessive(r'(?:(?<=,)| :) [^\s"]++') + ")"  # or several: `0.1, 0.2 : 0.3`
_NUMBERS = "([0-9]{3}) ([0-9]{1,18}|-)"
_HEAD = re.compile(
    f"(?:{_HOST})?{_CLIENT} {_TIME} {_QUOTED} {_NUMBERS}(?P<combined> {_QUOTED} {_QUOTED})?"
)
_MORE = re.compile(rf" (?:([A-Za-z_][\w.@-]*+)=(?=[^\s=]))?(?:{_QUOTED}|{_BARE})")
_SIGN = re.compile(rf'{_TIME} "')

_Shape = tuple[bool, bool, tuple[tuple[str, bool], ...]]
"""A host, the fields of the combined format, and more: the name, if any, and if it has quotes."""


def access_log(text: str) -> tuple[Raw, list[int]] | None:
    r"""Return the rows of an access log, and which are other lines; None for any other text.

    >>> line = '192.0.2.1 - - [12/Nov/2026:06:25:24 +0000] "GET / HTTP/1.1" 200 5 rt=0.10\n'
    >>> rows, others = access_log(f"{line * 4}192.0.2")
    >>> bytes(rows)[-21:], bytes(rows).count(b'"rt":0.10,'), others
    (b'},{"text":"192.0.2"}]', 4, [4])
    """
    beginning = text[:_BEGINNING]
    if len(text) > LONGEST or _SIGN.search(beginning) is None:
        return None
    lines = beginning.split("\n")[:_FIRST]
    shapes = Counter(filter(None, map(_shape, lines))).most_common(1)
    if not shapes or 2 * shapes[0][1] < len(lines):
        return None
    reader = _Reader(*shapes[0][0])
    with uncollected():
        while not reader.read(text):
            pass  # once more: a column that was of numbers has another text
    count, others = reader.count - len(reader.others), reader.others
    if count < _FEWEST or len(others) > max(count // _EACH, min(2, count // 4)):
        return None
    return Raw(b"[%b]" % b",".join(reader.parts)), others


def _shape(line: str) -> _Shape | None:
    head = _HEAD.match(line)
    more = [*_MORE.finditer(line, head.end())] if head else []
    if head is None or "".join(each[0] for each in more) != line[head.end() :].rstrip():
        return None
    fields = ((each[1] or "", each[2] is not None) for each in more)
    return head[1] is not None, head["combined"] is not None, tuple(fields)


class _Reader:
    """Reads the rows of lines of one shape."""

    def __init__(self, host: bool, combined: bool, more: tuple[tuple[str, bool], ...]) -> None:
        names = [*["host"] * host, "remote_addr", "remote_user", "time_local", "method", "path"]
        names += ["protocol", "status", "body_bytes_sent"]
        names += ["http_referer", "http_user_agent"] * combined
        self._request, first = 3 + host, len(names)
        for name, _ in more:
            unnamed = sum(each.startswith("extra_") for each in names) + 1
            own = name[:6] not in ("", "extra_") and name not in (*names, "request", "text")
            names.append(name if own else f"extra_{unnamed}")
        self._names, self._numbers = names, {*names[first:]}
        # Those that are mostly the same come last.
        self._order = sorted(names, key=("remote_user", "protocol").__contains__)
        self._kind: Any = row_type((*self._order, "request", "text"))
        head = f"{_HOST * host}{_CLIENT} {_TIME}"

        def form(request: str, quoted: str) -> str:
            fields = [f"{n and re.escape(n) + '='}{quoted if q else _BARE}" for n, q in more]
            parts = (head, request, _NUMBERS, *[quoted, quoted] * combined, *fields)
            return rf"{' '.join(parts)}[^\S\n]*+"

        plain = form(f'"{_REQUEST}"', _PLAIN)
        self._lines = re.compile(rf"^(?:{plain}|(.*))$", re.MULTILINE).findall
        self._exact = re.compile(form(_QUOTED, _QUOTED)).fullmatch

    def read(self, text: str) -> bool:
        """Read all lines; return False if a column turns out to be no numbers."""
        self.parts, self.others, self.count = list[bytes](), list[int](), 0
        start, numbers = 0, len(self._numbers)
        while start < len(text) and len(self._numbers) == numbers:
            end = text.find("\n", start + _PART) + 1 or len(text)
            rows = self._rows(text[start:end])
            self.parts += [encode(rows)[1:-1]] * bool(rows)
            self.count += len(rows)
            start = end
        return len(self._numbers) == numbers

    def _rows(self, part: str) -> list[Any]:
        # Each line has its cells, or stands behind empty ones as it is.
        cells_of: list[Any] = [e for e in self._lines(part) if e[0] or e[-1].strip()]
        requests, others, at_request = dict[int, str](), dict[int, str](), self._request
        for at in [at for at, cells in enumerate(cells_of) if cells[-1]]:
            line, cells_of[at] = cells_of[at][-1], ()
            match = self._exact(line)
            if match is None:
                others[at] = line.rstrip()
                continue
            *before, request = match.groups()[: at_request + 1]
            words = re.fullmatch(_REQUEST, request)
            if words is None:
                requests[at] = request
            parts = (None,) * 3 if words is None else words.groups()
            cells_of[at] = (*before, *parts, *match.groups()[at_request + 1 :], "")
        names, columns = self._names, [*zip(*filter(None, cells_of), strict=True)][:-1]
        cells = dict(zip(names[: len(columns)], map(self._cells, names, columns), strict=True))
        rows = [*map(self._kind, *(cells[name] for name in self._order))] if cells else []
        for at, line in others.items():
            rows.insert(at, self._kind(*[UNSET] * (len(names) + 1), line))
        for at, request in requests.items():
            setattr(rows[at], f"f{len(names)}", request)
        self.others += [self.count + at for at in others]
        return rows

    def _cells(self, name: str, column: Sequence[Any]) -> Sequence[Any]:
        """Return the cells of a column, null for a dash; as numbers, if they are all numbers."""
        if name in ("status", "body_bytes_sent"):
            return [None if cell == "-" else int(cell) for cell in column]
        if name in self._numbers:
            kinds = {*column} - {"-"}
            if all(map(JSON_NUMBER.fullmatch, kinds)):
                return [*map({each: Raw(each.encode()) for each in kinds}.get, column)]
            self._numbers.remove(name)
        return [None if cell == "-" else cell for cell in column] if "-" in column else column
