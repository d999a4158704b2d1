"""Documents of the shapes that tools return, with values that stand in one row of many.

A document is drawn as a few columns, a number of rows and the exceptions among them, so that a
failure shrinks to the columns and the exception that it needs.
"""

import csv
import io
import json
from collections.abc import Callable
from itertools import chain
from typing import Any

import yaml
from hypothesis import strategies as st
from msgspec import Struct

from tests.looks.reading import inner_member, with_inner

ABSENT: Any = object()

COLUMNS: dict[str, Callable[[int], Any]] = {
    "number": lambda n: n + 1,
    "name": lambda n: f"name {n}",
    "constant": lambda n: "ok",
    "null": lambda n: None,
    "state": lambda n: ("open", "closed", "merged")[n % 3],
    "flag": lambda n: n % 4 == 0,
    "yes": lambda n: True,
    "quantity": lambda n: n * 37 % 101,
    "decimal": lambda n: n * 7 % 50 / 4,
    "digits": lambda n: str(n * 37 % 101),
    "time": lambda n: f"2026-01-{n // 1440 % 28 + 1:02}T{n // 60 % 24:02}:{n % 60:02}:00Z",
    "hash": lambda n: f"{n * 2654435761 % 2**32:08x}" * 4,
    "link": lambda n: f"https://example.org/things/{n}",
    "path": lambda n: f"/srv/app/releases/current/assets/javascripts/application-{n}.js",
    "article": lambda n: str(4_000_000_000_000 + n),
    "nodes": lambda n: {"nodes": [{"name": f"l{each}"} for each in range(n % 4)]},
    "text": lambda n: f"Text {n}: " + "some words of it, " * (n % 9 * 3),
    "empty text": lambda n: "",
    "empty object": lambda n: {},
    "empty array": lambda n: [],
    "user": lambda n: {"login": f"user{n % 5}", "url": f"https://example.org/{n % 5}"},
    "labels": lambda n: [{"name": f"l{each}", "color": "c" * 40} for each in range(n % 4)],
    "tags": lambda n: ["red", "green", "blue"][: n % 4],
    "sparse": lambda n: ABSENT if n % 7 else n,
    "nullable": lambda n: None if n % 3 else f"v{n}",
    "deep": lambda n: {"a": {"b": {"c": {"d": n, "e": "x" * 30}}}, "f": n % 2},
    "message": lambda n: {"text": f"message {n} " + "lorem ipsum " * 30},
    "wide": lambda n: {f"field_{each}": each * n % 3 or None for each in range(35)},
    "mixed": lambda n: (n, str(n), None, [n], {"n": n})[n % 5],
}
NAMES = (
    *("id", "name", "status", "title", "user", "size", "message", "created_at", "url", "labels"),
    *("entity_id", "context", "total", "body", "items", "src/x", "@timestamp", "$ref", "x-y"),
    *("columns", "same", "more", "others", "text", "view", "key", "value", "_abridged"),
    *("it's", 'say "so"', "two words", "a.b", "é", "1", "", "back\\slash", "a`b", "help"),
)
RARE: tuple[Any, ...] = (
    *("FAILED", "N/A", "", 0, -1, 1e9, None, ABSENT, "x" * 2000),
    *([], {}, {"other": 1}, [{"a": 1}]),
)


class Sample(Struct, frozen=True):
    """A result of a tool: its texts, and its structuredContent if it has one.

    `value` is the document that is in it: of a text that spells structure, that structure.
    `lossy`: it is CSV, and `value` has its cells as texts, which may be shown as numbers and null.
    """

    texts: tuple[str, ...]
    value: Any
    structured: dict[str, Any] | None = None
    lossy: bool = False

    @property
    def result(self) -> dict[str, Any]:
        content = [{"type": "text", "text": text} for text in self.texts]
        more = {} if self.structured is None else {"structuredContent": self.structured}
        return {"content": content, **more}

    def read_by_us(self, value: Any) -> bool:
        """Return True if `value` is structure that was read from a text, and is not known here."""
        return isinstance(self.value, str) and not isinstance(value, str)

    def source(self, value: Any) -> Any:
        """Return the text or the structure that `value` is a look at."""
        if isinstance(value, str) or isinstance(self.value, str):
            return self.texts[0]
        return self.structured or self.value


def _rows(
    columns: dict[str, str], count: int, exceptions: list[tuple[int, int, Any]]
) -> list[dict[str, Any]]:
    rows = [{name: COLUMNS[kind](n) for name, kind in columns.items()} for n in range(count)]
    for row, column, value in exceptions:
        rows[row % count][[*columns][column % len(columns)]] = value
    return [{name: value for name, value in row.items() if value is not ABSENT} for row in rows]


COUNTS = st.integers(3, 30) | st.integers(3, 400)
PLACES = st.integers(0, 3) | st.integers(0, 400)
ROWS = st.builds(
    _rows,
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from([*COLUMNS]), min_size=1, max_size=9),
    COUNTS,
    st.lists(st.tuples(PLACES, PLACES, st.sampled_from(RARE)), max_size=3),
)
_PLAIN_NAMES = ("id", "name", "status", "created_at", "size", "note", "user_id", "two words")
_PLAIN_KINDS = ("number", "name", "constant", "state", "quantity", "decimal", "digits", "time")
PLAIN_ROWS = st.builds(
    _rows,
    st.dictionaries(
        st.sampled_from(_PLAIN_NAMES), st.sampled_from(_PLAIN_KINDS), min_size=2, max_size=6
    ).map(lambda columns: columns | {"id": "number"}),  # by which the head of CSV is told
    COUNTS,
    st.lists(
        st.tuples(PLACES, PLACES, st.sampled_from(["FAILED", "", "007", "1.50", 'a "b"', "a, b"])),
        max_size=3,
    ),
)


def tree(width: int, depth: int, n: int = 0) -> dict[str, Any]:
    below = [tree(width, depth - 1, n * width + each) for each in range(width * (depth > 0))]
    return {"name": f"node {n}", "type": "folder" if below else "file"} | (
        {"children": below} if below else {"size": n}
    )


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as an array of each column."""
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(chain(*rows))}


def _with_heads(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return rows as arrays with the names of their columns beside them."""
    names = [*dict.fromkeys(chain(*rows))]
    cells = [[row.get(name) for name in names] for row in rows]
    return {"columns": [{"name": name, "type": "any"} for name in names], "rows": cells}


def _record(names: list[str], kinds: list[str], factor: int) -> dict[str, Any]:
    pairs = [(f"{name}_{n}" if n else name, n) for n in range(factor) for name in names]
    cells = {name: COLUMNS[kinds[n % len(kinds)]](n) for n, (name, _) in enumerate(pairs)}
    return {name: value for name, value in cells.items() if value is not ABSENT}


RECORDS = st.builds(
    _record,
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True),
    st.lists(st.sampled_from([*COLUMNS]), min_size=1, max_size=6),
    st.integers(1, 12),
)
SCALARS = st.builds(
    lambda kind, count, rare: [COLUMNS[kind](n) for n in range(count)] + [rare],
    st.sampled_from(["number", "name", "nullable", "text", "hash", "mixed", "flag"]),
    COUNTS,
    st.sampled_from([each for each in RARE if each is not ABSENT]),
)
POINTS = st.builds(
    lambda count: [[f"2026-11-01T{n:04}Z", n * 37 % 101 / 4] for n in range(count)], COUNTS
)


def _groups(groups: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return rows in groups, with a member that is the same in all rows of a group."""
    return {
        "groups": [
            {"name": f"group {n}", "rows": [{**row, "stage": f"stage {n}"} for row in rows]}
            for n, rows in enumerate(groups)
        ]
    }


def _days(rows: list[dict[str, Any]], count: int) -> dict[str, Any]:
    """Return days without a name, each with some rows."""
    days = [
        (f"2026-{n % 12 + 1:02}-{n % 28 + 1:02}", rows[n % 3 : n % 3 + 5]) for n in range(count)
    ]
    return {"results": [{"time": {"start": day}, "groups": some} for day, some in days]}


def _pairs(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return rows as arrays of names with values."""
    return {
        "results": [
            [
                {"field": name, "value": str(value) if isinstance(value, dict) else value}
                for name, value in row.items()
            ]
            for row in rows
        ]
    }


def _series(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return rows as the labels of time series of up to so many points each."""
    return [
        {"metric": row, "values": [[1764400000 + 60 * at, f"{n * at % 97}.5"] for at in points]}
        for n, row in enumerate(rows)
        for points in [range(count - n % 3 if count > n % 3 else 0)]
    ]


VALUES = st.one_of(
    ROWS,
    ROWS,
    ROWS.map(lambda rows: {"total": len(rows), "items": rows, "next": None}),
    ROWS.map(lambda rows: {"data": {"results": rows}, "meta": {"empty": {}, "note": ""}}),
    ROWS.map(lambda rows: {f"key{n}": row for n, row in enumerate(rows)}),
    ROWS.map(lambda rows: {f"path/to/{n}.ts": row for n, row in enumerate(rows)}),
    ROWS.map(lambda rows: {"ids": [*map(str, range(9))]} | {str(n): r for n, r in enumerate(rows)}),
    st.builds(lambda one, other: {"first": one, "second": other}, ROWS, ROWS | SCALARS | POINTS),
    ROWS.map(lambda rows: [[row] for row in rows]),
    ROWS.map(
        lambda rows: {"rows": [{"f": [{"v": each} for each in row.values()]} for row in rows]}
    ),
    ROWS.map(_pairs),
    st.builds(_series, ROWS, st.integers(0, 40)),
    st.lists(ROWS, min_size=2, max_size=4).map(_groups),
    st.builds(_days, ROWS, st.integers(30, 50)),
    RECORDS,
    RECORDS.map(lambda record: {"issue": {"key": "A-1", "fields": record}}),
    st.builds(tree, st.integers(1, 5), st.integers(1, 4)),
    st.builds(tree, st.integers(2, 5), st.integers(2, 5)).map(lambda tree: tree["children"]),
    PLAIN_ROWS.map(_columns),
    PLAIN_ROWS.map(lambda rows: {"unit": "mm", "hourly": _columns(rows)}),
    PLAIN_ROWS.map(_with_heads),
    PLAIN_ROWS.map(lambda rows: {"next": None, "table": _with_heads(rows)}),
    SCALARS,
    SCALARS.map(lambda values: {"values": values}),
    SCALARS.map(lambda values: {"macros": [], "nodes": values}),
    st.lists(ROWS, min_size=5, max_size=8).map(
        lambda days: {"days": {f"day{n}": rows for n, rows in enumerate(days)}}
    ),
    POINTS.map(lambda points: {"cpu": points}),
)


def _log(count: int, rare: list[tuple[int, str]]) -> str:
    lines = [
        f"2026-11-01 10:{n // 60 % 60:02}:{n % 60:02} INFO worker[{n % 7}] {n} took {n % 90} ms"
        for n in range(count)
    ]
    for place, line in rare:
        lines[place % count] = line
    return "\n".join(lines) + "\n"


LOGS = st.builds(
    _log,
    COUNTS | st.integers(400, 3000),
    st.lists(
        st.tuples(
            st.integers(0, 3000),
            st.sampled_from(
                [
                    *("ERROR could not connect to db", "panic: runtime error", "", "segfault at 0"),
                    *("\x1b[31mERROR\x1b[0m disk full", "0 errors, 0 failed", "x" * 5000),
                    *("Traceback (most recent call last):", "exit status 1", "… 3 …", "é" * 90),
                ]
            ),
        ),
        max_size=4,
    ),
)
PAGES = st.builds(
    lambda count, lines: "".join(
        f"{'#' * (n % 3 + 1)} Heading {n}\n\n" + f"A line of part {n}.\n" * lines + "\n"
        for n in range(count)
    ),
    st.integers(3, 60),
    st.integers(1, 30),
)
DIFFS = st.integers(1, 60).map(
    lambda count: "".join(
        f"diff --git a/src/{n}.py b/src/{n}.py\n--- a/src/{n}.py\n+++ b/src/{n}.py\n"
        f"@@ -1,3 +1,4 @@\n import os\n+import sys{n}\n def f():\n     return {n}\n"
        for n in range(count)
    )
)
LINES = st.builds(
    lambda text, times: text * times,
    st.text("ab .,:\"\\\n\té😀…'#|", min_size=1, max_size=60),
    st.integers(1, 300),
)
TEXTS = st.one_of(LOGS, PAGES, DIFFS, LINES)


def dumps(value: Any, indent: int | None = None) -> str:
    separators = None if indent else (",", ":")
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)


def _as_json(value: Any) -> Sample:
    return Sample((dumps(value),), value)


def _structured(value: Any) -> Sample:
    value = value if isinstance(value, dict) else {"result": value}
    return Sample((dumps(value),), value, value)


def _in_words(value: Any) -> Sample:
    return Sample((f"Found some things:\n{dumps(value, 2)}",), value)


def _in_a_member(value: Any) -> Sample:
    text = f"<data>\n{dumps(value)}\n</data>\nThat is all."
    whole = {"result": text, "code": 0}
    return Sample((dumps(whole),), with_inner(whole, inner_member(whole)))


def _fenced(value: Any) -> Sample:
    return Sample((f"Found:\n```json\n{dumps(value)}\n```",), value)


def _json_lines(rows: list[Any]) -> Sample:
    return Sample(("\n".join(map(dumps, rows)),), rows)


def _json_log(rows: list[Any], line: str, place: int) -> Sample:
    """Return lines of JSON with another line among them, which is a row of one text."""
    place %= len(rows)
    lines = [*map(dumps, rows)]
    text = "\n".join([*lines[:place], line, *lines[place:]])
    if len(rows) < 8:
        return _text(text)
    name = next(each for each in ("text", "line") if f'"{each}"' not in text)
    return Sample((text,), [*rows[:place], {name: line}, *rows[place:]])


def _yaml(rows: list[Any]) -> Sample:
    value = {"kind": "List", "items": rows}
    return Sample((yaml.safe_dump(value, sort_keys=False, allow_unicode=True),), value)


def _csv(rows: list[dict[str, Any]], separator: str) -> Sample:
    names = [*dict.fromkeys(name for row in rows for name in row)]
    lines = [names, *([str(row.get(name, "")) for name in names] for row in rows)]
    out = io.StringIO()
    if separator == "\t":  # without quotes
        out.write("".join("\t".join(line) + "\n" for line in lines))
    else:
        csv.writer(out, delimiter=separator, lineterminator="\n").writerows(lines)
    cells = [dict(zip(names, line, strict=True)) for line in lines[1:]]
    return Sample((out.getvalue(),), cells, lossy=True)


def _text(text: str) -> Sample:
    return Sample((text,), text)


def _beside(text: str) -> Sample:
    return Sample((text,), text, {"content": text})


STRUCTURES = st.one_of(
    VALUES.map(_as_json),
    VALUES.map(_structured),
    VALUES.map(_in_words),
    VALUES.map(_in_a_member),
    VALUES.map(_fenced),
    ROWS.map(_json_lines),
    st.builds(_json_log, ROWS, st.sampled_from(["panic: at 7", '{"cut": "of', "[1]"]), PLACES),
    ROWS.map(_yaml),
    st.builds(_csv, PLAIN_ROWS, st.sampled_from(",\t;")),
)
RESULTS = STRUCTURES | TEXTS.map(_text) | TEXTS.map(_beside)
BUDGETS = st.integers(300, 1200) | st.integers(300, 10_000)
