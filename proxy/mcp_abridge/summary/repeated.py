r"""Texts that repeat one form, as rows: git log, blocks of fields, logfmt, tables, JUnit.

Without it, a model counts the lines of `kubectl get pods` by eye. All lines must fit the form that
the beginning has, and each value stands in the text as it is given; what is around is kept apart.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any
from unicodedata import east_asian_width

from mcp_abridge.errors import DocumentError
from mcp_abridge.summary import (
    bibliography,
    blocks,
    boxes,
    components,
    line_heads,
    log_lines,
    metrics,
    printed,
    sections,
)
from mcp_abridge.summary.markup import Element, elements
from mcp_abridge.summary.rows import LONGEST, Rows

_BEGINNING = 4000  # characters by which a form is told
_FEWEST = 3  # rows


def repeated(text: str, *, sample: bool = False) -> Rows | None:
    r"""Return the rows of a text that repeats one form in all its lines; None for any other text.

    With `sample`, only the beginning is read of what is shown as a text anyway: of a long log.

    >>> repeated("NAME   READY\na-1    1/1\nb-22   0/1\nc      1/1\n").rows[1]
    {'NAME': 'b-22', 'READY': '0/1'}
    >>> repeated("level=info n=1\nlevel=warn n=2\nlevel=info n=3\n").as_json()[:25]
    b'[{"level":"info","n":1},{'
    """
    if len(text) > LONGEST:
        return None
    beginning = text[:_BEGINNING]
    for sign, read in _FORMS:
        if sign.search(beginning):
            part = sample and read in _LOGS and len(text) > _BEGINNING
            rows = read(beginning.rpartition("\n")[0] if part else text)
            if rows is not None and len(rows.rows) >= _FEWEST:
                return rows._replace(sample=part)
    return None


def _git_log(text: str) -> Rows | None:
    rows, plain = [], True
    for part in re.split(r"\ncommit (?=[0-9a-f]{7,64}\b)", f"\n{text}")[1:]:
        match = _COMMIT.fullmatch(f"{part}\n")
        if match is None:
            return None
        row = {name: cell for name, cell in match.groupdict().items() if cell}
        lines = [line[4:] for line in row.pop("message", "").strip("\r\n").splitlines()]
        for name, cell in _HEAD.findall(row.pop("head", "")):
            row["date" if name == "Date" else name] = cell
        row["message"] = "\n".join(lines)
        row |= {"changes": row.pop("changes").strip("\n")} if "changes" in row else {}
        plain = plain and len(lines) < 2 and "changes" not in row
        rows.append(row)
    return Rows(rows, "git log", loses=not plain)


_COMMIT = re.compile(
    r"(?P<commit>[0-9a-f]{7,64})(?: \((?P<refs>[^\n]*)\))?\r?\n(?:Merge: (?P<merge>[^\n]*)\n)?"
    r"Author: +(?P<author>[^\n]*)\n(?P<head>(?:\w+: +[^\n]*\n)*)"
    r"(?P<message>(?:[ \t]*\n| {4}[^\n]*(?:\n|\Z))*)(?P<changes>.*)",
    re.DOTALL,
)
_HEAD = re.compile(r"^(\w+): +([^\n]*)", re.MULTILINE)


def _logfmt(text: str) -> Rows | None:
    """Read pairs of a name and a value, and words before them: a time, a host, a program."""
    rows = []
    for line in text.splitlines():
        if not line.strip():
            continue
        pairs = _PAIR.findall(line)
        row = {name: cell[1:-1] if cell[:1] == '"' else cell for name, cell in pairs}
        plain = len(pairs) > 1 and " ".join(map("=".join, pairs)) == line  # quicker to tell
        match = None if plain else _PAIRS.fullmatch(line)
        if len(row) != len(pairs) or "\\" in line or not (plain or match):
            return None
        if match is not None and match["before"]:
            if "before" in row:
                return None
            row = {"before": match["before"].rstrip(), **row}
        rows.append(row)
    return Rows(rows, "logfmt")


_PAIR = re.compile(r'([A-Za-z_][\w.@/-]*)=("[^"]*"|[^\s"]*)')
_PAIRS = re.compile(rf'(?P<before>(?:[^\s="]+ +){{0,5}})(?:{_PAIR.pattern}(?: +|\s*$)){{2,}}')


def _listing(text: str) -> Rows | None:
    """Read the lines of `ls -l`; those of several folders have the `folder` that is named above."""
    before = text[: text.find("\n") + 1] if text.startswith("total ") else ""
    rows, folder = list[dict[str, str]](), dict[str, str]()
    for line in text[len(before) :].splitlines():
        if match := _FILE.fullmatch(line):
            rows.append(folder | match.groupdict())
        elif line.endswith(":"):
            folder = {"folder": line[:-1]}
        elif not folder or (line.strip() and not line.startswith("total ")):
            return None
    return Rows(rows, "ls -l", before, loses=bool(folder))


_FILE = re.compile(
    r"(?P<mode>[-bcdlps][-rwxsStT]{9}[.+@]?) +(?P<links>\d+) +(?P<owner>\S+) +(?P<group>\S+) +"
    r"(?P<size>[\d.]+[KMGT]?) +(?P<modified>[A-Z][a-z]{2} +\d+ +[\d:]{4,5}|"
    r"\d{4}-\d\d-\d\d [\d:.]+(?: [-+]\d{4})?) (?P<name>.+)"
)


def _aligned(text: str) -> Rows | None:
    """Read columns below names in capitals, two blanks or more apart: kubectl, docker."""
    head, *lines = text.splitlines()
    starts = [match.start() for match in re.finditer(r"\S+(?: \S+)*", head)]
    return _in_columns(head, lines, starts, "a table")


def _spaced(text: str) -> Rows | None:
    """Read words below the names of a head: ps, df, dpkg -l. The last column has what is left.

    In most lines each word begins or ends below its name: the lines of prose do not.
    """
    sample = text[:_BEGINNING].splitlines()[:-1]
    widths = [len(line.split()) for line in sample]
    for start, head in enumerate(sample[:_HEADS]):
        ruled = start + 1 < len(sample) and _NO_WORD.fullmatch(sample[start + 1])
        first = start + (2 if ruled else 1)
        body, count = sample[first:], min([widths[start], *widths[first:]])
        names = head.split(None, count - 1) if body else []
        if (
            len({*names}) == count > _FEWEST
            and not any(map(str.isdecimal, names))
            and {*names}.isdisjoint(body[0].split())
            and 4 * sum(not {*names}.isdisjoint(line.split()) for line in body) <= len(body)
            and _in_line((head, *body), count - 1)
        ):
            break
    else:
        return None
    lines = text.rstrip().splitlines()
    form = re.compile(r"\s*" + r"(\S+)\s+" * (count - 1) + r"((\S+).*)")
    matches: list[Any] = [*map(form.match, lines[len(sample) - len(body) :])]
    if None in matches or not _stand_below(head, matches, count):
        return None
    cells = [map(str.rstrip, match.groups()[:count]) for match in matches]
    rows = [dict(zip(names, each, strict=True)) for each in cells]
    return Rows(rows, "a table", "".join(f"{line}\n" for line in lines[:start]))


def _stand_below(head: str, lines: list[re.Match[str]], count: int) -> bool:
    """Return True if no word ends before its name begins, as do those behind a cell of two words.

    Each line has the cells of so many columns, and the first word of the last one once more.
    """
    words = zip((*range(1, count), count + 1), _NO_BLANK.finditer(head), strict=False)
    return all(name.start() < min(line.end(word) for line in lines) for word, name in words)


def _in_line(lines: Iterable[str], count: int) -> bool:
    """Return True if most words of so many columns begin or end where the name above does."""
    words = [_NO_BLANK.finditer(line) for line in lines]
    most, loose = (len(words) - 1) * 3 // 4, count // _LOOSE
    for _ in range(count):
        (start, end), *spans = [next(each).span() for each in words]
        if max(sum(a == start for a, _ in spans), sum(b == end for _, b in spans)) <= most:
            loose -= 1
            if loose < 0 or sum(a < end and start < b for a, b in spans) <= most:
                return False
    return True


_LOOSE = 6  # columns of which one may merely stand below its name, as FD of lsof
_HEADS = 6  # lines of which one may be the head
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")
_NO_BLANK = re.compile(r"\S+")


def _ruled(text: str) -> Rows | None:
    """Read columns below names with a line of dashes below them."""
    head, rule, *lines = text.splitlines()
    return _in_columns(
        head, lines, [mark.start() for mark in re.finditer(r"[-=]+", rule)], "a table"
    )


def _in_columns(head: str, lines: list[str], starts: list[int], form: str) -> Rows | None:
    spans = [*zip(starts, [*starts[1:], None], strict=True)]
    names = [head[start:end].strip() for start, end in spans]
    if len(set(names)) < len(names) or not all(names):
        return None
    while lines and not lines[-1].strip():
        lines.pop()
    # Gap by gap: line by line takes twice as long.
    gaps = ("".join([line[start - 1 : start] for line in (head, *lines)]) for start in starts[1:])
    signs = {*"".join([line[: starts[-1]] for line in lines])}
    wide = not {"W", "F"}.isdisjoint(
        map(east_asian_width, signs)
    )  # each shifts the cells behind it, or does not
    if wide or not all(map(str.strip, lines)) or any(map(str.strip, gaps)):
        return None
    fields = [(name, *span) for name, span in zip(names, spans, strict=True)]
    rows = [{name: line[start:end].strip() for name, start, end in fields} for line in lines]
    return Rows(rows, form) if all(row[names[0]] for row in rows) else None


def _barred(text: str) -> Rows | None:
    """Read a table of Markdown, psql or mysql: cells between bars, a rule below the names.

    Of several, such as the sheets of a file, each row has the `heading` of its table.
    """
    match = _TABLE.search(text)
    if match is None:
        return None
    before, after = text[: match.start()], text[match.end() :]
    alone = len(after) < _BEGINNING or not _TABLE.search(after)
    if alone and len(match[0]) >= len(before) + len(after):
        rows = _bar_rows(match[0])
        return None if rows is None else Rows(rows, "a table", before, after)
    rows, end, size = [], 0, 0
    for number, each in enumerate(_TABLE.finditer(text), 1):
        headings = _HEADING_ABOVE.findall(text, end, each.start())
        heading = {"heading": headings[-1] if headings else f"table {number}"}
        if (some := _bar_rows(each[0])) is not None and len(some) >= _FEWEST:
            rows += [heading | row for row in some]
            size += len(each[0])
        end = each.end()
    return Rows(rows, "tables", loses=True) if 2 * size > len(text) else None


def _bar_rows(lines: str) -> list[dict[str, str]] | None:
    every = lines.splitlines()
    rules = {*filter(_RULE.fullmatch, every)}
    rule = min(rules, key=len)
    table = [[cell.strip() for cell in _cells(line, rule)] for line in every if line not in rules]
    if "+" not in rule:  # of Markdown, as in `on\_hold`
        table = [[_ESCAPED.sub(r"\1", cell) for cell in cells] for cells in table]
    names, *rest = table
    if len(set(names)) < len(names) or not all(names) or len(names) < 2:
        return None
    if any(len(cells) != len(names) for cells in rest):
        return None
    return [dict(zip(names, cells, strict=True)) for cells in rest]


_HEADING_ABOVE = re.compile(r"^#{1,6} +(.*?)[ \t#]*$", re.MULTILINE)


def _cells(line: str, rule: str) -> list[str]:
    """Return the cells of a line, with bars in them that stand below no cross of the rule."""
    crosses = [cross.start() for cross in re.finditer(r"\+", rule)]
    if crosses and all(line[at : at + 1] == "|" for at in crosses):
        bounds = crosses if rule.lstrip()[0] == "+" else [-1, *crosses, len(line)]
        return [line[start + 1 : end] for start, end in pairwise(bounds)]
    cells = re.split(r"(?<!\\)\|", line.strip() if line.lstrip()[:1] == "|" else line)
    return cells[1:-1] if line.lstrip()[:1] == "|" else cells


_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~-])")
_RULE_LINE = r"[ \t]*[|+]?[ \t]*:?-{2,}[-:| +\t]*"
_RULE = re.compile(_RULE_LINE)
_TABLE = re.compile(
    rf"^(?:[ \t]*\+-[-+]+\+[ \t]*\r?\n)?[^\n|]*\|[^\n]*\n{_RULE_LINE}\r?\n"
    rf"(?:[^\n|]*\|[^\n]*(?:\n|\Z)|[ \t]*\+-[-+]+\+[ \t]*(?:\r?\n|\Z))+",
    re.MULTILINE,
)


def _junit(text: str) -> Rows | None:
    try:
        return Rows([*_cases(elements(text), "")], "JUnit", loses=True)
    except DocumentError:
        return None


def _cases(outer: Element, suite: str) -> Iterator[dict[str, str]]:
    for each in outer.inner:
        if each.name != "testcase":
            yield from _cases(each, each.attributes.get("name", ""))
            continue
        row = {"suite": suite, **each.attributes, "result": "passed"}
        result = next((inner for inner in each.inner if inner.name in _RESULTS), None)
        if result is not None:
            row |= {f"result.{name}": cell for name, cell in result.attributes.items()}
            row["result"] = result.name
            row |= {"text": cell} if (cell := result.text.strip()) else {}
        yield row


_RESULTS = ("failure", "error", "skipped")

_LOGS = (log_lines.log, log_lines.system_log)

_CAPITALS = r"[A-Z][A-Z()/_-]*(?:\([a-z]+\))?(?: [A-Z]+)*"

_Form = tuple[re.Pattern[str], Callable[[str], Rows | None]]
_FORMS: Iterable[_Form] = (
    (re.compile(r"\Acommit [0-9a-f]{7,64}\b[^\n]*\n(?:Merge: [^\n]*\n)?Author: "), _git_log),
    (re.compile(rf"\A{_PAIRS.pattern}", re.MULTILINE), _logfmt),
    (re.compile(rf"\A(?:[^\n]*:\n)?(?:total [^\n]*\n)?{_FILE.pattern}\n"), _listing),
    (
        re.compile(rf"\A{_CAPITALS}(?: {{2,}}{_CAPITALS})+ *\r?\n"),
        _aligned,
    ),
    (re.compile(r"\A(?=[^\n]*\w)[^\n]*\n *[-=]{2,}(?: +[-=]{2,})+ *\r?\n"), _ruled),
    (_TABLE, _barred),
    (re.compile(r"\A(?:<\?[^\n]*\?>\s*)?<testsuites?\b"), _junit),
    (components.SIGN, components.components),
    (boxes.SIGN, boxes.boxes),
    (bibliography.SIGN, bibliography.bibliography),
    (sections.SIGN, sections.sections),
    (line_heads.HITS, line_heads.hits),
    (line_heads.TALK, line_heads.talk),
    (line_heads.JOINT, line_heads.joint_log),
    (line_heads.NUMBERED, line_heads.numbered),
    (metrics.SIGN, metrics.metrics),
    (log_lines.LEVELED, log_lines.log),
    (log_lines.BY_HOST, log_lines.system_log),
    (printed.SIGN, printed.printed),
    (re.compile(r"\A(?:[^\n]*\n){0,5}?(?:\S+ +){3}\S[^\n]*\n"), _spaced),
    (line_heads.TAGGED, line_heads.tagged),
    (log_lines.DATED, log_lines.log),
    (blocks.SIGN, blocks.blocks),
)
